//! A GPU of the run that is idle for much of the time.

use super::check::{Check, too_few_steps};
use crate::figures::percent;
use crate::findings::evidence::Evidence;
use crate::findings::finding::{Confidence, Finding, Kind, Outcome};
use crate::findings::signals;

/// Idle time from which on it is said.
const WORTH_SAYING: f64 = 0.3;
/// A GPU that was never busier than this, in percent, has no part in the run.
const TAKES_PART: f64 = 5.0;
/// Readings below which a mean says little.
const ENOUGH_READINGS: usize = 5;

/// The check.
pub(super) struct GpuIdle;

impl Check for GpuIdle {
    fn kind(&self) -> Kind {
        Kind::GpuIdle
    }

    fn look(&self, evidence: &Evidence<'_>) -> Outcome {
        if !evidence.has_steps() {
            return too_few_steps(evidence);
        }
        let gpus = evidence.store.hardware().gpus();
        if gpus.is_empty() {
            return Outcome::NotEnough("no GPU is measured".to_owned());
        }
        gpus.into_iter().filter_map(|gpu| of_gpu(evidence, gpu)).collect::<Vec<Finding>>().into()
    }
}

fn of_gpu(evidence: &Evidence<'_>, gpu: u32) -> Option<Finding> {
    let signal = evidence.store.signals().find(&format!("gpu.{gpu}.util"))?;
    let span = evidence.span_ns()?;
    let values: Vec<(f64, u64)> = signals::held(signal, &span).collect();
    let most = values.iter().map(|(value, _)| value / 1e3).fold(0.0, f64::max);
    let mean = signals::held_mean(signal, &span)? / 1e3;
    let idle = 1.0 - (mean / 100.0).clamp(0.0, 1.0);
    if most < TAKES_PART || idle < WORTH_SAYING || values.len() < ENOUGH_READINGS {
        return None;
    }
    let summary = format!("GPU {gpu} has no kernel running {} of the time", percent(idle));
    let mut finding = Finding::of_run(Kind::GpuIdle, Confidence::High, Some(idle), summary)
        .because(format!("{}: {} readings", signal.source, values.len()))
        .because("this counts time without any kernel: a busy GPU may still be used badly");
    let largest = evidence.store.phases().iter().map(|phase| (evidence.phase_total_ns(phase.slot), &phase.text));
    if let Some((ns, phase)) = largest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        finding = finding.because(format!("{} of the time is {phase}", percent(evidence.share(ns))));
    }
    Some(finding.advise("larger batches, fewer small kernels (CUDA graphs, fusion), or data that comes sooner"))
}
