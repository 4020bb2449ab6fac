//! What to try first where the training thread makes its batches itself.

use gnntop_wire::phase::{GATHER, SAMPLE, TRANSFER};

/// By what takes the most time, how many workers the loader has, and whether a core is free for more of them.
pub(super) fn for_part(part: &str, workers: usize, is_core_free: Option<bool>, has_gpu: bool) -> &'static str {
    match (part, workers, is_core_free) {
        (TRANSFER, ..) => "pin the batches' memory (pin_memory=True) and copy them without waiting (non_blocking=True)",
        (GATHER, ..) if has_gpu => {
            "keep the features on the GPU, or gather them in the loader's workers (PyG: filter_per_worker=True)"
        }
        (GATHER, 1.., _) => "gather in the loader's workers too (PyG: filter_per_worker=True)",
        (GATHER, 0, Some(false)) => {
            "gather less: fewer neighbours, smaller features (float16), kept in one contiguous tensor"
        }
        (SAMPLE, _, Some(false)) => "sample fewer neighbours or hops: no core is free for loader workers",
        (_, 0, Some(true)) => "let loader workers make batches ahead (num_workers): cores are free",
        (_, 0, None) => "let loader workers make batches ahead (num_workers)",
        (_, _, Some(false)) => "make batches cheaper: no core is free for loader workers",
        _ => "move this into the loader's workers, which make batches ahead",
    }
}
