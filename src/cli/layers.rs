//! A source with layers around it: each may add to what the source passes on and to what its status says.
//!
//! Everything else goes to the source itself in one place, so that no layer can lose a part of it.

use std::time::Duration;

use gnntop_analysis::source::{Control, Progress, Source, Status};
use gnntop_analysis::stream::Sink;

/// What a layer adds to a source.
pub(super) trait Layer: Send {
    /// The source was polled: passes on what the layer has of its own. Returns whether that is anything.
    fn after_poll(&mut self, _sink: &mut dyn Sink) -> bool {
        false
    }

    /// Changes the status as the layers before have left it.
    fn amend(&self, _status: &mut Status) {}
}

/// Says of a program without steps why it has none.
pub(super) struct Hint(pub(super) String);

impl Layer for Hint {
    fn amend(&self, status: &mut Status) {
        if let Some(hint) = &mut status.hint {
            self.0.clone_into(hint);
        }
    }
}

/// A source with its layers, of which the first is the innermost.
pub(super) struct LayeredSource {
    source: Box<dyn Source>,
    layers: Vec<Box<dyn Layer>>,
}

impl LayeredSource {
    /// The source without a layer.
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self { source, layers: Vec::new() }
    }

    /// The same with a layer around it.
    pub(super) fn with(mut self, layer: impl Layer + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }
}

impl Source for LayeredSource {
    fn poll(&mut self, sink: &mut dyn Sink, budget: Duration) -> Progress {
        let mut progress = self.source.poll(sink, budget);
        for layer in &mut self.layers {
            progress.changed |= layer.after_poll(sink);
        }
        progress
    }

    fn status(&self) -> Status {
        let mut status = self.source.status();
        self.layers.iter().for_each(|layer| layer.amend(&mut status));
        status
    }

    fn control(&mut self, control: Control) {
        self.source.control(control);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_analysis::ranks::Run;

    /// A source that counts what it is asked, and says so in its status.
    #[derive(Default)]
    struct CountingSource {
        polls: u64,
        controls: Vec<Control>,
    }

    impl Source for CountingSource {
        fn poll(&mut self, _sink: &mut dyn Sink, _budget: Duration) -> Progress {
            self.polls += 1;
            Progress { changed: false, more: true }
        }

        fn status(&self) -> Status {
            Status { title: format!("{:?}", self.controls), lost_segments: self.polls, ..Status::default() }
        }

        fn control(&mut self, control: Control) {
            self.controls.push(control);
        }
    }

    /// A layer that adds a message, and passes something on in the first poll.
    struct Named(&'static str, bool);

    impl Layer for Named {
        fn after_poll(&mut self, _sink: &mut dyn Sink) -> bool {
            std::mem::take(&mut self.1)
        }

        fn amend(&self, status: &mut Status) {
            status.messages.push(self.0.to_owned());
        }
    }

    fn layered(passes_on: bool) -> LayeredSource {
        LayeredSource::new(Box::new(CountingSource::default())).with(Named("a", passes_on)).with(Named("b", false))
    }

    fn poll(source: &mut LayeredSource) -> Progress {
        source.poll(&mut Run::default(), Duration::ZERO)
    }

    #[test]
    fn every_method_of_the_source_is_reached_through_the_layers() {
        let mut source = layered(false);
        assert_eq!(poll(&mut source), Progress { changed: false, more: true });
        source.control(Control::Faster);
        let status = source.status();
        assert_eq!((status.lost_segments, status.title.as_str()), (1, "[Faster]"));
    }

    #[test]
    fn layers_add_to_the_status_in_their_order() {
        let source = layered(false);
        assert_eq!(source.status().messages, ["a", "b"]);
    }

    #[test]
    fn what_any_layer_passes_on_is_progress() {
        let mut source = layered(true);
        assert!(poll(&mut source).changed);
        assert!(!poll(&mut source).changed, "once");
    }
}
