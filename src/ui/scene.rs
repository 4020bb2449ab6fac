//! What all panels draw from: the app, its store, the theme, and the looks of the run's phases.

use std::borrow::Cow;

use super::theme::{PhaseStyle, Theme};
use crate::app::App;
use gnntop_analysis::figures::{duration, lasting};
use gnntop_analysis::findings::FindingKind;
use gnntop_analysis::store::{Phase, Store};

/// A phase counts as slow when it has been open for this many usual steps...
const SLOW_STEPS: u64 = 2;
/// ...and for this long.
const SLOW_NS: u64 = 200_000_000;

/// Everything that a frame is drawn from.
pub struct Scene<'a> {
    /// The app.
    pub app: &'a App,
    /// The run's history.
    pub store: &'a Store,
    /// Colours and glyphs.
    pub theme: &'a Theme,
    /// Looks of [`Store::phases`], in their order.
    pub phase_styles: Vec<PhaseStyle>,
}

/// Shown instead of the gap if a program names no phases: a screen full of gap would suggest that it does nothing else.
const WHOLE_STEP: &str = "whole step";

/// What lasts much longer than a step usually takes, and is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPhase<'a> {
    /// The name of the span that is open; `None` if there is none, and no step either.
    pub name: Option<&'a str>,
    /// For how long.
    pub ns: u64,
}

impl OpenPhase<'_> {
    /// What, and for how long.
    pub fn text(&self) -> String {
        match self.name {
            Some(name) => format!("{name} open for {}", duration(self.ns)),
            None => format!("no step for {}", lasting(self.ns)),
        }
    }
}

impl<'a> Scene<'a> {
    /// The scene of this moment.
    pub fn new(app: &'a App, theme: &'a Theme) -> Self {
        let store = app.run.store();
        let name = |phase: &'a Phase| match phase.is_gap() {
            true => is_bare(store).then_some(WHOLE_STEP),
            false => Some(phase.text.as_str()),
        };
        let mut phase_styles = theme.phase_styles(store.phases().iter().map(name));
        let is_clear = |phase: &Phase| app.highlight() == Some(phase.slot);
        if store.phases().iter().any(is_clear) {
            let others = phase_styles.iter_mut().zip(store.phases()).filter(|(_, phase)| !is_clear(phase));
            others.for_each(|(look, _)| *look = theme.faint(*look));
        }
        Self { app, store, theme, phase_styles }
    }

    /// Whether there is nothing but hardware to show, and a word on why.
    pub fn is_hardware_only(&self) -> bool {
        self.app.status().hint.is_some() && self.store.steps().total() == 0 && self.open_phase().is_none()
    }

    /// A phase's name, with a star if the phase is inferred; of the gap, if no phases are known, that it is the whole
    /// step. The step's detail and the hardware view say how a phase is inferred.
    pub fn phase_name(&self, phase: &'a Phase) -> Cow<'a, str> {
        if is_bare(self.store) {
            return Cow::Borrowed(WHOLE_STEP);
        }
        match self.store.session().inferred(&phase.text) {
            Some(_) => Cow::Owned(format!("{}*", phase.text)),
            None => Cow::Borrowed(&phase.text),
        }
    }

    /// The look of the phase with this name.
    pub fn phase_style(&self, name: &str) -> Option<PhaseStyle> {
        let at = self.store.phases().iter().position(|phase| !phase.is_gap() && phase.text == name)?;
        self.phase_styles.get(at).copied()
    }

    /// What has been open on the training track for much longer than a step usually takes; of a run that hangs without that, the time
    /// since its last step, up to its end if it has ended.
    pub fn open_phase(&self) -> Option<OpenPhase<'a>> {
        self.slow_span().or_else(|| self.no_step())
    }

    /// Of a run that ended by itself long after its last step, in place of a rate: for how long.
    pub fn after_last_step(&self) -> Option<String> {
        self.store.after_last_step_ns().map(|ns| format!("after the last step: {}", duration(ns)))
    }

    fn no_step(&self) -> Option<OpenPhase<'a>> {
        let hangs = self.app.findings().found.iter().any(|finding| finding.kind == FindingKind::Hang);
        let last = self.store.steps().last().filter(|_| hangs)?;
        Some(OpenPhase { name: None, ns: self.store.now_ns().saturating_sub(last.end_ns()) })
    }

    fn slow_span(&self) -> Option<OpenPhase<'a>> {
        let training = self.store.training_track().map(|track| track.id);
        let is_ours = |id| training.is_none_or(|training| training == id);
        let (_, open) = self.store.open_spans().find(|(track, _)| is_ours(track.id))?;
        let usual_ns = self.store.statistics().period().percentile(0.5).unwrap_or(0);
        let ns = self.store.now_ns().saturating_sub(open.since_ns);
        let is_slow = ns >= usual_ns.saturating_mul(SLOW_STEPS).max(SLOW_NS);
        is_slow.then(|| OpenPhase { name: Some(self.store.name(open.name)), ns })
    }
}

/// Whether there are steps and nothing is known of their phases.
fn is_bare(store: &Store) -> bool {
    store.phases().len() == 1 && store.steps().total() > 0
}
