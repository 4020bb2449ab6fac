//! Where a process id means what it means to us. Containers and machines may share the directory of sessions, and there the same id
//! is another process.

use std::fs;
use std::os::unix::fs::MetadataExt;

use gnntop_analysis::source::process::Process;
use serde::{Deserialize, Serialize};

/// A PID namespace of a machine since its boot. What the system does not say is `None` everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PidSpace {
    pub(super) boot_id: Option<String>,
    /// The number of the namespace's file.
    namespace: Option<u64>,
}

impl PidSpace {
    /// That of this process.
    pub(super) fn own() -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            boot_id: boot_id.map(|id| id.trim().to_owned()),
            namespace: fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino()),
        }
    }
}

/// What tells the processes of an entry from others with their ids.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProcessProof {
    pub(super) space: PidSpace,
    /// When the keeper and the program started, in clock ticks since boot; `None` if that was not seen.
    keeper_start: Option<u64>,
    program_start: Option<u64>,
}

/// Where the processes of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Here,
    /// In another PID namespace of this machine.
    OtherNamespace,
    OtherMachine,
    /// A gnntop that did not note it has written the entry.
    Unknown,
}

impl ProcessProof {
    /// For this process, which keeps `program`.
    pub(super) fn of_own_program(program: u32) -> Self {
        let start = |pid| Process::find(pid).map(|process| process.start_ticks());
        Self { space: PidSpace::own(), keeper_start: start(std::process::id()), program_start: start(program) }
    }

    /// Whether the process that has the keeper's id here is the keeper.
    pub(super) fn is_keeper(&self, pid: u32) -> bool {
        is_same(pid, self.keeper_start)
    }

    /// Whether the process that has the program's id here is the program.
    pub(super) fn is_program(&self, pid: u32) -> bool {
        is_same(pid, self.program_start)
    }
}

fn is_same(pid: u32, start: Option<u64>) -> bool {
    start.is_some() && Process::find(pid).map(|process| process.start_ticks()) == start
}

impl Whereabouts {
    /// Of an entry with this proof.
    pub(super) fn find(proof: Option<&ProcessProof>) -> Self {
        let own = PidSpace::own();
        match proof {
            None => Self::Unknown,
            Some(proof) if proof.space == own => Self::Here,
            Some(proof) if proof.space.boot_id == own.boot_id => Self::OtherNamespace,
            Some(_) => Self::OtherMachine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_the_same_only_in_its_space_and_with_its_start() {
        let pid = std::process::id();
        let own = ProcessProof::of_own_program(pid);
        assert!(own.is_keeper(pid) && own.is_program(pid) && !own.is_program(pid + 1));
        assert_eq!(Whereabouts::find(Some(&own)), Whereabouts::Here);
        let later = ProcessProof { program_start: own.program_start.map(|start| start + 1), ..own.clone() };
        assert!(!later.is_program(pid), "a later process with its id");
        let of = |space| Whereabouts::find(Some(&ProcessProof { space, ..own.clone() }));
        assert_eq!(of(PidSpace { namespace: Some(7), ..own.space.clone() }), Whereabouts::OtherNamespace);
        assert_eq!(of(PidSpace { boot_id: Some("x".to_owned()), ..own.space.clone() }), Whereabouts::OtherMachine);
        assert_eq!(Whereabouts::find(None), Whereabouts::Unknown);
    }
}
