//! Whether all ranks were started with the same settings. If they were not, they train different things, or make
//! different calls and wait for each other forever.
//!
//! Every option of a training counts, including future ones; only those in [`MAY_DIFFER`] do not.

use clap::{ArgAction, ArgMatches, Command};

use crate::parallel::{Collective, CollectiveError};

/// Settings that must be the same on every rank: names and values.
pub type Settings = Vec<(String, String)>;

/// Options that may differ between ranks: they say where and how a rank works, not what is trained.
pub(crate) const MAY_DIFFER: [&str; 10] = [
    // Each machine has its own paths, cores and devices. The data itself is compared separately.
    "data",
    "record",
    "threads-per-rank",
    "workers",
    "device",
    "features-on-device",
    // The MPI launcher decides how many ranks there are and, by default, the engine that connects them: the outcome is
    // compared.
    "ranks",
    "engine",
    // Faults and publishing that apply to one rank only.
    "inject",
    "no-sensors",
];

/// The settings that result from a command line, including defaults, and the version, which determines the defaults.
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
/// This rank has other settings, or a rank is gone. The other ranks see this as they see any rank that fails.
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
    // No rank continues before all have compared; otherwise calls of different kinds would meet.
    match differs {
        Some(what) => Err(CollectiveError::OtherSettings { rank: ranks.rank(), what }),
        None => ranks.barrier(),
    }
}

/// One line per setting.
pub(crate) fn written(settings: &Settings) -> String {
    settings.iter().map(|(name, value)| format!("{name} {}\n", value.replace('\n', " "))).collect()
}

/// Describes the first line in which the two differ.
pub(crate) fn difference(first: &str, own: &str) -> String {
    let mut lines = first.lines().zip(own.lines());
    match lines.find(|(first, own)| first != own) {
        Some((first, own)) => format!("{own}, there {first}"),
        None => "a different number of settings: are all ranks the same version?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{ThreadRank, thread_ranks};

    /// The outcome for ranks with these batch sizes.
    fn checked(batches: &[u32]) -> Vec<Result<(), CollectiveError>> {
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
        assert_eq!(checked(&[512, 512, 512]), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn a_rank_with_other_settings_is_named_with_them() {
        // The length may differ, too: rank 0's counts.
        for (other, words) in [(32, "--batch-size 32, there --batch-size 512"), (513, "--batch-size 513, there")] {
            let checked = checked(&[512, 512, other]);
            let error = checked[2].clone().unwrap_err().to_string();
            assert!(error.starts_with("rank 2 was started with different settings than rank 0: here "), "{error}");
            assert!(error.contains(words), "{error}");
            assert!(
                checked[..2].iter().all(|checked| matches!(checked, Err(CollectiveError::Gone { rank: 2, .. }))),
                "{checked:?}"
            );
        }
    }
}
