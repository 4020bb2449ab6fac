//! How much of the time no kernel ran, from an imported trace of the kernels.

use std::ops::Range;

use gnntop_wire::Origin;

use crate::store::{Store, Track};

/// How much of a time a device was idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Idle {
    /// Share (0 to 1) of the time in which none of its streams had a kernel or a copy.
    pub share: f64,
    /// Kernels and copies that were traced.
    pub kernels: u64,
}

/// The share of `span` in which no stream of a device was busy; `None` if no kernels were traced.
pub(super) fn idle_share(store: &Store, span: Range<u64>) -> Option<Idle> {
    store.session().info().filter(|info| info.origin == Origin::Trace)?;
    let lanes: Vec<_> = store.tracks().iter().filter(|track| track.role.is_device()).filter_map(Track::lane).collect();
    // Older kernels are not kept individually.
    let from_ns = lanes.iter().map(|lane| lane.full_from_ns()).fold(span.start, u64::max);
    let mut kernels = Vec::new();
    for lane in lanes {
        lane.each_box(from_ns..span.end, |kernel, _| {
            kernels.push((kernel.start_ns.max(from_ns), kernel.end_ns.min(span.end)));
        });
    }
    if kernels.is_empty() || from_ns >= span.end {
        return None;
    }
    kernels.sort_unstable();
    let (mut busy_ns, mut busy_until_ns) = (0, from_ns);
    for (start_ns, end_ns) in &kernels {
        busy_ns += end_ns.saturating_sub((*start_ns).max(busy_until_ns));
        busy_until_ns = busy_until_ns.max(*end_ns);
    }
    let share = 1.0 - busy_ns as f64 / (span.end - from_ns) as f64;
    Some(Idle { share, kernels: kernels.len() as u64 })
}
