//! The system call that a thread waits in, which is the innermost frame of its stack.

use std::fmt;

/// File systems whose data come over a network, by the kernel's names without `fuse.`.
const NETWORK: [&str; 23] = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "cifs",
    "smb3",
    "ceph",
    "ceph-fuse",
    "beegfs",
    "glusterfs",
    "wekafs",
    "orangefs",
    "pvfs2",
    "afs",
    "panfs",
    "daos",
    "sshfs",
    "s3fs",
    "mountpoint-s3",
    "gcsfuse",
    "juicefs",
    "rclone",
    "blobfuse2",
];

/// A system call: `read of part-3.bin on nfs4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCall<'a> {
    /// Its name, such as `read`.
    pub name: &'a str,
    /// What it is given: a file's name, or one of the kinds below; `None` if unknown, or without any.
    pub target: Option<&'a str>,
    /// The type of the file system that a file is on, as the kernel calls it; `None` for all else.
    pub filesystem: Option<&'a str>,
}

impl<'a> WaitingCall<'a> {
    /// The target that is a pipe.
    pub const PIPE: &'static str = "a pipe";
    /// The target that is a socket.
    pub const SOCKET: &'static str = "a socket";
    /// The target that is a terminal.
    pub const TERMINAL: &'static str = "a terminal";
    /// What follows the call in a frame's text, as a file follows a function.
    const FILE: &'static str = " (<system call>)";

    /// The call of a frame with this text; `None` for other frames.
    ///
    /// ```
    /// use gnntop_wire::WaitingCall;
    ///
    /// let call = WaitingCall::parse("read of part-3.bin on nfs4 (<system call>)").unwrap();
    /// assert_eq!((call.name, call.target, call.filesystem), ("read", Some("part-3.bin"), Some("nfs4")));
    /// assert!(call.is_over_network() && WaitingCall::parse("read (data.py:3)").is_none());
    /// ```
    pub fn parse(frame: &'a str) -> Option<Self> {
        let text = frame.strip_suffix(Self::FILE)?;
        let (name, target) = text.split_once(" of ").map_or((text, None), |(name, target)| (name, Some(target)));
        let (target, filesystem) = match target.and_then(|target| target.rsplit_once(" on ")) {
            Some((file, filesystem)) => (Some(file), Some(filesystem)),
            None => (target, None),
        };
        Some(Self { name, target, filesystem })
    }

    /// The text of its frame.
    pub fn frame(&self) -> String {
        format!("{self}{}", Self::FILE)
    }

    /// Whether it writes to what another program reads, or a person: it waits as long as that does not.
    pub fn is_output(&self) -> bool {
        matches!(self.name, "write" | "writev" | "send" | "sendmsg")
            && matches!(self.target, Some(Self::PIPE | Self::SOCKET | Self::TERMINAL))
    }

    /// Whether it waits for time to pass, or for what another program sends: not for a thread of its own, nor a device.
    pub fn is_idle(&self) -> bool {
        match self.name {
            "nanosleep" | "clock_nanosleep" | "recv" | "recvfrom" | "recvmsg" | "connect" => true,
            "read" | "readv" => matches!(self.target, Some(Self::PIPE | Self::SOCKET | Self::TERMINAL)),
            _ => false,
        }
    }

    /// Whether it reads from a file.
    pub fn is_file_read(&self) -> bool {
        matches!(self.name, "read" | "pread" | "readv" | "preadv") && self.filesystem.is_some()
    }

    /// Whether its file is on a file system whose data come over a network.
    pub fn is_over_network(&self) -> bool {
        self.filesystem.is_some_and(|kind| NETWORK.contains(&kind.strip_prefix("fuse.").unwrap_or(kind)))
    }
}

impl fmt::Display for WaitingCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.target.map_or(Ok(()), |target| write!(f, " of {target}"))?;
        self.filesystem.map_or(Ok(()), |filesystem| write!(f, " on {filesystem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_comes_back_from_its_frame() {
        let call = |name, target, filesystem| WaitingCall { name, target, filesystem };
        let all = [
            call("futex", None, None),
            call("write", Some(WaitingCall::PIPE), None),
            call("pread", Some("a of b on c.bin"), Some("fuse.sshfs")),
        ];
        for one in all {
            assert_eq!(WaitingCall::parse(&one.frame()), Some(one));
        }
        assert!(all[1].is_output() && !all[2].is_output());
        assert!(all[2].is_over_network() && all[2].is_file_read() && !all[0].is_over_network());
        assert_eq!(["", "f (a.py:1)", "read of a pipe"].map(WaitingCall::parse), [None; 3]);
        let is_remote = |filesystem| call("read", Some("x"), Some(filesystem)).is_over_network();
        assert_eq!(
            ["ext4", "overlay", "fuse", "fuse.fuse-overlayfs", "nfs"].map(is_remote),
            [false, false, false, false, true]
        );
    }
}
