//! What a program's last lines say of its end: the exception that ended it, the rank that failed first by the word of the
//! launcher, a crash in native code.

use super::exception::{Cause, Exception, classify};
use super::frames::CodePlace;
use super::tracebacks::Tracebacks;

/// A traceback further from the end was handled by the program.
const LAST_LINES: usize = 80;
/// What the C++ runtime says where a process ends, by whatever cause, while its native threads still run.
const THREADS_LEFT: &str = "terminate called without an active exception";

/// The process that failed first according to a launcher, before the launcher ended the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRank {
    /// Who says so.
    pub launcher: &'static str,
    /// Its rank, or its task as Slurm counts.
    pub rank: Option<u32>,
    /// Its exit code; negative for a signal.
    pub code: Option<i32>,
}

/// What the last lines say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputEvidence {
    /// The decisive exception: of the rank that failed first, else the first that is not a consequence of another.
    pub exception: Option<Exception>,
    /// Whether there is an exception at all, perhaps one that the program has handled.
    pub has_exceptions: bool,
    /// Who failed first.
    pub failed: Option<FailedRank>,
    /// The line in which a library gives up, without an exception: a collective's watchdog, the C++ runtime, a panic.
    pub last_words: Option<(Cause, String)>,
    /// Where Python was when it crashed in native code, by its fault handler.
    pub crashed_in: Option<String>,
    /// Where it called `os._exit`.
    pub left_from: Option<String>,
    /// The line in which Slurm says that it ended the job.
    pub slurm: Option<String>,
    /// The last line that is not empty.
    pub last_line: Option<String>,
}

impl OutputEvidence {
    /// Reads the last lines of an output.
    pub fn parse(lines: &[String]) -> Self {
        let lines = last_attempt(lines);
        let mut said = Self::default();
        let (mut tracebacks, mut in_table) = (Tracebacks::default(), false);
        for (number, line) in lines.iter().enumerate() {
            let (rank, line) = without_rank(line);
            tracebacks.push_line(number, rank, line);
            in_table |= line.starts_with("Root Cause (first observed failure)");
            if in_table {
                said.read_torchrun(line);
            }
            said.read_spawn(line);
            said.read_slurm(line);
            said.read_last_words(line, lines.get(number + 1));
        }
        tracebacks.finish(lines.len());
        said.crashed_in = crash(lines);
        said.has_exceptions = !tracebacks.done.is_empty();
        said.exception = said.choose(&tracebacks.done, lines.len());
        if said.exception.is_some() && said.last_words.as_ref().is_some_and(|(_, text)| text == THREADS_LEFT) {
            said.last_words = None; // the exception ended the process
        }
        said.last_line = lines.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty()).map(str::to_owned);
        said
    }

    /// Adds what the process itself wrote down at its end, apart from its output.
    pub fn add_crash_report(&mut self, lines: &[String]) {
        self.crashed_in = self.crashed_in.take().or_else(|| crash(lines));
        let after = lines.iter().position(|line| line == "os._exit");
        self.left_from = after.and_then(|at| innermost(&lines[at + 1..]));
    }

    /// The table that torchrun prints at its end.
    fn read_torchrun(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else { return };
        let number = || value.split_whitespace().next().and_then(|word| word.parse().ok());
        let failed = self.failed.get_or_insert_with(|| FailedRank { launcher: "torchrun", ..FailedRank::default() });
        match key.trim() {
            "rank" => failed.rank = number().and_then(|rank: i32| u32::try_from(rank).ok()),
            "exitcode" => failed.code = number(),
            _ => (),
        }
    }

    /// What `torch.multiprocessing.spawn` says.
    fn read_spawn(&mut self, line: &str) {
        let after = |mark: &str| line.find(mark).map(|at| &line[at + mark.len()..]);
        let process = after("-- Process ").or_else(|| after("ProcessExitedException: process "));
        let Some((rank, how)) = process.and_then(|rest| rest.split_once(" terminated with ")) else { return };
        let signal = how.strip_prefix("signal ").and_then(|name| parse_signal(name.trim())).map(|signal| -signal);
        let code = how.strip_prefix("exit code ").and_then(|code| code.trim().parse().ok());
        self.failed =
            Some(FailedRank { launcher: "torch.multiprocessing", rank: rank.parse().ok(), code: signal.or(code) });
    }

    /// What srun and slurmstepd say. Of several tasks the first one is named first.
    fn read_slurm(&mut self, line: &str) {
        let ends =
            ["CANCELLED AT", "DUE TO TIME LIMIT", "DUE TO PREEMPTION", "oom_kill event", "Exceeded job memory limit"];
        if line.contains("slurmstepd: error:") && ends.iter().any(|end| line.contains(end)) {
            self.slurm.get_or_insert_with(|| line.trim().to_owned());
        }
        if !line.contains("srun: error:") || self.failed.is_some() {
            return;
        }
        let Some((_, rest)) = line.split_once(": task").map(|(_, rest)| rest).and_then(|rest| rest.split_once(' '))
        else {
            return;
        };
        let Some((task, how)) = rest.split_once(": ") else { return };
        let code = how.split("exit code ").nth(1).and_then(|code| code.trim().parse().ok());
        let signal = ["Killed", "Segmentation fault", "Aborted", "Bus error", "Out Of Memory"];
        let signals = [-9, -11, -6, -7, -9];
        let signal = signal.iter().zip(signals).find(|(word, _)| how.contains(**word)).map(|(_, signal)| signal);
        let rank = task.split(['-', ',']).next().and_then(|rank| rank.trim_matches(['[', ']']).parse().ok());
        self.failed = Some(FailedRank { launcher: "Slurm", rank, code: code.or(signal) });
    }

    /// Lines in which a library or a runtime ends the process itself. The first one counts: others follow from it.
    fn read_last_words(&mut self, line: &str, next: Option<&String>) {
        if self.last_words.is_some() {
            return;
        }
        let cause = classify(line);
        if line.contains("Watchdog caught collective operation timeout") {
            let at = line.find("Watchdog caught").unwrap_or(0);
            self.last_words = Some((Cause::CollectiveTimeout, line[at..].chars().take(200).collect()));
        } else if line.starts_with("terminate called") {
            let what = next.and_then(|next| next.trim().strip_prefix("what():")).map_or("", str::trim);
            let text = if what.is_empty() { line } else { what };
            let cause = classify(&format!("{line} {what}"));
            let cause = if cause == Cause::Exception { Cause::Crash } else { cause };
            self.last_words = Some((cause, text.chars().take(200).collect()));
        } else if line.starts_with("thread '") && line.contains("panicked at") {
            let message = next.map_or("", |next| next.trim());
            self.last_words = Some((Cause::Panic, format!("{} {message}", line.trim()).chars().take(200).collect()));
        } else if line.starts_with("memory allocation of ") && line.contains(" bytes failed") {
            self.last_words = Some((Cause::MemoryRefused, line.trim().to_owned()));
        } else if cause == Cause::SharedMemory {
            self.last_words = Some((cause, line.trim().chars().take(200).collect()));
        }
    }

    /// The exception that counts.
    fn choose(&self, all: &[(usize, Exception)], lines: usize) -> Option<Exception> {
        let rank = self.failed.as_ref().and_then(|failed| failed.rank);
        let mut own = all.iter().filter(|(_, exception)| !exception.is_from_launcher());
        if let Some(found) = own.clone().find(|(_, exception)| rank.is_some() && exception.rank == rank) {
            return Some(found.1.clone());
        }
        if self.failed.is_some() || all.iter().any(|(_, exception)| exception.rank.is_some()) {
            // Ranks that lose a peer fail too, and may be the first to say so.
            let is_cause = |exception: &Exception| exception.cause() != Cause::PeerGone;
            let first = own.clone().find(|(_, exception)| is_cause(exception)).or_else(|| own.next());
            return first.map(|(_, exception)| exception.clone());
        }
        // What a program catches and prints itself is further up.
        own.next_back().filter(|(at, _)| lines - at <= LAST_LINES).map(|(_, exception)| exception.clone())
    }
}

/// The lines since torchrun last started its processes again: what ended them before did not end the program.
fn last_attempt(lines: &[String]) -> &[String] {
    let ends_one = |line: &String| line.contains("failed (exitcode: ") && line.contains(" local_rank: ");
    let ends: Vec<usize> = (0..lines.len()).filter(|at| ends_one(&lines[*at])).collect();
    ends.len().checked_sub(2).map_or(lines, |before_last| &lines[ends[before_last] + 1..])
}

/// Where Python crashed in native code, by its fault handler, which may list other threads before the one that crashed.
fn crash(lines: &[String]) -> Option<String> {
    let at = lines.iter().position(|line| without_rank(line).1.starts_with("Fatal Python error: "))?;
    let is_own = |line: &String| without_rank(line).1.starts_with("Current thread ");
    let current = lines[at..].iter().position(is_own).unwrap_or(0);
    innermost(&lines[at + current + 1..])
}

/// The place of the stack that begins in these lines, innermost frame first, perhaps after lines that are not part of it.
fn innermost(lines: &[String]) -> Option<String> {
    let mut place = CodePlace::default();
    let frames = lines.iter().map(|line| without_rank(line).1);
    let frames = frames.skip_while(|line| !line.trim_start().starts_with("File \""));
    frames.take_while(|line| place.take_outer(line)).for_each(drop);
    place.text()
}

/// The rank in front of a line, as torch (`[rank1]: `) and torchrun (`[default1]:`) put it there, and the line without.
fn without_rank(line: &str) -> (Option<u32>, &str) {
    let split = |prefix: &str| line.strip_prefix(prefix)?.split_once("]:");
    match split("[rank").or_else(|| split("[default")) {
        Some((rank, rest)) => (rank.parse().ok(), rest.strip_prefix(' ').unwrap_or(rest)),
        None => (None, line),
    }
}

fn parse_signal(name: &str) -> Option<i32> {
    (1..32).find(|signal| signal_hook::low_level::signal_name(*signal) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> OutputEvidence {
        OutputEvidence::parse(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn torchrun_names_the_rank_that_failed_first() {
        let said = parse(
            "[rank0]: Traceback (most recent call last):
[rank0]:   File \"/w/train.py\", line 30, in <module>
[rank0]:     dist.all_reduce(x)
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:28231
[rank1]: Traceback (most recent call last):
[rank1]:   File \"/w/data.py\", line 81, in tokenize
[rank1]:     return table[word]
[rank1]: KeyError: 'x'
W1122 api.py:1029] Sending process 10 closing signal SIGTERM
Traceback (most recent call last):
  File \"/bin/torchrun\", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_21:00:00
  host      : bench
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 4712)
  error_file: <N/A>
",
        );
        assert_eq!(said.failed, Some(FailedRank { launcher: "torchrun", rank: Some(1), code: Some(1) }));
        let exception = said.exception.unwrap();
        assert_eq!(
            (exception.text.as_str(), exception.place.as_deref()),
            ("KeyError: 'x'", Some("tokenize, data.py:81"))
        );
    }

    #[test]
    fn native_threads_that_an_exception_leaves_are_no_crash() {
        let after =
            "Traceback (most recent call last):\n  File \"/w/train.py\", line 30, in load\nValueError: bad graph\n";
        let said = parse(&format!("{after}{THREADS_LEFT}\n[rank0]: Traceback (most recent call last):"));
        assert_eq!((said.exception.unwrap().text.as_str(), said.last_words), ("ValueError: bad graph", None));
        let alone = parse(&format!("{THREADS_LEFT}\nmake: ***")).last_words;
        assert_eq!(alone, Some((Cause::Crash, THREADS_LEFT.to_owned())));
    }

    #[test]
    fn what_ended_an_earlier_attempt_of_torchrun_is_no_cause() {
        let attempt = |rank: u32, error: &str| {
            let peer = 1 - rank;
            format!(
                "[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File \"/w/train.py\", line 9, in <module>
[rank{rank}]: {error}
[rank{peer}]: Traceback (most recent call last):
[rank{peer}]: RuntimeError: Connection closed by peer [127.0.0.1]:6556
E1129 14:50:52 21708 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: {rank} (pid: 21731) of binary: /bin/python3
"
            )
        };
        let table =
            "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 2)\n";
        let said =
            parse(&format!("{}{}{table}", attempt(1, "ValueError: bad record"), attempt(0, "KeyError: 'state'")));
        assert_eq!(said.exception.unwrap().text, "KeyError: 'state'");
        let said = parse(&format!("{}{table}", attempt(0, "KeyError: 'state'")));
        assert_eq!(said.exception.unwrap().text, "KeyError: 'state'");
    }

    #[test]
    fn lost_peer_without_torchrun_table_is_no_cause() {
        let said = parse(
            "[rank0]: Traceback (most recent call last):
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:28231
[rank1]: Traceback (most recent call last):
[rank1]: ValueError: 1",
        );
        assert_eq!(said.exception.unwrap().text, "ValueError: 1");
    }

    #[test]
    fn spawn_and_slurm_name_the_failed_rank() {
        let spawned =
            parse("torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL");
        assert_eq!(
            spawned.failed,
            Some(FailedRank { launcher: "torch.multiprocessing", rank: Some(2), code: Some(-9) })
        );
        let slurm = parse(
            "srun: error: n1: task 3: Exited with exit code 7
srun: error: n2: tasks 0-2: Terminated
slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2026-11-22T21:00:00 DUE TO TIME LIMIT ***",
        );
        assert_eq!(slurm.failed, Some(FailedRank { launcher: "Slurm", rank: Some(3), code: Some(7) }));
        assert!(slurm.slurm.unwrap().ends_with("DUE TO TIME LIMIT ***"));
    }

    #[test]
    fn last_exception_is_chosen_and_handled_one_is_not() {
        let handled = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n";
        assert_eq!(parse(handled).exception.unwrap().place.as_deref(), Some("f, a.py:1"));
        assert_eq!(parse(&format!("{handled}{}", "step\n".repeat(200))).exception, None);
        let chained =
            format!("{handled}\nDuring handling of the above exception, another exception occurred:\n\n{}", {
                "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\nValueError: 2"
            });
        assert_eq!(parse(&chained).exception.unwrap().text, "ValueError: 2");
    }

    #[test]
    fn crashes_and_runtime_aborts_are_parsed() {
        let crash = parse(
            "Fatal Python error: Segmentation fault

Thread 0x2 (most recent call first):
  File \"/w/b.py\", line 7 in other

Current thread 0x1 (most recent call first):
  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at
  File \"/w/a.py\", line 3 in f
  File \"/w/a.py\", line 9 in <module>",
        );
        assert_eq!(crash.crashed_in.as_deref(), Some("f, a.py:3 (inside string_at, __init__.py:519)"));
        let mut left = OutputEvidence::default();
        let ending = ["os._exit", "  File \"/w/a.py\", line 3 in f", "  File \"/w/a.py\", line 9 in <module>"];
        left.add_crash_report(&ending.map(str::to_owned));
        assert_eq!((left.left_from.as_deref(), left.crashed_in), (Some("f, a.py:3"), None));
        let watchdog = parse(
            "[rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600001 milliseconds",
        );
        let (cause, text) = watchdog.last_words.unwrap();
        assert!(cause == Cause::CollectiveTimeout && text.contains("OpType=ALLREDUCE"), "{text}");
        let cpp = parse("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc");
        assert_eq!(cpp.last_words.unwrap().0, Cause::MemoryRefused);
        let panic = parse("thread 'main' panicked at src/a.rs:3:1:\nno batch");
        assert_eq!(
            panic.last_words.unwrap(),
            (Cause::Panic, "thread 'main' panicked at src/a.rs:3:1: no batch".to_owned())
        );
    }
}
