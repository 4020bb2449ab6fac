//! A layer for the `tracing` crate: publishes a program's existing spans.

use std::cell::RefCell;

use gnntop_wire::{NameKind, phase};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::names::{NameRef, intern};
use crate::switch;
use crate::track::{self, Span};

thread_local! {
    /// The spans entered on this thread, innermost last.
    static ENTERED: RefCell<Vec<(u64, Span)>> = const { RefCell::new(Vec::new()) };
}

/// A `tracing` layer that records every span, from enter to exit, on the track of the thread that enters it. A span named
/// like a phase that viewers know (`forward`, `data wait`, ...) is recorded as that phase. Threads without a
/// [`Track`](crate::Track) record nothing.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
/// let subscriber = tracing_subscriber::registry().with(gnntop_probe::TracingLayer);
/// # tracing::subscriber::with_default(subscriber, || drop(tracing::info_span!("forward").entered()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLayer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !switch::is_recording() {
            return;
        }
        let name = attributes.metadata().name();
        let kind = if phase::KNOWN.contains(&name) { NameKind::Phase } else { NameKind::Span };
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(intern(kind, name));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let name = context.span(id).and_then(|span| span.extensions().get::<NameRef>().copied());
        if let Some(name) = name {
            let entered = track::span(name);
            ENTERED.with_borrow_mut(|spans| spans.push((id.into_u64(), entered)));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let left = ENTERED.with_borrow_mut(|spans| {
            let place = spans.iter().rposition(|(entered, _)| *entered == id.into_u64())?;
            Some(spans.remove(place))
        });
        drop(left);
    }
}
