//! Simulated runs of several ranks, for tests.

use super::Run;
use gnntop_fixtures::each_item;

/// The run of these streams.
pub(crate) fn run(streams: &[Vec<u8>]) -> Run {
    let mut run = Run::default();
    streams.iter().for_each(|bytes| each_item(bytes, |item| run.apply(item)));
    run
}
