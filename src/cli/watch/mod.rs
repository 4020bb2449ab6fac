//! `gnntop watch`: looks after a run, and reports when something is wrong with it.
//!
//! ```text
//! source ─▶ run ─▶ conditions: which causes there are ─▶ alarms: which are new ─▶ notice: words and JSON ─▶ delivery: a command, an address
//! ```

mod alarms;
mod conditions;
mod delivery;
mod notice;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::exit::{SUCCESS, UsageError};
use super::named::{self, NAMED};
use super::run::{self, ProgramEntry};
use super::{output, quantities, signals};
use alarms::Alarms;
use conditions::Condition;
use delivery::Delivery;
use gnntop_analysis::findings::Watch;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::target::Target;
use gnntop_analysis::source::{Source, SourceState, follow};
use gnntop_analysis::store::SessionState;
use notice::Notice;

const EXAMPLES: &str = "\
Examples:
  gnntop watch                                    a line when the only live run hangs, dies, or slows down for a reason that is certain
  gnntop watch train.py --on 'gap.share>10%' --on death
  gnntop watch train.py --on finding=memory-growth --run 'mail -s \"training\" me'
  gnntop watch 4711 --webhook ~/.config/gnntop/webhook      Slack, Mattermost, Discord, or a service of yours

Conditions:
  death           the program died: an exception, a signal, no memory
  end             it ended, however
  hang            no step ends any more
  finding         a finding that is certain and costs 5 % of the time or more
  finding=KIND    one kind of finding, such as memory-growth or straggler, unless it is a note
  FIGURE>LIMIT    a figure is above a limit, or below it with <, in the steps of the last minute (--over); `gnntop check RUN --list`
                  lists figures

A condition is reported once when it has held for --for, and again only after it was gone for as long. The command gets a notice as
JSON on its standard input, and its text in GNNTOP_NOTICE. An address holds a token, which `ps` would show: it is read from a file,
or from GNNTOP_WEBHOOK, and `curl` posts to it. `gnntop watch` ends with the run.";

/// Time between two looks at the run.
const INTERVAL: Duration = Duration::from_millis(250);
/// After a run has ended, the reason of its death is waited for this long.
const GRACE: Duration = Duration::from_secs(3);

/// Report when a run slows down, hangs or dies
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArguments {
    /// The session by name, process id, run or their beginning [default: the only live one]
    #[arg(value_name = NAMED)]
    session: Option<String>,
    /// What to report; can be given several times [default: death, hang and finding]
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse)]
    on: Vec<Condition>,
    /// Run this in a shell for each notice
    #[arg(long = "run", value_name = "COMMAND")]
    command: Option<String>,
    /// Post each notice to the address in the first line of this file
    #[arg(long, value_name = "FILE")]
    webhook: Option<PathBuf>,
    /// How long a condition must hold, and be gone before it is reported again
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = quantities::parse_duration)]
    holds_for: Duration,
    /// Figures are those of the steps of this time
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = quantities::parse_duration)]
    over: Duration,
}

/// Does `gnntop watch`.
pub(super) fn watch(arguments: &WatchArguments) -> anyhow::Result<u8> {
    let delivery = Delivery::new(arguments.command.clone(), arguments.webhook.as_deref())?;
    let session = match named::find(arguments.session.as_deref())? {
        Target::Session(session) => session,
        Target::Recording(path) => {
            let instead = format!("gnntop report {}", path.display());
            return Err(UsageError::with_message(format!("a recording is over: `{instead}` says what happened")));
        }
        Target::Process(process) => anyhow::bail!("process {} publishes no steps to watch", process.pid()),
    };
    let conditions = if arguments.on.is_empty() { conditions::usual() } else { arguments.on.clone() };
    let mut watching = Watching {
        source: follow(&session),
        is_copy: session.copy.is_some(),
        program: run::find_by_session(&session.info),
        run: Run::default(),
        findings: Watch::new(),
        alarms: Alarms::new(arguments.holds_for),
        conditions,
        over: arguments.over,
    };
    let interruption = signals::Interruption::catch()?;
    loop {
        let (notices, is_over) = watching.poll()?;
        for notice in &notices {
            output::print(&notice.line())?;
            delivery.send(notice);
        }
        if is_over {
            return Ok(SUCCESS);
        }
        if let Some(signal) = interruption.take() {
            return Ok(signals::exit_code(signal));
        }
        thread::sleep(INTERVAL);
    }
}

/// A run, and what is said of it.
struct Watching {
    source: Box<dyn Source>,
    run: Run,
    findings: Watch,
    alarms: Alarms,
    conditions: Vec<Condition>,
    over: Duration,
    /// Whether the session is that of another machine, and the program that `gnntop run` started, if it did.
    is_copy: bool,
    program: Option<ProgramEntry>,
}

impl Watching {
    /// Takes what has arrived; returns what is to be reported now, and whether the run has ended.
    ///
    /// # Errors
    /// If the run has no figure of a name that a condition has, and cannot have it.
    fn poll(&mut self) -> anyhow::Result<(Vec<Notice>, bool)> {
        while self.source.poll(&mut self.run, INTERVAL).more {}
        if let SourceState::Ended(how) = self.source.status().state {
            return Ok((self.last_notices(&how), true));
        }
        let judgement = self.findings.update(&self.run);
        let mut found = Vec::new();
        for condition in &mut self.conditions {
            found.extend(condition.check(&self.run, judgement.as_ref(), self.over)?);
        }
        let new = self.alarms.update(found, Instant::now());
        Ok((new.into_iter().map(|cause| Notice::new(&self.run, cause)).collect(), false))
    }

    /// That it died or ended, where one of the conditions asks for that. A keeper adds the reason a moment after the end.
    fn last_notices(&mut self, how: &str) -> Vec<Notice> {
        let end = Instant::now();
        while self.run.store().session().death_text().is_none() && end.elapsed() < GRACE {
            let is_last = self.knows_how_it_ended();
            self.source.poll(&mut self.run, INTERVAL);
            if is_last {
                break;
            }
            thread::sleep(INTERVAL);
        }
        let cause = self.conditions.iter().find_map(|condition| condition.check_end(&self.run, how));
        cause.into_iter().map(|cause| Notice::new(&self.run, cause)).collect()
    }

    /// Whether nothing follows about the end: a program that raises ends its session well, and its keeper says then what it died of.
    fn knows_how_it_ended(&self) -> bool {
        let has_ended_well = matches!(self.run.store().session().state(), SessionState::Ended(_));
        has_ended_well && !self.is_copy && !self.program.as_ref().is_some_and(ProgramEntry::is_kept)
    }
}
