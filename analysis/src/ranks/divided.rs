//! A run read by two threads, which take a part of its events each.

use super::run::{Run, RunMember};

impl Run {
    /// [`Store::take_spans_from`](crate::store::Store::take_spans_from) for each session. If it returns `false`, this run is of no
    /// use.
    pub fn take_spans_from(&mut self, other: Self) -> bool {
        let id = |member: &RunMember| member.info().map(|info| info.session_id);
        let are_same = self.members.iter().map(id).eq(other.members.iter().map(id));
        let mut pairs = self.members.iter_mut().zip(other.members);
        are_same && pairs.all(|(own, other)| own.store.take_spans_from(other.store))
    }
}
