//! Whether all ranks were started with the same settings. Where they were not, they train different things, or do not make
//! the same calls and wait for each other without an end.
//!
//! Every option of a training counts, also one that is yet to be added; only those in [`MAY_DIFFER`] do not.

use clap::{ArgAction, ArgMatches, Command};

use crate::parallel::{Collective, CollectiveError};

/// What every rank of a training must be started with alike: names and values.
pub type Settings = Vec<(String, String)>;

/// Options that may be another on each rank: they say where and how it works, not what is trained.
pub(crate) const MAY_DIFFER: [&str; 10] = [
    // Each machine has its own places, cores and devices. What the data holds is compared apart.
    "data",
    "record",
    "threads-per-rank",
    "workers",
    "device",
    "features-on-device",
    // How many ranks there are the launcher of MPI has decided, and what connects them where nothing is said: that is
    // compared as it came out.
    "ranks",
    "engine",
    // What one rank alone is told to suffer, or to publish.
    "inject",
    "no-sensors",
];

/// The settings that a command line comes to, usual values included; the version too, which decides about those.
pub(crate) fn given(command: &Command, matches: &ArgMatches) -> Settings {
    let version = ("gnntop".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let asks = |action: &ArgAction| matches!(action, ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
    let setting = |arg: &clap::Arg| {
        let name = arg.get_long().filter(|name| !MAY_DIFFER.contains(name) && !asks(arg.get_action()))?;
        let words = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
        let words = words.map(|words| words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(","));
        Some((format!("--{name}"), words.unwrap_or_else(|| "as usual".to_owned())))
    };
    std::iter::once(version).chain(command.get_arguments().filter_map(setting)).collect()
}

/// Compares this rank's settings with those of rank 0. A call that all ranks make.
///
/// # Errors
/// This rank has other settings, or a rank is gone. The others hear of it as of any rank that fails.
pub(super) fn check(ranks: &dyn Collective, settings: &Settings) -> Result<(), CollectiveError> {
    let own = written(settings);
    // Bytes are numbers that f32 holds exactly.
    let mut first: Vec<f32> = own.bytes().map(f32::from).collect();
    let length = ranks.gather(first.len() as f64)?[0] as usize;
    first.resize(length, 0.0);
    ranks.broadcast(0, &mut first)?;
    let first: Vec<u8> = first.into_iter().map(|byte| byte as u8).collect();
    let first = String::from_utf8_lossy(&first);
    let differs = (own != first).then(|| difference(&first, &own));
    // Nobody goes on before all have looked: else the calls of those that do would meet those of who does not.
    match differs {
        Some(what) => Err(CollectiveError::OtherSettings { rank: ranks.rank(), what }),
        None => ranks.barrier(),
    }
}

/// A line a setting.
pub(crate) fn written(settings: &Settings) -> String {
    settings.iter().map(|(name, value)| format!("{name} {}\n", value.replace('\n', " "))).collect()
}

/// In words, the first line in which the two differ.
pub(crate) fn difference(first: &str, own: &str) -> String {
    let mut lines = first.lines().zip(own.lines());
    match lines.find(|(first, own)| first != own) {
        Some((first, own)) => format!("{own}, there {first}"),
        None => "another number of settings: are they of the same version?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{ThreadRank, thread_ranks};

    /// What ranks with these batch sizes are told.
    fn told(batches: &[u32]) -> Vec<Result<(), CollectiveError>> {
        std::thread::scope(|scope| {
            let on_rank = |(rank, batch): (ThreadRank, u32)| {
                let settings =
                    vec![("workload".to_owned(), "sage".to_owned()), ("--batch-size".to_owned(), batch.to_string())];
                let checked = check(&rank, &settings);
                if checked.is_err() {
                    rank.leave("has failed");
                }
                checked
            };
            let ranks = thread_ranks(batches.len(), false).into_iter().zip(batches.iter().copied());
            let threads: Vec<_> = ranks.map(|rank| scope.spawn(move || on_rank(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_with_the_same_settings_go_on() {
        assert_eq!(told(&[512, 512, 512]), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn a_rank_with_other_settings_is_named_with_them() {
        // Of another length too: what rank 0 says counts.
        for (other, words) in [(32, "--batch-size 32, there --batch-size 512"), (513, "--batch-size 513, there")] {
            let told = told(&[512, 512, other]);
            let error = told[2].clone().unwrap_err().to_string();
            assert!(error.starts_with("rank 2 was started with other settings than rank 0: here "), "{error}");
            assert!(error.contains(words), "{error}");
            assert!(
                told[..2].iter().all(|told| matches!(told, Err(CollectiveError::Gone { rank: 2, .. }))),
                "{told:?}"
            );
        }
    }
}
