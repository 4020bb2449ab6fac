//! `gnntop trace`: torch.profiler for a few steps of a running PyTorch program.
//!
//! [`followed_session`] follows the session and knows when to ask. [`trace_request`] puts the request into the session's directory, where the
//! program finds it, and waits for the answer. A table then says what the steps spent their time in.

mod followed_session;
mod trace_request;

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use gnntop_sessions::request;

use self::followed_session::FollowedSession;
use self::trace_request::{TraceRequest, WaitOutcome};
use super::exit::SUCCESS;
use super::named::{self, NAMED};
use super::new_file::NewFile;
use super::{output, quantities, run, signals};
use crate::app::View;
use crate::import::chrome::{self, Operator, Operators};
use gnntop_analysis::figures::{self, counted, duration, percent};
use gnntop_analysis::source::Launcher;
use gnntop_analysis::source::target::{self, Target, is_same_program};
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::layout;

const EXAMPLES: &str = "\
Examples:
  gnntop trace                        the next 5 steps of the only live session
  gnntop trace 4711 --steps 2         by process id
  gnntop trace pna --at slow          after the next step that takes longer than the session's p99
  gnntop trace pna -o pna.json        then open pna.json in https://ui.perfetto.dev

Runs torch.profiler in a PyTorch program that `gnntop run` or `gnntop attach` watches, without restarting it. These steps take
longer, and the program waits while the trace is written; percentiles and findings leave these steps out. Afterwards the
operators and kernels are also spans of the session.";

/// Number at which names for files run out.
const MOST_FILES: u32 = 1000;

/// Which steps to trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum TraceStart {
    /// The next steps
    #[default]
    Now,
    /// The steps after the next one that takes longer than the session's p99
    Slow,
}

/// Trace the next steps of a PyTorch program: operators and kernels
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TraceArguments {
    /// A session by name, process id, run or their beginning, or its directory [default: the only live one]
    #[arg(value_name = NAMED)]
    session: Option<String>,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(request::MAX_STEPS)))]
    steps: u32,
    /// When to begin
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    at: TraceStart,
    /// Output file, in Chrome's JSON format [default: NAME-PID-trace.json, then NAME-PID-trace-2.json]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// How long to wait for the trace
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = quantities::parse_duration)]
    within: Duration,
}

/// Does `gnntop trace`.
pub(super) fn trace(arguments: &TraceArguments) -> anyhow::Result<u8> {
    let interruption = signals::Interruption::catch()?;
    let session = find_live(arguments.session.as_deref())?;
    let mut watched = FollowedSession::follow(&session)?;
    let path = arguments.output.clone().unwrap_or_else(|| free_name(&session));
    let file = NewFile::create(&path, arguments.force, &[&session.dir])?;
    let until = Instant::now() + arguments.within;
    let ended = if arguments.at == TraceStart::Slow { watched.wait_for_slow(&interruption, until) } else { Ok(None) };
    let ended = ended.and_then(|signal| match signal {
        Some(signal) => Ok(WaitOutcome::Interrupted(signal)),
        None => TraceRequest::send(&session.dir, arguments.steps)?.wait(&watched, &interruption, until),
    });
    match ended {
        Ok(WaitOutcome::Done(trace)) => {
            fetch(&trace, &file)?;
            file.finish()?;
            print_result(&trace, arguments.steps, &path, &session)
        }
        Ok(WaitOutcome::Interrupted(signal)) => {
            file.discard();
            Ok(signals::exit_code(signal))
        }
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

/// The live session that is meant.
fn find_live(named: Option<&str>) -> anyhow::Result<ListedSession> {
    match named::find(named)? {
        Target::Session(session) if session.alive => Ok(*session),
        Target::Session(session) => {
            let running = running_namesake(&session).map(|running| format!("; {running}")).unwrap_or_default();
            bail!("{} has ended: only a running program can be traced{running}", target::label(&session))
        }
        Target::Recording(path) => bail!("{} is a recording: only a running program can be traced", path.display()),
        Target::Process(process) if run::launcher(process.pid()) == Launcher::Gnntop => {
            bail!("process {} has published no steps yet: it can be traced from the first one on", process.pid())
        }
        Target::Process(process) => bail!(
            "process {} publishes nothing: start it with `gnntop run -- python ...`, or join it with `gnntop attach {}` first",
            process.pid(),
            process.pid()
        ),
    }
}

/// What can be said of a program that runs, has published nothing, and may be meant by the name or id of this session, which has ended.
fn running_namesake(session: &ListedSession) -> Option<String> {
    let is_it = |program: &run::ProgramEntry| {
        program.program == session.info.pid || is_same_program(&program.name, &session.info.name)
    };
    let sessions = discover::list(&layout::sessions_dir()).ok()?.sessions;
    let running = run::unpublished(&sessions).into_iter().find(is_it)?;
    Some(match running.elsewhere() {
        Some(place) => format!("{} runs {place}: run gnntop there", running.label()),
        None if running.publishes(&session.info) => "its process still runs".to_owned(),
        None => format!("{} runs, and has published no steps yet", running.label()),
    })
}

/// A file that does not exist yet: a session may be traced several times.
fn free_name(session: &ListedSession) -> PathBuf {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = session.info.name.chars().map(plain).collect();
    let name = format!("{name}-{}-trace", session.info.pid);
    let numbered = (2..MOST_FILES).map(|n| format!("{name}-{n}.json"));
    let mut names = std::iter::once(format!("{name}.json")).chain(numbered).map(PathBuf::from);
    names.find(|path| !path.exists()).unwrap_or_else(|| PathBuf::from(format!("{name}.json")))
}

/// Copies the trace out of the session's directory.
fn fetch(trace: &trace_request::WrittenTrace, file: &NewFile) -> anyhow::Result<()> {
    let from = trace.pending.trace();
    let mut from = from.map_err(|error| anyhow!("cannot read the trace: the session's directory {error}"))?;
    io::copy(&mut from, &mut file.file()).context("cannot write the trace")?;
    Ok(())
}

/// Says what the trace has, and where it is.
fn print_result(
    trace: &trace_request::WrittenTrace,
    asked: u32,
    path: &std::path::Path,
    session: &ListedSession,
) -> anyhow::Result<u8> {
    let size = std::fs::metadata(path).map_or(0, |found| found.len());
    output::print(&operator_table(&chrome::operators(path)?))?;
    let steps = if trace.first == trace.last {
        format!("step {}", trace.first)
    } else {
        format!("steps {} to {}", trace.first, trace.last)
    };
    output::print_note(&format!(
        "{}: {steps}, {}; open it in https://ui.perfetto.dev",
        path.display(),
        figures::bytes(size as f64)
    ));
    if trace.last.saturating_sub(trace.first) + 1 < u64::from(asked) {
        output::print_note(&format!(
            "these are fewer than {asked} steps: a longer trace would have taken too much memory"
        ));
    }
    if trace.spans > 0 {
        let key = View::Tracks.key().unwrap_or_default();
        output::print_note(&format!("on the screen: `gnntop attach {}`, then {key} (tracks)", session.info.pid));
    }
    Ok(SUCCESS)
}

/// Lines for the CPU, and for GPUs.
const MAX_LINES: usize = 12;
/// Columns of a name.
const NAME_WIDTH: usize = 44;

/// A table of the operators, and one of the kernels if there are any.
fn operator_table(operators: &Operators) -> String {
    let steps = operators.steps.max(1) as f64;
    let mut text = format!(
        "{}, {} each\n",
        counted(operators.steps, "step", "steps"),
        duration((operators.steps_us * 1e3 / steps) as u64)
    );
    for (title, is_kernel) in [("operator, own time", false), ("kernel", true)] {
        let all: Vec<&Operator> = operators.all.iter().filter(|operator| operator.is_kernel == is_kernel).collect();
        if all.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title:NAME_WIDTH$} {:>8} {:>9} {:>8}", "a step", "calls", "share");
        for operator in all.iter().take(MAX_LINES) {
            push_row(&mut text, operators, &operator.name, operator.own_us, Some(operator.calls));
        }
        if all.len() > MAX_LINES {
            let rest = all[MAX_LINES..].iter().map(|operator| operator.own_us).sum();
            push_row(&mut text, operators, &format!("{} others", all.len() - MAX_LINES), rest, None);
        }
        if !is_kernel {
            push_row(&mut text, operators, "outside operators: Python, waiting", operators.outside_us, None);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn push_row(text: &mut String, operators: &Operators, name: &str, us: f64, calls: Option<u64>) {
    let steps = operators.steps.max(1) as f64;
    let name: String = match name.chars().count() {
        ..=NAME_WIDTH => name.to_owned(),
        _ => name.chars().take(NAME_WIDTH - 1).chain(['…']).collect(),
    };
    let calls = calls.map_or_else(String::new, |calls| format!("{:.0}", calls as f64 / steps));
    let share = if operators.steps_us > 0.0 { percent(us / operators.steps_us) } else { "-".to_owned() };
    let _ = writeln!(text, "{name:NAME_WIDTH$} {:>8} {calls:>9} {share:>8}", duration((us * 1e3 / steps) as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_operators_and_one_of_kernels() {
        let operator =
            |name: &str, is_kernel, calls, own_us| Operator { name: name.to_owned(), is_kernel, calls, own_us };
        let mut all = vec![operator("aten::addmm", false, 20, 6000.0), operator("gemm", true, 10, 4000.0)];
        all.extend((0..14).map(|n| operator(&format!("aten::op{n}"), false, 10, 10.0)));
        let found = Operators { steps: 10, steps_us: 10_000.0, outside_us: 3860.0, all };
        let text = operator_table(&found);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "10 steps, 1.00 ms each");
        assert_eq!(lines[2], "operator, own time                             a step     calls    share");
        assert_eq!(lines[3], "aten::addmm                                    600 µs         2     60 %");
        assert_eq!(lines[15], "3 others                                      3.00 µs              0.3 %");
        assert_eq!(lines[16], "outside operators: Python, waiting             386 µs               39 %");
        assert_eq!(lines[19], "gemm                                           400 µs         1     40 %");
        assert_eq!(lines.len(), 20);
    }

    #[test]
    fn table_of_empty_trace_is_short() {
        assert_eq!(operator_table(&Operators::default()), "0 steps, 0 ns each");
    }
}
