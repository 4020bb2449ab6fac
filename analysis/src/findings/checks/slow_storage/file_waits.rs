//! The files that stacks wait for, and the file system that these are on.

use std::collections::BTreeMap;
use std::ops::Range;

use gnntop_wire::{StackThread, WaitingCall};

use crate::findings::evidence::StepEvidence;
use crate::findings::finding::Finding;
use crate::findings::number::Number;

/// Stacks that name a file system with certainty.
const ENOUGH: u64 = 3;
/// Most of them are this share.
const MOSTLY: f64 = 0.5;

/// The stacks in which a read of a file waits: of loader workers if any does, else of the training thread.
#[derive(Default)]
pub(super) struct FileWaits {
    /// How many, by the call.
    by_call: BTreeMap<String, u64>,
    /// How many, by the type of the file system, with whether it is over a network.
    by_filesystem: BTreeMap<(String, bool), u64>,
}

impl FileWaits {
    pub(super) fn find(evidence: &StepEvidence<'_>, span: &Range<u64>) -> Self {
        let of = |thread| {
            let mut found = Self::default();
            let stacks = evidence.store.stacks().iter();
            for stack in stacks.filter(|stack| stack.thread == thread && span.contains(&stack.t_ns)) {
                let call = stack.frames.first().and_then(|frame| WaitingCall::parse(evidence.store.name(*frame)));
                let Some(call) = call.filter(WaitingCall::is_file_read) else { continue };
                *found.by_call.entry(call.to_string()).or_default() += 1;
                let filesystem = call.filesystem.unwrap_or_default().to_owned();
                *found.by_filesystem.entry((filesystem, call.is_over_network())).or_default() += 1;
            }
            found
        };
        let workers = of(StackThread::LoaderWorker);
        if workers.by_call.is_empty() { of(StackThread::Training) } else { workers }
    }

    fn all(&self) -> u64 {
        self.by_call.values().sum()
    }

    /// The file system over a network that most of them are on.
    pub(super) fn network(&self) -> Option<&str> {
        let remote = self.by_filesystem.iter().filter(|((_, is_remote), _)| *is_remote);
        let ((filesystem, _), stacks) = remote.max_by_key(|it| it.1)?;
        (self.all() >= ENOUGH && *stacks as f64 >= MOSTLY * self.all() as f64).then_some(filesystem.as_str())
    }

    /// Adds the call that most of them wait in.
    pub(super) fn describe(&self, finding: Finding) -> Finding {
        let Some((call, stacks)) = self.by_call.iter().max_by_key(|(_, stacks)| **stacks) else { return finding };
        finding.with_evidence_from(|facts| {
            let (stacks, all) = (facts.count(Number::Stacks, *stacks), self.all());
            format!("{stacks} of {all} stacks that wait for a file: in {call}")
        })
    }
}
