//! Findings of a running session, looked at again and again at a bounded cost.

use std::time::{Duration, Instant};

use super::diagnosis::of_run;
use super::judgement::Judgement;
use crate::ranks::Run;

/// Between two looks this many times as long as the last one took: at most 2 % of a core.
const REST: u32 = 49;
/// A look is no use more often than this.
const SHORTEST_REST: Duration = Duration::from_millis(250);

/// Keeps what there is to say about a run at most some seconds old, for at most 2 % of a core.
#[derive(Debug, Default)]
pub struct Watch {
    /// The run's, when it was looked at.
    revision: Option<(Option<u32>, u64)>,
    next: Option<Instant>,
}

impl Watch {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the newest 8,192 steps again if there is anything new and it is time.
    pub fn update(&mut self, run: &Run) -> Option<Judgement> {
        let begin = Instant::now();
        if self.revision == Some(run.revision()) || self.next.is_some_and(|next| begin < next) {
            return None;
        }
        let judgement = self.look(run);
        let rest = (begin.elapsed() * REST).max(SHORTEST_REST);
        self.next = Some(Instant::now() + rest);
        Some(judgement)
    }

    /// Looks at once, whatever it costs: after a jump in a recording.
    pub fn look(&mut self, run: &Run) -> Judgement {
        self.revision = Some(run.revision());
        of_run(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{TrainingRun, each_item};

    #[test]
    fn it_looks_when_there_is_something_new_and_rests_between() {
        let mut run = Run::default();
        let mut watch = Watch::new();
        assert!(watch.update(&run).is_some(), "at first");
        assert!(watch.update(&run).is_none(), "nothing new");
        each_item(&TrainingRun::default().bytes(), |item| run.apply(item));
        watch.next = Some(Instant::now() + Duration::from_secs(3600));
        assert!(watch.update(&run).is_none(), "it rests");
        assert_eq!(watch.look(&run), of_run(&run), "but not after a jump");
        watch.next = None;
        assert!(watch.update(&run).is_none(), "that was all there is");
    }
}
