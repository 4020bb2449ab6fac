//! Parses the argument of `--inject`: `CAUSE:AMOUNT@KEY=VALUE,KEY=VALUE`.

use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::{Cause, ChargedTo, Injection, When};
use crate::train::InvalidOption;
use gnntop_data::loading::Pause;

/// A longer pause is a mistake.
const LONGEST: Duration = Duration::from_secs(600);
/// So are more steps.
const MOST_STEPS: f64 = 10_000.0;
/// More memory at once is a mistake.
const LARGEST: u64 = 64 << 30;
/// More threads or multiplications are a mistake.
const MOST_THREADS: u64 = 1024;
const MOST_NUMBERS: u64 = 1_000_000_000;
/// Default number of multiplications: they take some milliseconds.
const USUAL_NUMBERS: u32 = 400_000;
/// Default name of a stall's mark.
const STALL_MARK: &str = "injected stall";
/// The longest name of a mark.
const LONGEST_MARK: usize = 64;

const CAUSES: &str = "stall, faults, slow-loader, contention, leak, denormals, hang, skip-all-reduce";

impl FromStr for Injection {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let (what, details) = text.split_once('@').map_or((text, None), |(what, details)| (what, Some(details)));
        let (name, amount) = what.split_once(':').map_or((what, None), |(name, amount)| (name, Some(amount)));
        let (cause, when) = (cause(name, amount)?, When::default());
        let mut injection = Self { words: text.to_owned(), cause, when, rank: None };
        for detail in details.into_iter().flat_map(|details| details.split(',')) {
            injection.refine(name, detail)?;
        }
        if injection.when.at.is_some_and(|_| injection.when != When { at: injection.when.at, ..When::default() }) {
            return Err(InvalidOption("at= selects a single step: remove every= and from=".to_owned()));
        }
        Ok(injection)
    }
}

fn cause(name: &str, amount: Option<&str>) -> Result<Cause, InvalidOption> {
    let needed = |example: &str| {
        amount.ok_or_else(|| InvalidOption(format!("{name} needs an amount, such as {name}:{example}")))
    };
    match name {
        "stall" => {
            let pause = pause(needed("130ms")?)?;
            Ok(Cause::Stall { pause, charged_to: ChargedTo::default(), mark: Some(STALL_MARK.to_owned()) })
        }
        "faults" => Ok(Cause::Faults { bytes: size(needed("256MiB")?)? }),
        "slow-loader" => Ok(Cause::SlowLoader { delay: pause(needed("6x")?)? }),
        "contention" => {
            let threads = amount.map(|amount| whole("a number of threads", amount, MOST_THREADS)).transpose()?;
            Ok(Cause::Contention { threads: threads.map(|threads| threads as usize) })
        }
        "leak" => Ok(Cause::Leak { bytes: size(needed("1MiB")?)? }),
        "denormals" => {
            let count = amount.map(|amount| whole("a number of multiplications", amount, MOST_NUMBERS)).transpose()?;
            Ok(Cause::Denormals { count: count.map_or(USUAL_NUMBERS, |count| count as u32) })
        }
        "hang" | "skip-all-reduce" if amount.is_some() => {
            Err(InvalidOption(format!("{name} takes no amount: remove `:...`")))
        }
        "hang" => Ok(Cause::Hang { charged_to: ChargedTo::default() }),
        "skip-all-reduce" => Ok(Cause::SkipAllReduce),
        _ => Err(InvalidOption(format!("there is no cause {name:?}; use one of {CAUSES}"))),
    }
}

impl Injection {
    /// Applies one `KEY=VALUE` after the @.
    fn refine(&mut self, name: &str, detail: &str) -> Result<(), InvalidOption> {
        let (key, value) = detail
            .split_once('=')
            .ok_or_else(|| InvalidOption(format!("expected key=value after @, such as every=40, not {detail:?}")))?;
        let lasts = matches!(self.cause, Cause::SlowLoader { .. } | Cause::Contention { .. });
        if lasts && key != "rank" {
            return Err(InvalidOption(format!("{name} lasts for the whole run: only rank= is allowed after @")));
        }
        let step = |value| whole("a step", value, u64::MAX);
        match (key, &mut self.cause) {
            ("every", _) => self.when.every = step(value)?,
            ("from", _) => self.when.from = step(value)?,
            ("at", _) => self.when.at = Some(step(value)?),
            ("rank", _) => self.rank = Some(rank_of(value)?),
            ("in", Cause::Stall { charged_to, .. } | Cause::Hang { charged_to }) => *charged_to = place_of(value)?,
            ("mark", Cause::Stall { mark, .. }) => *mark = mark_of(value)?,
            ("in" | "mark", _) => return Err(InvalidOption(format!("{key}= does not apply to {name}"))),
            _ => {
                return Err(InvalidOption(format!(
                    "there is no {key}=; use every=, from=, at=, rank=, or for a stall in= and mark="
                )));
            }
        }
        Ok(())
    }
}

fn place_of(text: &str) -> Result<ChargedTo, InvalidOption> {
    ChargedTo::from_str(text, false).map_err(|_| {
        let known = ChargedTo::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
        InvalidOption(format!("in= must be one of {}, not {text:?}", known.join(", ")))
    })
}

fn mark_of(text: &str) -> Result<Option<String>, InvalidOption> {
    match text {
        "none" => Ok(None),
        "" => Err(InvalidOption("mark= needs a name, or none".to_owned())),
        long if long.len() > LONGEST_MARK => {
            Err(InvalidOption(format!("a mark's name can have at most {LONGEST_MARK} bytes")))
        }
        name => Ok(Some(name.to_owned())),
    }
}

fn rank_of(text: &str) -> Result<u32, InvalidOption> {
    text.parse().map_err(|_| InvalidOption(format!("rank= must be a number from 0, not {text:?}")))
}

/// A whole number, at least 1.
fn whole(what: &str, text: &str, most: u64) -> Result<u64, InvalidOption> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| match most {
        u64::MAX => InvalidOption(format!("expected {what} of at least 1, not {text:?}")),
        most => InvalidOption(format!("expected {what} from 1 to {most}, not {text:?}")),
    })
}

/// A time with its unit, or a number of usual steps with an x.
fn pause(text: &str) -> Result<Pause, InvalidOption> {
    let Some(steps) = measured(text, &[("x", 1.0)]) else { return time(text).map(Pause::Time) };
    let is_sound = steps > 0.0 && steps <= MOST_STEPS;
    is_sound
        .then_some(Pause::Steps(steps))
        .ok_or_else(|| InvalidOption(format!("expected more than 0 and at most {MOST_STEPS} steps, not {text}")))
}

fn time(text: &str) -> Result<Duration, InvalidOption> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let seconds = measured(text, &units)
        .ok_or_else(|| InvalidOption(format!("expected a time with a unit (130ms) or in steps (6x), not {text}")))?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero() && *time <= LONGEST);
    time.ok_or_else(|| {
        InvalidOption(format!("expected a time of more than 0 and at most {} s, not {text}", LONGEST.as_secs()))
    })
}

fn size(text: &str) -> Result<usize, InvalidOption> {
    let units = [("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
    let bytes = measured(text, &units)
        .ok_or_else(|| InvalidOption(format!("expected a size with a unit (256MiB), not {text}")))?;
    if !(1.0..=LARGEST as f64).contains(&bytes) {
        return Err(InvalidOption(format!(
            "expected a size of at least 1 byte and at most {} GiB, not {text}",
            LARGEST >> 30
        )));
    }
    usize::try_from(bytes as u64).map_err(|_| InvalidOption(format!("{text} is more than this machine can address")))
}

/// A number with one of these units, converted to the unit whose factor is 1.
fn measured(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| is_number)?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Injection {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn stall(ms: u64) -> Cause {
        Cause::Stall {
            pause: Pause::Time(Duration::from_millis(ms)),
            charged_to: ChargedTo::Forward,
            mark: Some("injected stall".to_owned()),
        }
    }

    #[test]
    fn every_example_of_the_help_is_understood() {
        let examples = crate::inject::HELP.split("Examples: ").nth(1).unwrap();
        let examples: Vec<&str> = examples.split_whitespace().collect();
        assert_eq!(examples.len(), 11);
        examples.into_iter().for_each(|example| drop(parsed(example)));
    }

    #[test]
    fn amounts_have_units_and_some_can_be_left_out() {
        assert_eq!(parsed("stall:130ms").cause, stall(130));
        assert_eq!(parsed("stall:1.5s").cause, stall(1500));
        assert_eq!(
            parsed("slow-loader:500us").cause,
            Cause::SlowLoader { delay: Pause::Time(Duration::from_micros(500)) }
        );
        assert_eq!(parsed("slow-loader:2.5x").cause, Cause::SlowLoader { delay: Pause::Steps(2.5) });
        assert_eq!(parsed("faults:0.5GiB").cause, Cause::Faults { bytes: 512 << 20 });
        assert_eq!(parsed("leak:64KiB").cause, Cause::Leak { bytes: 64 << 10 });
        assert_eq!(parsed("contention").cause, Cause::Contention { threads: None });
        assert_eq!(parsed("contention:6").cause, Cause::Contention { threads: Some(6) });
        assert_eq!(parsed("denormals").cause, Cause::Denormals { count: 400_000 });
        assert_eq!(parsed("denormals:7").cause, Cause::Denormals { count: 7 });
    }

    #[test]
    fn steps_are_chosen() {
        let due = |text: &str| (1..=12).filter(|step| parsed(text).when.is_due(*step)).collect::<Vec<u64>>();
        assert_eq!(due("stall:1ms"), (1..=12).collect::<Vec<u64>>());
        assert_eq!(due("stall:1ms@every=4"), [4, 8, 12]);
        assert_eq!(due("stall:1ms@at=7"), [7]);
        assert_eq!(due("leak:1MiB@every=3,from=8"), [9, 12]);
    }

    #[test]
    fn a_rank_is_chosen_for_every_cause() {
        for cause in ["stall:1ms", "faults:1MiB", "slow-loader:1ms", "contention", "leak:1MiB", "denormals", "hang"] {
            assert!((0..3).all(|rank| parsed(cause).is_for(rank)), "{cause}");
            let chosen = parsed(&format!("{cause}@rank=1"));
            assert_eq!([0, 1, 2].map(|rank| chosen.is_for(rank)), [false, true, false], "{cause}");
        }
        let hang = parsed("hang@at=60,rank=0,in=backward");
        assert_eq!(
            (hang.cause, hang.when.at, hang.rank),
            (Cause::Hang { charged_to: ChargedTo::Backward }, Some(60), Some(0))
        );
        assert_eq!(parsed("skip-all-reduce@at=3,rank=2").cause, Cause::SkipAllReduce);
    }

    #[test]
    fn a_stall_has_a_place_and_a_mark() {
        let Cause::Stall { charged_to, mark, .. } = parsed("stall:1ms@every=9,in=between,mark=gc").cause else {
            panic!()
        };
        assert_eq!((charged_to, mark.as_deref()), (ChargedTo::Between, Some("gc")));
        let Cause::Stall { mark, .. } = parsed("stall:1ms@mark=none").cause else { panic!() };
        assert_eq!(mark, None);
    }

    #[test]
    fn mistakes_are_told_with_what_to_write_instead() {
        for (text, words) in [
            ("", "there is no cause \"\"; use one of stall, faults"),
            ("stal:1ms", "there is no cause \"stal\"; use one of stall, faults"),
            ("stall", "stall needs an amount, such as stall:130ms"),
            ("leak", "leak needs an amount, such as leak:1MiB"),
            ("stall:130", "expected a time with a unit (130ms) or in steps (6x), not 130"),
            ("stall:-1ms", "expected a time with a unit (130ms) or in steps (6x), not -1ms"),
            ("stall:nans", "expected a time with a unit"),
            ("stall:0ms", "more than 0 and at most 600 s, not 0ms"),
            ("stall:601s", "at most 600 s, not 601s"),
            ("stall:0x", "more than 0 and at most 10000 steps, not 0x"),
            ("stall:20000x", "more than 0 and at most 10000 steps, not 20000x"),
            ("faults:256", "expected a size with a unit (256MiB), not 256"),
            ("faults:0MiB", "at least 1 byte and at most 64 GiB, not 0MiB"),
            ("leak:100000GiB", "at most 64 GiB"),
            ("contention:0", "a number of threads from 1 to 1024, not \"0\""),
            ("contention:", "a number of threads from 1 to 1024, not \"\""),
            ("denormals:many", "a number of multiplications from 1 to"),
            ("stall:1ms@", "key=value after @, such as every=40, not \"\""),
            ("stall:1ms@every", "key=value after @, such as every=40, not \"every\""),
            ("stall:1ms@every=0", "expected a step of at least 1, not \"0\""),
            ("stall:1ms@often=3", "there is no often="),
            (
                "stall:1ms@in=loss",
                "in= must be one of forward, backward, optimizer, data-wait, step, between, not \"loss\"",
            ),
            ("stall:1ms@mark=", "mark= needs a name, or none"),
            ("stall:1ms@at=3,every=2", "at= selects a single step"),
            ("leak:1MiB@in=forward", "in= does not apply to leak"),
            ("slow-loader:1ms@every=2", "slow-loader lasts for the whole run"),
            ("contention@from=2", "contention lasts for"),
            ("stall:1ms@rank=-1", "rank= must be a number from 0, not \"-1\""),
            ("hang:1s", "hang takes no amount"),
            ("hang@mark=x", "mark= does not apply to hang"),
        ] {
            let error = text.parse::<Injection>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
