//! Which run this process belongs to and which start of the run this is, from its launcher's environment variables.

use std::time::{SystemTime, UNIX_EPOCH};

use gnntop_sessions::layout::{GOAL, LAUNCH, RUN, RUN_STARTED_MS};
use gnntop_wire::{Fact, Place};

/// Restarts that a launcher numbers separately; all beyond share the last number.
const MAX_RESTARTS: u64 = 1023;

/// The run that this process belongs to, according to its launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// The run's id, the same in all ranks and after a restart. Taken from `GNNTOP_RUN`, `gnntop run`, torchrun or Slurm,
    /// else from the port at which ranks meet. Empty if none is set.
    pub run: String,
    /// Which start of the run this is, as in [`Place::attempt`]; `None` if the launcher does not count starts.
    pub attempt: Option<u64>,
    /// Whether a person chose the id.
    is_named: bool,
}

impl Launched {
    /// Reads this process's environment.
    pub fn from_env() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_variables(|name| std::env::var(name).ok(), u64::try_from(now.as_millis()).unwrap_or(0))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>, now_ms: u64) -> Self {
        // torchrun calls a run without an id "none".
        let text = |name: &str| variable(name).filter(|text| !text.is_empty() && text != "none");
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        let is_named = text(RUN).is_some();
        let run = [RUN, LAUNCH, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_PORT"].into_iter().find_map(text);
        // Slurm sets the count only from the first restart on.
        let slurm = text("SLURM_JOB_ID").map(|_| number("SLURM_RESTART_COUNT").unwrap_or(0));
        let torchrun = number("TORCHELASTIC_RESTART_COUNT");
        let is_counted = is_named || slurm.is_some() || torchrun.is_some();
        let started_ms = if is_named { number(RUN_STARTED_MS).unwrap_or(now_ms) } else { 0 };
        let count = |restarts: Option<u64>| restarts.unwrap_or(0).min(MAX_RESTARTS);
        let attempt = Place::attempt_number(started_ms, count(slurm), count(torchrun));
        Self { run: run.unwrap_or_default(), attempt: is_counted.then_some(attempt), is_named }
    }

    /// Completes a session's place, which the program may have set, with the launcher's data.
    pub(crate) fn complete(self, place: Option<Place>) -> Option<Place> {
        match place {
            // The program's own run id wins, unless a person chose one.
            Some(place) if self.is_named => Some(Place { run: self.run, attempt: self.attempt, ..place }),
            Some(place) if place.run == self.run && place.attempt.is_none() => {
                Some(Place { attempt: self.attempt, ..place })
            }
            Some(place) => Some(place),
            None if self.run.is_empty() => None,
            None => {
                let alone = Place { ranks: 1, stages: 1, copies: 1, threads: 1, ..Place::default() };
                let attempt = self.attempt?;
                Some(Place { run: self.run, attempt: Some(attempt), host_ranks: 1, host_cores: 1, ..alone })
            }
        }
    }
}

/// How far a person means the run to go, from the environment; `None` where that says nothing, or nothing that is understood.
pub(crate) fn asked_goal() -> Option<Fact> {
    let goal = std::env::var(GOAL).ok()?.parse().ok()?;
    Some(Fact::Goal { goal, by: "--goal".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(variables: &[(&str, &str)]) -> Launched {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Launched::from_variables(find, 7000)
    }

    fn run_and_attempt(variables: &[(&str, &str)]) -> (String, Option<u64>) {
        let found = launched(variables);
        (found.run, found.attempt)
    }

    #[test]
    fn slurm_requeue_is_next_attempt_of_same_run() {
        let job = ("SLURM_JOB_ID", "71");
        let (first, again) = (run_and_attempt(&[job]), run_and_attempt(&[job, ("SLURM_RESTART_COUNT", "1")]));
        assert_eq!((first.0.as_str(), again.0.as_str()), ("71", "71"));
        assert!(first.1.is_some() && first.1 < again.1);
    }

    #[test]
    fn torchrun_counts_its_restarts_within_those_of_slurm() {
        let id = ("TORCHELASTIC_RUN_ID", "exp");
        let of = |slurm, torchrun| {
            let slurm = [("SLURM_JOB_ID", "71"), ("SLURM_RESTART_COUNT", slurm)];
            run_and_attempt(&[slurm[0], slurm[1], id, ("TORCHELASTIC_RESTART_COUNT", torchrun)])
        };
        let attempts = [of("0", "0"), of("0", "3"), of("1", "0"), of("1", "2")];
        assert!(attempts.iter().all(|(run, _)| run == "exp"));
        assert!(attempts.windows(2).all(|pair| pair[0].1 < pair[1].1), "{attempts:?}");
        assert_eq!(run_and_attempt(&[("TORCHELASTIC_RUN_ID", "none"), ("MASTER_PORT", "29500")]).0, "29500");
    }

    #[test]
    fn named_run_has_new_attempt_each_start() {
        let named = [("GNNTOP_RUN", "night"), ("SLURM_JOB_ID", "71"), ("GNNTOP_LAUNCH", "x")];
        let by_hand = run_and_attempt(&named);
        assert_eq!(by_hand.0, "night");
        let later = run_and_attempt(&[&named[..], &[("GNNTOP_RUN_STARTED_MS", "7001")]].concat());
        assert!(by_hand.1 < later.1);
    }

    #[test]
    fn complete_single_process_has_a_place_only_under_slurm() {
        assert_eq!(run_and_attempt(&[]), (String::new(), None));
        assert_eq!(run_and_attempt(&[("GNNTOP_LAUNCH", "x")]), ("x".to_owned(), None));
        assert_eq!(launched(&[("GNNTOP_LAUNCH", "x")]).complete(None), None);
        let alone = launched(&[("SLURM_JOB_ID", "71")]).complete(None).unwrap();
        assert_eq!((alone.run.as_str(), alone.rank, alone.ranks), ("71", 0, 1));
    }

    #[test]
    fn complete_keeps_run_name_unless_user_gives_one() {
        let own = || Some(Place { run: "sage-1".to_owned(), rank: 1, ranks: 2, ..Place::default() });
        assert_eq!(launched(&[("SLURM_JOB_ID", "71")]).complete(own()), own());
        let named = launched(&[("GNNTOP_RUN", "night")]).complete(own()).unwrap();
        assert_eq!((named.run.as_str(), named.rank, named.attempt.is_some()), ("night", 1, true));
    }
}
