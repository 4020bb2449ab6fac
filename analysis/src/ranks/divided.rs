//! A run read by two threads, which take a part of its events each.

use super::run::{Member, Run};

impl Run {
    /// [`Store::take_spans_of`](crate::store::Store::take_spans_of) for each session. If it returns `false`, this run is of no
    /// use.
    pub fn take_spans_of(&mut self, other: Self) -> bool {
        let id = |member: &Member| member.info().map(|info| info.session_id);
        let are_same = self.members.iter().map(id).eq(other.members.iter().map(id));
        let mut pairs = self.members.iter_mut().zip(other.members);
        are_same && pairs.all(|(own, other)| own.store.take_spans_of(other.store))
    }
}
