//! Lists in which nothing is twice: a machine that is named twice would write its copies twice.

use std::collections::HashSet;
use std::hash::Hash;

/// The first one of each, in their order.
pub(super) fn distinct<T: Clone + Eq + Hash>(all: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    all.into_iter().filter(|one| seen.insert(one.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_already_is_left_out_wherever_it_is() {
        assert_eq!(distinct(vec!["tmp", "run", "tmp", "tmp"]), ["tmp", "run"]);
    }
}
