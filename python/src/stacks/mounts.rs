//! The type of the file system that a file is on, by the mounts of its process. No file system is asked: one whose server is gone
//! would not answer.

use std::fs;

use crate::memory::Process;

/// The type of the file system that this path is on, as the kernel calls it: `nfs4`, `ext4`, `overlay`.
pub(super) fn filesystem(process: &Process, path: &str) -> Option<String> {
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", process.id())).ok()?;
    filesystem_in(&mounts, path).map(str::to_owned)
}

/// The same by the text of a file `mountinfo` (proc(5)): the longest mount point that the path is below; of several at the same place the
/// last one covers the others.
fn filesystem_in<'m>(mounts: &'m str, path: &str) -> Option<&'m str> {
    let mount = |line: &'m str| {
        let (mounted, kind) = line.split_once(" - ")?;
        let point = unescape(mounted.split(' ').nth(4)?);
        let is_below = point == "/" || path.strip_prefix(&point).is_some_and(|rest| rest.starts_with('/'));
        is_below.then_some((point.len(), kind.split(' ').next()?))
    };
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// A mount point without the escapes of proc(5).
fn unescape(point: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(point.to_owned(), |text, (escape, byte)| text.replace(escape, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:20 / / rw - overlay overlay rw
30 22 0:30 / /data rw,relatime shared:4 - nfs4 server:/export rw
31 22 8:1 / /data\\040local rw - ext4 /dev/sda1 rw
32 30 0:31 / /data/fast rw - tmpfs tmpfs rw
33 22 0:33 / /data rw - lustre mgs@tcp:/scratch rw
damaged";

    #[test]
    fn filesystem_is_that_of_the_longest_mount_point() {
        let of = |path| filesystem_in(MOUNTS, path);
        assert_eq!(of("/data/train.bin"), Some("lustre"), "the newer mount covers the other");
        assert_eq!(of("/data/fast/train.bin"), Some("tmpfs"));
        assert_eq!(of("/data local/train.bin"), Some("ext4"));
        assert_eq!(of("/database/train.bin"), Some("overlay"));
        assert_eq!(filesystem_in("", "/x"), None);
    }
}
