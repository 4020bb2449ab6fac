//! Halves the resolution of the distant past.

use gnntop_wire::past::PastEntry;

use crate::merge;

/// Merges each two neighbouring slices, and keeps the slower half of the slow steps.
pub fn coarsen(entries: Vec<PastEntry>) -> Vec<PastEntry> {
    let (mut slices, mut slow) = (Vec::new(), Vec::new());
    for past in entries {
        match past {
            PastEntry::Slice(slice) => slices.push(slice),
            PastEntry::Slow(step) => slow.push(step),
            _ => (),
        }
    }
    slices.sort_by_key(|slice| slice.from_ns);
    let mut halved = Vec::with_capacity(slices.len() / 2 + 1);
    for pair in slices.chunks(2) {
        let mut one = pair[0].clone();
        pair[1..].iter().for_each(|next| merge::add(&mut one, next));
        halved.push(PastEntry::Slice(one));
    }
    slow.sort_by_key(|step| std::cmp::Reverse(step.figures.period_ns()));
    slow.truncate(slow.len().div_ceil(2));
    halved.extend(slow.into_iter().map(PastEntry::Slow));
    halved
}
