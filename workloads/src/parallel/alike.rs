//! Whether all ranks were started with the same settings. Where they were not, they train different things, or do not make
//! the same calls and wait for each other without an end.
//!
//! Every option of a training counts, also one that is yet to be added; only those in [`MAY_DIFFER`] do not.

use clap::{ArgAction, ArgMatches, Command};

use super::{Collective, CollectiveError};

/// What every rank of a training must be started with alike: names and values.
pub type Settings = Vec<(String, String)>;

/// Options that may be another on each rank: they say where and how it works, not what is trained.
const MAY_DIFFER: [&str; 10] = [
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
fn written(settings: &Settings) -> String {
    settings.iter().map(|(name, value)| format!("{name} {}\n", value.replace('\n', " "))).collect()
}

/// In words, the first line in which the two differ.
fn difference(first: &str, own: &str) -> String {
    let mut lines = first.lines().zip(own.lines());
    match lines.find(|(first, own)| first != own) {
        Some((first, own)) => format!("{own}, there {first}"),
        None => "another number of settings: are they of the same version?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::thread_ranks;
    use super::*;
    use crate::command::Workload;
    use crate::gat::GatCommand;
    use crate::sage::SageCommand;
    use crate::vig::VigCommand;

    /// What ranks with these batch sizes are told.
    fn told(batches: &[u32]) -> Vec<Result<(), CollectiveError>> {
        std::thread::scope(|scope| {
            let on_rank = |(rank, batch): (super::super::ThreadRank, u32)| {
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

    /// The trainings on several ranks, with these words behind the name.
    fn settings(workload: &str, words: &[&str]) -> Option<Settings> {
        let words: Vec<_> = words.iter().map(Into::into).collect();
        let mut workload = Workload::parse(workload, &words).ok()?;
        Some(workload.run_options().given.clone())
    }

    fn command(workload: &str) -> Command {
        match workload {
            "gat" => GatCommand::command(),
            "sage" => SageCommand::command(),
            _ => VigCommand::command(),
        }
    }

    /// Values of which every option takes one that is not its usual one.
    const VALUES: [&str; 7] = ["7", "cuda:1", "stall:1ms", "threads", "none", "study", "scatter"];

    /// The settings with this option as nobody has it who does not ask for it.
    fn with_another(workload: &str, option: &clap::Arg) -> Settings {
        let name = format!("--{}", option.get_long().unwrap());
        let usual = settings(workload, &[]).unwrap();
        let choices: Vec<String> =
            option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let values = choices.iter().map(String::as_str).chain(VALUES);
        let given = values.filter_map(|value| settings(workload, &[&name, value]));
        let mut tried: Vec<Settings> = given.chain(settings(workload, &[&name])).collect();
        assert!(!tried.is_empty(), "{workload}: no value is known for {name}");
        tried.sort_by_key(|settings| *settings == usual);
        tried.swap_remove(0)
    }

    #[test]
    fn every_option_that_changes_what_is_trained_is_compared() {
        let mut compared = Vec::new();
        for workload in ["gat", "sage", "vig"] {
            let usual = settings(workload, &[]).unwrap();
            let command = command(workload);
            let mut not_compared = Vec::new();
            for option in command.get_arguments() {
                let name = option.get_long().unwrap();
                let other = with_another(workload, option);
                if other == usual {
                    not_compared.push(name);
                    continue;
                }
                let words = difference(&written(&usual), &written(&other));
                assert!(words.starts_with(&format!("--{name} ")), "{workload} {name}: {words}");
                compared.push(name.to_owned());
            }
            not_compared.sort_unstable();
            let mut may_differ: Vec<&str> = MAY_DIFFER
                .into_iter()
                .filter(|name| command.get_arguments().any(|a| a.get_long() == Some(name)))
                .collect();
            may_differ.sort_unstable();
            assert_eq!(not_compared, may_differ, "{workload}");
        }
        for name in
            ["hidden", "heads", "fanouts", "blocks", "seed", "learning-rate", "tf32", "keep-subnormals", "split"]
        {
            assert!(compared.iter().any(|compared| compared == name), "{name} is not compared");
        }
    }

    #[test]
    fn what_may_differ_is_an_option() {
        let commands = ["gat", "sage", "vig"].map(command);
        for name in MAY_DIFFER {
            let has_it = |command: &Command| command.get_arguments().any(|option| option.get_long() == Some(name));
            assert!(commands.iter().any(has_it), "no training has --{name}");
        }
    }

    #[test]
    fn usual_values_are_those_of_whoever_writes_them_out() {
        let usual = settings("sage", &[]);
        assert_eq!(settings("sage", &["--hidden", "256", "--fanouts", "10,10,10"]), usual);
        assert_ne!(settings("sage", &["--hidden", "128"]), usual);
        assert!(usual.unwrap().contains(&("--plain".to_owned(), "false".to_owned())));
    }
}
