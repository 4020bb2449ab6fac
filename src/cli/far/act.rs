//! Commands that act on a program, or whose answer is short: they run on the other machines, and what they say there is shown here.

use std::ffi::OsString;
use std::time::Duration;

use super::super::exit::FAILURE;
use super::super::output;
use super::super::signals::{self, Interruption};
use super::address::FarAddress;
use super::carrier::Carrier;
use super::lines::{self, CommandEnd, MAX_TOTAL, SaidLine};
use super::process::exit_code;

/// A list is not waited for longer; other commands wait for a program.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command on each machine in turn.
pub(super) fn act(words: &[OsString], at: usize, address: &FarAddress) -> anyhow::Result<u8> {
    let mut far: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    far.splice(at..=at, address.run.clone());
    let interruption = Interruption::catch()?;
    let carriers = Carrier::to(&address.place, &interruption)?;
    let patience = if far.first().is_some_and(|command| command == "list") { PATIENCE } else { Duration::MAX };
    let mut code = 0;
    for carrier in &carriers {
        if carriers.len() > 1 {
            output::print(&format!("{}:", carrier.host))?;
        }
        let host = &carrier.host;
        code = code.max(match run_there(carrier, &far, patience, &interruption)? {
            CommandEnd::Exit(status) => status.map_or(FAILURE, exit_code),
            CommandEnd::TooMuch => {
                failure(&format!("{host} says more than {} KiB; the rest is left out", MAX_TOTAL >> 10))
            }
            CommandEnd::TooLong => {
                failure(&format!("{host} does not answer: it has said nothing for {} s", patience.as_secs()))
            }
            CommandEnd::Interrupted(signal) => return Ok(signals::exit_code(signal)),
        });
    }
    Ok(code)
}

fn failure(text: &str) -> u8 {
    output::print_error(text);
    FAILURE
}

/// Runs it on one machine, and shows what it says as it comes. What a terminal would obey does not pass.
fn run_there(
    carrier: &Carrier,
    words: &[String],
    patience: Duration,
    interruption: &Interruption,
) -> anyhow::Result<CommandEnd> {
    let mut take = |line: SaidLine| {
        let text = if line.is_cut { line.text + " ... (the rest of the line is left out)" } else { line.text };
        if line.is_error {
            output::print_note(&text)
        } else {
            output::print(&text)?
        }
        Ok(())
    };
    let mut silent = lines::waiting_for(&carrier.host, patience);
    lines::run(carrier.command(words), interruption, &mut take, &mut silent)
}
