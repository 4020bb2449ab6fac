//! A run whose figures are sent every few seconds and at its end, and what is said where that fails.

use std::time::{Duration, Instant};

use super::delivery::{Delivered, Delivery};
use super::settings::OtlpSettings;
use crate::export::otlp;
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings::{Judgement, Watch};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{Source, SourceState};
use gnntop_analysis::store::Limits;

/// Time between two looks at the run.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long one look may take.
const POLL_BUDGET: Duration = Duration::from_millis(50);
/// Figures need far less than a screen, which draws what was.
const PART_OF_A_STORE: usize = 8;

/// A run, and how its figures are sent.
pub(in super::super) struct Pusher {
    settings: OtlpSettings,
    delivery: Delivery,
    run: Run,
    findings: Watch,
    judgement: Judgement,
    /// What of the run was sent last.
    sent: Option<(Option<u32>, u64)>,
    /// Whether a failure was said, and what the collector has said of what it took.
    has_warned: bool,
    has_answered: bool,
    /// What became of the last request, or why it was not delivered.
    outcome: Result<Delivered, String>,
}

impl Pusher {
    /// Nothing is known of the run yet.
    pub(in super::super) fn new(settings: OtlpSettings) -> Self {
        Self::with_run(settings, Run::with_limits(Limits::default().shared_by(PART_OF_A_STORE)))
    }

    /// The figures of a run that was read.
    pub(in super::super) fn with_run(settings: OtlpSettings, run: Run) -> Self {
        Self {
            delivery: Delivery::new(settings.clone()),
            settings,
            run,
            findings: Watch::new(),
            judgement: Judgement::default(),
            sent: None,
            has_warned: false,
            has_answered: false,
            outcome: Ok(Delivered::default()),
        }
    }

    /// Sends the figures, unless they were sent. `warn` hears of the first failure before the last request, and of the first answer
    /// that says more than that all is well.
    pub(in super::super) fn push(&mut self, is_last: bool, warn: &dyn Fn(&str)) {
        let revision = self.run.revision();
        if self.sent == Some(revision) {
            return;
        }
        if is_last {
            self.judgement = self.findings.check_now(&self.run);
        } else if let Some(judgement) = self.findings.update(&self.run) {
            self.judgement = judgement;
        }
        let (assumptions, resource) = (Assumptions::default(), &self.settings.resource);
        let Some(body) = otlp::encode(&self.run, &self.judgement, &assumptions, resource) else { return };
        let deadline = Instant::now() + self.settings.timeout();
        let outcome = self.delivery.send(body.to_string().as_bytes(), deadline, is_last);
        let address = self.settings.address();
        match &outcome {
            Ok(Delivered { said: Some(said), .. }) if !std::mem::replace(&mut self.has_answered, true) => {
                warn(&format!("{address}: {said}"));
            }
            Err(why) if !is_last && !std::mem::replace(&mut self.has_warned, true) => {
                let seconds = self.settings.interval().as_secs_f64();
                warn(&format!("figures do not reach {address}: {why}; they are sent again every {seconds} s"));
            }
            _ => (),
        }
        self.sent = if outcome.is_ok() { Some(revision) } else { self.sent };
        self.outcome = outcome;
    }

    /// Why the last request was not delivered, if it was not.
    pub(in super::super) fn failure(&self) -> Option<&str> {
        self.outcome.as_ref().err().map(String::as_str)
    }

    /// What the collector says of the last request, and whether it has rejected a part.
    pub(in super::super) fn answer(&self) -> Option<(&str, bool)> {
        let delivered = self.outcome.as_ref().ok()?;
        Some((delivered.said.as_deref()?, delivered.is_partial))
    }

    /// Whether no session has begun.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.run.member().info().is_none()
    }
}

/// Follows a run and sends its figures until it has ended, or `wait_for_end` says so, which waits for at most the time that it is
/// given; then once more.
pub(in super::super) fn push_until(
    pusher: &mut Pusher,
    source: &mut dyn Source,
    warn: &dyn Fn(&str),
    wait_for_end: &mut dyn FnMut(Duration) -> bool,
) {
    let mut next = Instant::now() + pusher.settings.interval();
    loop {
        while source.poll(&mut pusher.run, POLL_BUDGET).more {}
        if matches!(source.status().state, SourceState::Ended(_)) {
            break;
        }
        if Instant::now() >= next {
            pusher.push(false, warn);
            next = Instant::now() + pusher.settings.interval();
        }
        if wait_for_end(POLL_INTERVAL.min(pusher.settings.interval())) {
            break;
        }
    }
    pusher.push(true, warn);
}
