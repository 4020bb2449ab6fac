//! Texts about stacks, for people: their track, and frames.

use super::frames::Frame;

/// The track of the stacks.
pub(super) const TRACK: &str = "stacks of train";
/// The track of the samples.
pub(super) const SAMPLES_TRACK: &str = "stacks of train, sampled";
/// Shown around the frames of a loader worker.
pub(super) const LOADER_WORKER: &str = "loader worker";

/// `collate (data.py:81)`. A library's file has its folders from the library on, and Python's own begins with `python/`.
pub(super) fn format_frame(frame: &Frame) -> String {
    let Frame { name, file, line } = frame;
    if let Some((_, library)) = ["site-packages/", "dist-packages/"].iter().find_map(|of| file.split_once(of)) {
        return format!("{name} ({library}:{line})");
    }
    if let Some((_, library)) = file.split_once("/lib/python3").and_then(|(_, rest)| rest.split_once('/')) {
        return format!("{name} (python/{library}:{line})");
    }
    format!("{name} ({}:{line})", file.rsplit('/').next().unwrap_or(file))
}

/// Whether a frame belongs to our own hooks, which are between the program and what it calls.
pub(super) fn is_ours(frame: &Frame) -> bool {
    frame.file.contains("/gnntop/hooks/") || frame.file.ends_with("/gnntop/_native.py")
}

/// Whether a loader worker with these frames waits for something to do.
pub(super) fn is_idle(frames: &[Frame]) -> bool {
    let is_in = |file: &str| frames.iter().any(|frame| frame.file.ends_with(file));
    is_in("/multiprocessing/queues.py") && !is_in("/torch/utils/data/_utils/fetch.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_waiting_for_indices_is_idle_and_fetching_worker_is_not() {
        let stack = |files: &[&str]| -> Vec<Frame> {
            files.iter().map(|file| Frame { name: "f".to_owned(), file: (*file).to_owned(), line: 1 }).collect()
        };
        let (queue, worker) = ("/lib/python3.11/multiprocessing/queues.py", "/torch/utils/data/_utils/worker.py");
        assert!(is_idle(&stack(&["/lib/python3.11/selectors.py", queue, worker, "/me/train.py"])));
        assert!(!is_idle(&stack(&[queue, "/me/data.py", "/torch/utils/data/_utils/fetch.py", worker])));
        assert!(!is_idle(&stack(&["/me/data.py", worker])));
    }

    #[test]
    fn frame_text_has_file_name_and_folders_of_a_library() {
        let at = |file: &str| format_frame(&Frame { name: "f".to_owned(), file: file.to_owned(), line: 3 });
        assert_eq!(at("/home/me/data.py"), "f (data.py:3)");
        assert_eq!(at("/env/lib/python3.11/site-packages/torch/nn/linear.py"), "f (torch/nn/linear.py:3)");
        assert_eq!(at("/usr/lib/python3.11/threading.py"), "f (python/threading.py:3)");
        assert_eq!(at("<string>"), "f (<string>:3)");
    }
}
