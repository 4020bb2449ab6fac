//! The words for a program's end: what ended it, who failed first, what it was doing, its memory, and what to try.

use signal_hook::consts::SIGXCPU;
use signal_hook::low_level::signal_name;

use super::diagnosis::{self, Evidence, LastMoment, MemoryChange};
use super::exception::Cause;
use super::output::OutputEvidence;
use gnntop_analysis::figures::{bytes, count, duration};

/// Why a program died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The cause.
    pub cause: Cause,
    /// The whole of it, in one paragraph.
    pub text: String,
}

/// Memory that changed by less is one figure...
const STEADY: f64 = 0.1;
/// ...which is worth a sentence if it was one for this long.
const STEADY_NS: u64 = 10_000_000_000;

impl Death {
    /// Why it died; `None` where it ended well.
    pub fn from_evidence(evidence: &Evidence<'_>) -> Option<Self> {
        let cause = diagnosis::diagnose(evidence)?;
        let sentences = [
            Some(headline(cause, evidence)),
            others(cause, evidence),
            place(&evidence.moment),
            evidence.moment.stack.as_ref().filter(|_| is_place_unknown(evidence.output)).map(stack),
            evidence.moment.memory.as_ref().and_then(memory),
            advice(cause, evidence).map(str::to_owned),
        ];
        Some(Self { cause, text: sentences.into_iter().flatten().collect::<Vec<_>>().join(" ") })
    }
}

/// What ended it.
fn headline(cause: Cause, evidence: &Evidence<'_>) -> String {
    let who = subject(evidence);
    let said = evidence.output;
    let exception = || {
        let Some(exception) = &said.exception else { return String::new() };
        let place = exception.place.as_ref().map(|place| format!(", in {place}")).unwrap_or_default();
        let thread = exception.thread.as_ref().map(|name| format!(", on its thread {name}")).unwrap_or_default();
        format!("{}{place}{thread}", exception.text.trim_end_matches('.'))
    };
    let words = || said.last_words.as_ref().map(|(_, text)| text.trim_end_matches('.').to_owned());
    let what = || words().unwrap_or_else(exception);
    match cause {
        Cause::Asked => format!("{who} was asked to stop: gnntop passed {} on to it.", passed_on(evidence)),
        Cause::JobEnded => job_ended(&who, evidence),
        Cause::OutOfMemory => out_of_memory(&who, evidence),
        Cause::MemoryRefused => format!("{who} ran out of memory: {}{}.", what(), address_space(evidence)),
        Cause::GpuMemory => format!("{who} ran out of GPU memory: {}.", exception()),
        Cause::Cuda => format!("{who} failed on the GPU: {}.", what()),
        Cause::CollectiveTimeout => format!("{who} timed out waiting for other ranks: {}.", what()),
        Cause::PeerGone => format!("{who} lost its connection to another rank: {}.", what()),
        Cause::LoaderDied => format!("{who} lost a worker of its data loader: {}.", exception()),
        Cause::SharedMemory => format!("{who} ran out of shared memory (/dev/shm): {}.", what()),
        Cause::DiskFull => format!("{who} found the disk full: {}.", what()),
        Cause::FileLimit => format!("{who} reached the limit on the size of files (ulimit -f)."),
        Cause::TooMany => format!("{who} ran out of threads, processes or open files: {}.", exception()),
        Cause::NoTerminal => {
            format!("{who} wanted to read from a terminal, and `gnntop run` gives it none: {}.", exception())
        }
        Cause::NoModule | Cause::Exception => format!("{who} raised an exception: {}.", exception()),
        Cause::Panic => format!("{who} panicked: {}.", what().trim_start_matches("thread ")),
        Cause::Crash => crash(&who, evidence),
        Cause::CpuLimit => cpu_limit(&who, evidence),
        Cause::SystemCallFilter => format!(
            "{who} was ended by SIGSYS, which the kernel sends for a system call that a filter (seccomp) forbids."
        ),
        Cause::Killed => format!("{who} was killed by SIGKILL. {}", no_kill(evidence)),
        Cause::Signal => format!("{who} was ended by {}.", ended_by(evidence)),
        Cause::ExitCode => exit_code(&who, &exception(), evidence),
    }
}

/// What is known of a program that chose its exit code; `exception` is the last one that it printed, if it did.
fn exit_code(who: &str, exception: &str, evidence: &Evidence<'_>) -> String {
    let said = evidence.output;
    let code = diagnosis::code(evidence).unwrap_or_default();
    let end = match (&said.left_from, diagnosis::signal_of_child(evidence)) {
        (Some(place), _) => format!("{who} called os._exit in {place}: exit code {code}"),
        (None, Some(signal)) => {
            let signal = format_signal(signal);
            format!("{who} exited with code {code}, as a shell does for a program that {signal} ended")
        }
        (None, None) => format!("{who} exited with code {code}"),
    };
    if !exception.is_empty() {
        return format!("{end}. The last exception that it printed: {exception}.");
    }
    let silence = match (said.has_exceptions, &said.left_from) {
        (true, _) => "",
        (false, Some(_)) => ", and no exception",
        (false, None) => " and printed no exception",
    };
    let line = said.last_line.as_ref().map(|line| line.chars().take(160).collect::<String>());
    format!("{end}{silence}.{}", line.map(|line| format!(" Its last line: \"{line}\".")).unwrap_or_default())
}

/// The program, or the rank of it that failed first.
fn subject(evidence: &Evidence<'_>) -> String {
    let rank = evidence.output.failed.as_ref().and_then(|failed| failed.rank);
    let rank = rank.or_else(|| evidence.output.exception.as_ref().and_then(|exception| exception.rank));
    rank.map_or_else(|| evidence.name.to_owned(), |rank| format!("rank {rank} of {}", evidence.name))
}

fn job_ended(who: &str, evidence: &Evidence<'_>) -> String {
    let job = evidence.slurm_job.map(|job| format!(" job {job}")).unwrap_or_default();
    match &evidence.output.slurm {
        Some(line) => format!("Slurm ended{job} with {who} in it: {}.", line.trim_matches(['*', ' ', '.'])),
        None => format!(
            "{who} received {}. Slurm sends it at the time limit of{job}, on `scancel`, and to all tasks when one of them fails.",
            passed_on(evidence)
        ),
    }
}

fn out_of_memory(who: &str, evidence: &Evidence<'_>) -> String {
    let memory = evidence.memory;
    let whom = match &evidence.output.exception {
        Some(exception) if exception.cause() == Cause::LoaderDied => format!("a worker of {who}'s data loader"),
        _ => who.to_owned(),
    };
    if memory.killed_in_group.is_some_and(|kills| kills > 0) || evidence.output.slurm.is_some() {
        let limit =
            memory.limit_bytes.map(|limit| format!(", limited to {},", bytes(limit as f64))).unwrap_or_default();
        let peak = memory.peak_bytes.map(|peak| format!(", with a peak of {}", bytes(peak as f64))).unwrap_or_default();
        return format!("The kernel killed {whom} because its control group{limit} ran out of memory{peak}.");
    }
    format!(
        "{whom} was killed by SIGKILL. The kernel's out-of-memory killer ran on this machine at that time, so it most likely \
         killed this process."
    )
}

/// The limit on the address space, if there is one.
fn address_space(evidence: &Evidence<'_>) -> String {
    let limit = evidence.memory.address_space_bytes;
    limit
        .map(|limit| format!(", with an address space limited to {} (ulimit -v)", bytes(limit as f64)))
        .unwrap_or_default()
}

fn crash(who: &str, evidence: &Evidence<'_>) -> String {
    let place = match (&evidence.output.crashed_in, &evidence.output.last_words) {
        (Some(place), _) => format!(", in {place}"),
        (None, Some((_, text))) => format!(": {text}"),
        (None, None) => String::new(),
    };
    format!("{who} crashed in native code with {}{place}.", ended_by(evidence))
}

/// What is known of a program that has used the CPU for as long as it may.
fn cpu_limit(who: &str, evidence: &Evidence<'_>) -> String {
    let cpu = evidence.cpu;
    let seconds = |seconds: f64| duration((seconds * 1e9) as u64);
    let limit = |limit_s: Option<u64>| seconds(limit_s.unwrap_or_default() as f64);
    if let Some(signal) = diagnosis::signal_of_child(evidence) {
        let limit = limit(if signal == SIGXCPU { cpu.soft_limit_s } else { cpu.hard_limit_s });
        let (signal, used) = (format_signal(signal), seconds(cpu.used_by_children_s.max(cpu.used_s.unwrap_or(0.0))));
        return format!(
            "{who} exited as a shell does for a program that {signal} ended, most likely at the limit on CPU time of \
             {limit} (ulimit -t): what it ran has used {used}."
        );
    }
    let limit = limit(if diagnosis::signal(evidence) == Some(SIGXCPU) { cpu.soft_limit_s } else { cpu.hard_limit_s });
    format!(
        "{who} reached the limit on CPU time of {limit} (ulimit -t), and was ended by {}: it had used {}.",
        ended_by(evidence),
        seconds(cpu.used_s.unwrap_or_default())
    )
}

/// For a kill by an unknown sender: what the kernel says about it.
fn no_kill(evidence: &Evidence<'_>) -> &'static str {
    match evidence.memory.killed_in_group.or(evidence.memory.killed_on_machine) {
        Some(_) => {
            "It was not the kernel's out-of-memory killer: most likely a person, a job manager, the program itself or \
             another one sent it."
        }
        None => "On this machine gnntop cannot see whether the kernel's out-of-memory killer sent it.",
    }
}

fn ended_by(evidence: &Evidence<'_>) -> String {
    let code = || diagnosis::code(evidence).map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    let signal = diagnosis::signal(evidence).or_else(|| diagnosis::signal_of_child(evidence));
    signal.map_or_else(code, format_signal)
}

fn passed_on(evidence: &Evidence<'_>) -> String {
    evidence.passed_on.map_or_else(|| "a signal".to_owned(), format_signal)
}

fn format_signal(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Who failed first and what happened to the others.
fn others(cause: Cause, evidence: &Evidence<'_>) -> Option<String> {
    let failed = evidence.output.failed.as_ref()?;
    let how = match failed.code {
        Some(code) if code < 0 => format!(", by {}", format_signal(-code)),
        Some(code) if cause != Cause::ExitCode => format!(", with exit code {code}"),
        _ => String::new(),
    };
    Some(format!("It was the first to fail{how}; {} reported that, and then ended the others.", failed.launcher))
}

/// What it was doing.
fn place(moment: &LastMoment) -> Option<String> {
    if let Some(silent_ns) = moment.silent_ns {
        let last =
            moment.last_step.map(|last| format!("; before, it finished step {}", count(last))).unwrap_or_default();
        return Some(format!("Nothing was recorded in its last {}{last}.", duration(silent_ns)));
    }
    match (&moment.phase, moment.last_step) {
        (Some((phase, Some(step))), _) => Some(format!("It was in {phase} of step {}.", count(*step))),
        (Some((phase, None)), Some(last)) => Some(format!("It was in {phase}, after step {}.", count(last))),
        (Some((phase, None)), None) => Some(format!("It was in {phase}, before its first step.")),
        (None, Some(last)) => Some(format!("The last step that it finished was step {}.", count(last))),
        (None, None) => None,
    }
}

/// Whether the output and the process itself say nothing of where in the program it ended.
fn is_place_unknown(said: &OutputEvidence) -> bool {
    let place = said.exception.as_ref().and_then(|exception| exception.place.as_ref());
    place.or(said.crashed_in.as_ref()).or(said.left_from.as_ref()).is_none()
}

/// Where in the program it was.
fn stack((place, before_ns): &(String, u64)) -> String {
    format!("A stack taken {} before the end shows {place}.", duration(*before_ns))
}

/// Memory in the last minute, unless it was only looked at for a moment, and steady.
fn memory(growth: &MemoryChange) -> Option<String> {
    let MemoryChange { from_bytes, to_bytes, over_ns } = *growth;
    let over = duration(over_ns);
    if (to_bytes - from_bytes).abs() <= STEADY * to_bytes.max(from_bytes) {
        return (over_ns >= STEADY_NS)
            .then(|| format!("Its memory was steady at {} for the last {over}.", bytes(to_bytes)));
    }
    let word = if to_bytes > from_bytes { "grew" } else { "fell" };
    Some(format!("Its memory {word} from {} to {} in its last {over}.", bytes(from_bytes), bytes(to_bytes)))
}

/// One thing to try.
fn advice(cause: Cause, evidence: &Evidence<'_>) -> Option<&'static str> {
    Some(match cause {
        Cause::OutOfMemory => "Try a smaller batch, fewer loader workers or ranks, or a higher memory limit.",
        Cause::MemoryRefused if evidence.memory.address_space_bytes.is_some() => {
            "Raise the limit, or try a smaller batch or fewer loader workers."
        }
        Cause::MemoryRefused => "Try a smaller batch or fewer loader workers.",
        Cause::GpuMemory => "Try a smaller batch, gradient accumulation, or activation checkpointing.",
        Cause::Cuda => "Run it once with CUDA_LAUNCH_BLOCKING=1: errors are reported late otherwise.",
        Cause::CollectiveTimeout => "Another rank never arrived: see what the other ranks were doing.",
        Cause::PeerGone => "The other rank ended first: look at its output.",
        Cause::LoaderDied => "Run it once with num_workers=0 to see the worker's own error.",
        Cause::SharedMemory => "Enlarge /dev/shm (docker run --shm-size), or use fewer loader workers.",
        Cause::DiskFull => "Free some space, or write elsewhere.",
        Cause::TooMany => "Raise the limit (ulimit -u, ulimit -n), or use fewer loader workers.",
        Cause::NoTerminal => {
            "Give it what it asks for by a pipe, as in `echo yes | gnntop run -- ...`, or the terminal: `gnntop run --tty -- ...`."
        }
        Cause::CpuLimit => "Raise the limit, or save its state before it is reached.",
        Cause::NoModule => "Install it in this program's environment.",
        Cause::Crash if evidence.output.crashed_in.is_none() => {
            "If it is a Python program, run it once with PYTHONFAULTHANDLER=1 to see where it was."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::ProcessEnd;
    use super::super::kernel::MemoryFigures;
    use super::super::last_state::CpuFigures;
    use super::*;

    const GIB: u64 = 1 << 30;

    fn moment() -> LastMoment {
        let memory = MemoryChange { from_bytes: 1.0e9, to_bytes: 4.0e9, over_ns: 60_000_000_000 };
        let phase = Some(("forward".to_owned(), Some(812)));
        LastMoment { last_step: Some(811), phase, stack: None, memory: Some(memory), silent_ns: None }
    }

    fn parse_output(output: &str) -> OutputEvidence {
        OutputEvidence::parse(&output.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    fn evidence(ended: ProcessEnd, said: &OutputEvidence) -> Evidence<'_> {
        let memory = MemoryFigures { killed_in_group: Some(0), killed_on_machine: Some(0), ..MemoryFigures::default() };
        Evidence {
            name: "train.py",
            ended,
            passed_on: None,
            slurm_job: None,
            output: said,
            memory,
            is_shell: false,
            cpu: CpuFigures::default(),
            moment: LastMoment::default(),
        }
    }

    #[track_caller]
    fn check(evidence: &Evidence<'_>, cause: Cause, words: &[&str]) {
        let death = Death::from_evidence(evidence).unwrap();
        assert_eq!(death.cause, cause, "{}", death.text);
        words.iter().for_each(|word| assert!(death.text.contains(word), "no {word:?} in {}", death.text));
    }

    #[test]
    fn successful_exit_is_no_death() {
        let said = parse_output("Traceback (most recent call last):\nValueError: 1");
        assert_eq!(Death::from_evidence(&evidence(ProcessEnd::Code(0), &said)), None);
    }

    #[test]
    fn out_of_memory_kill_has_group_figures() {
        let said = OutputEvidence::default();
        let memory = MemoryFigures {
            killed_in_group: Some(1),
            killed_on_machine: Some(1),
            limit_bytes: Some(4 * GIB),
            peak_bytes: Some(4 * GIB),
            address_space_bytes: None,
        };
        let evidence = Evidence { memory, moment: moment(), ..evidence(ProcessEnd::Signal(9), &said) };
        assert_eq!(
            Death::from_evidence(&evidence).unwrap().text,
            "The kernel killed train.py because its control group, limited to 4.00 GiB, ran out of memory, with a peak of \
             4.00 GiB. It was in forward of step 812. Its memory grew from 954 MiB to 3.73 GiB in its last 60.0 s. Try a smaller \
             batch, fewer loader workers or ranks, or a higher memory limit."
        );
        let elsewhere =
            MemoryFigures { killed_in_group: Some(0), killed_on_machine: Some(1), ..MemoryFigures::default() };
        check(&Evidence { memory: elsewhere, ..evidence }, Cause::OutOfMemory, &["most likely killed this process"]);
    }

    #[test]
    fn kill_not_counted_by_kernel_has_unknown_sender() {
        let said = OutputEvidence::default();
        check(
            &evidence(ProcessEnd::Signal(9), &said),
            Cause::Killed,
            &["SIGKILL", "not the kernel's out-of-memory killer"],
        );
        let unknown = Evidence { memory: MemoryFigures::default(), ..evidence(ProcessEnd::Signal(9), &said) };
        check(&unknown, Cause::Killed, &["cannot see whether"]);
    }

    #[test]
    fn exit_code_is_no_signal_unless_a_shell_may_have_passed_one_on() {
        let said = OutputEvidence::default();
        let text = |evidence: &Evidence<'_>| Death::from_evidence(evidence).unwrap().text;
        for (code, signal) in [(137, "SIGKILL"), (139, "SIGSEGV"), (130, "SIGINT"), (141, "SIGPIPE"), (143, "SIGTERM")]
        {
            // What was killed elsewhere on the machine was not this.
            let memory = MemoryFigures { killed_on_machine: Some(1), ..MemoryFigures::default() };
            let own = Evidence { memory, ..evidence(ProcessEnd::Code(code), &said) };
            assert_eq!(text(&own), format!("train.py exited with code {code} and printed no exception."));
            let shell = Evidence { is_shell: true, ..evidence(ProcessEnd::Code(code), &said) };
            check(&shell, Cause::ExitCode, &[&format!("{code}, as a shell does for a program that {signal} ended")]);
        }
        let memory = MemoryFigures { killed_in_group: Some(1), ..MemoryFigures::default() };
        let shell = Evidence { is_shell: true, memory, ..evidence(ProcessEnd::Code(137), &said) };
        check(&shell, Cause::OutOfMemory, &["its control group"]);
        let crash = parse_output(
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n  File \"/w/a.py\", line 3 in f",
        );
        let shell = Evidence { is_shell: true, ..evidence(ProcessEnd::Code(139), &crash) };
        check(&shell, Cause::Crash, &["SIGSEGV, in f, a.py:3."]);
    }

    #[test]
    fn limit_on_cpu_time_is_named_only_when_it_was_reached() {
        let said = OutputEvidence::default();
        let cpu = |used_s, limit_s| CpuFigures {
            used_s: Some(used_s),
            hard_limit_s: limit_s,
            soft_limit_s: Some(1),
            ..CpuFigures::default()
        };
        // The kernel's killer ran too, elsewhere.
        let memory = MemoryFigures { killed_on_machine: Some(1), ..MemoryFigures::default() };
        let killed = Evidence { memory, cpu: cpu(2.0, Some(2)), ..evidence(ProcessEnd::Signal(9), &said) };
        let words =
            "reached the limit on CPU time of 2.00 s (ulimit -t), and was ended by SIGKILL: it had used 2.00 s.";
        check(&killed, Cause::CpuLimit, &[words, "Raise the limit"]);
        let announced = Evidence { cpu: cpu(1.0, None), ..evidence(ProcessEnd::Signal(24), &said) };
        check(&announced, Cause::CpuLimit, &["CPU time of 1.00 s", "SIGXCPU"]);
        for cpu in [cpu(1.0, Some(2)), cpu(9.0, None)] {
            check(&Evidence { cpu, ..evidence(ProcessEnd::Signal(9), &said) }, Cause::Killed, &["SIGKILL"]);
        }
        let shell = Evidence { is_shell: true, cpu: cpu(2.0, Some(2)), ..evidence(ProcessEnd::Code(137), &said) };
        check(&shell, Cause::CpuLimit, &["most likely at the limit on CPU time of 2.00 s"]);
    }

    #[test]
    fn forbidden_system_call_is_no_crash() {
        let death = Death::from_evidence(&evidence(ProcessEnd::Signal(31), &OutputEvidence::default())).unwrap();
        assert_eq!(death.cause, Cause::SystemCallFilter);
        assert!(
            death.text.contains("filter (seccomp)") && !death.text.contains("PYTHONFAULTHANDLER"),
            "{}",
            death.text
        );
    }

    #[test]
    fn exception_has_place_unless_exit_code_was_chosen() {
        let said = parse_output(
            "Traceback (most recent call last):\n  File \"/w/data.py\", line 81, in collate\nValueError: 3",
        );
        let words = "train.py raised an exception: ValueError: 3, in collate, data.py:81.";
        check(&evidence(ProcessEnd::Code(1), &said), Cause::Exception, &[words]);
        let words = "exited with code 3. The last exception that it printed: ValueError: 3, in collate, data.py:81.";
        check(&evidence(ProcessEnd::Code(3), &said), Cause::ExitCode, &[words]);
    }

    #[test]
    fn no_exception_is_claimed_only_without_one() {
        let silent = parse_output("loading");
        let words = ["exited with code 3 and printed no exception. Its last line: \"loading\"."];
        check(&evidence(ProcessEnd::Code(3), &silent), Cause::ExitCode, &words);
        let handled = format!("Traceback (most recent call last):\nKeyError: 1\n{}", "step\n".repeat(200));
        check(
            &evidence(ProcessEnd::Code(3), &parse_output(&handled)),
            Cause::ExitCode,
            &["exited with code 3. Its last line"],
        );
        let thread = parse_output("Exception in thread T:\nTraceback (most recent call last):\nKeyError: 1");
        check(&evidence(ProcessEnd::Code(1), &thread), Cause::Exception, &["KeyError: 1, on its thread T."]);
    }

    #[test]
    fn memory_steady_for_a_moment_is_left_out() {
        let said = OutputEvidence::default();
        let text = |over_ns| {
            let memory = Some(MemoryChange { from_bytes: 1.0e9, to_bytes: 1.0e9, over_ns });
            let moment = LastMoment { memory, ..LastMoment::default() };
            Death::from_evidence(&Evidence { moment, ..evidence(ProcessEnd::Code(3), &said) }).unwrap().text
        };
        assert!(!text(107_000_000).contains("memory") && text(60_000_000_000).contains("steady at 954 MiB"));
    }

    #[test]
    fn gpu_disk_and_limit_causes_are_distinguished() {
        for (exception, cause, word) in [
            ("torch.OutOfMemoryError: CUDA out of memory. Tried", Cause::GpuMemory, "GPU memory"),
            ("RuntimeError: CUDA error: device-side assert triggered", Cause::Cuda, "CUDA_LAUNCH_BLOCKING"),
            ("OSError: [Errno 28] No space left on device", Cause::DiskFull, "disk full"),
            ("MemoryError", Cause::MemoryRefused, "smaller batch"),
            ("EOFError: EOF when reading a line", Cause::NoTerminal, "`echo yes | gnntop run -- ...`"),
            ("RuntimeError: unable to mmap 8 bytes from file </torch_1>", Cause::SharedMemory, "--shm-size"),
        ] {
            let said = parse_output(&format!(
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n{exception}"
            ));
            check(&evidence(ProcessEnd::Code(1), &said), cause, &[word]);
        }
    }

    #[test]
    fn crash_has_python_place_where_known() {
        check(
            &evidence(ProcessEnd::Signal(11), &OutputEvidence::default()),
            Cause::Crash,
            &["SIGSEGV", "PYTHONFAULTHANDLER=1"],
        );
        let said = parse_output(
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n  File \"/w/a.py\", line 3 in f",
        );
        check(&evidence(ProcessEnd::Signal(11), &said), Cause::Crash, &["SIGSEGV, in f, a.py:3."]);
    }

    #[test]
    fn stack_gives_place_without_other_evidence() {
        let stack = Some(("collate (data.py:81), under main (train.py:9)".to_owned(), 1_200_000_000));
        let moment = || LastMoment { stack: stack.clone(), ..moment() };
        let silent = OutputEvidence::default();
        let killed = Evidence { moment: moment(), ..evidence(ProcessEnd::Signal(9), &silent) };
        let words =
            "It was in forward of step 812. A stack taken 1.20 s before the end shows collate (data.py:81), under main";
        check(&killed, Cause::Killed, &[words]);
        let mut left = OutputEvidence::default();
        left.add_crash_report(&["os._exit".to_owned(), "  File \"/w/a.py\", line 3 in f".to_owned()]);
        let exit = Evidence { moment: moment(), ..evidence(ProcessEnd::Code(3), &left) };
        check(&exit, Cause::ExitCode, &["train.py called os._exit in f, a.py:3: exit code 3"]);
        assert!(!Death::from_evidence(&exit).unwrap().text.contains("A stack taken"), "the place is known");
    }

    #[test]
    fn first_failed_rank_is_distinguished_from_ended_ranks() {
        let said = parse_output(
            "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 3, in f\n[rank1]: KeyError: 'x'\n\
             Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 4)",
        );
        let words = ["rank 1 of train.py", "KeyError: 'x', in f, a.py:3", "the first to fail", "torchrun"];
        check(&evidence(ProcessEnd::Code(1), &said), Cause::Exception, &words);
        let killed = self::parse_output(
            "Root Cause (first observed failure):\n  rank : 2 (local_rank: 2)\n  exitcode : -9 (pid: 4)",
        );
        check(&evidence(ProcessEnd::Code(1), &killed), Cause::Killed, &["rank 2 of train.py was killed by SIGKILL"]);
    }

    #[test]
    fn requested_end_is_no_failure() {
        let said = parse_output("Traceback (most recent call last):\nKeyboardInterrupt");
        let asked = Evidence { passed_on: Some(2), ..evidence(ProcessEnd::Signal(2), &said) };
        check(&asked, Cause::Asked, &["was asked to stop: gnntop passed SIGINT on to it"]);
        let slurm = Evidence { passed_on: Some(15), slurm_job: Some("71"), ..evidence(ProcessEnd::Signal(15), &said) };
        check(&slurm, Cause::JobEnded, &["SIGTERM", "job 71", "scancel"]);
        let line = self::parse_output(
            "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-11-22T21:00:00 DUE TO TIME LIMIT ***",
        );
        check(&Evidence { output: &line, ..slurm.clone() }, Cause::JobEnded, &["DUE TO TIME LIMIT"]);
    }

    #[test]
    fn collective_timeout_names_the_collective() {
        let said =
            parse_output("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE)");
        check(&evidence(ProcessEnd::Signal(6), &said), Cause::CollectiveTimeout, &["OpType=ALLREDUCE"]);
    }

    #[test]
    fn every_paragraph_fits_a_fact() {
        let long = format!(
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: {}",
            "x".repeat(5000)
        );
        let said = parse_output(&long);
        let death =
            Death::from_evidence(&Evidence { moment: moment(), ..evidence(ProcessEnd::Code(1), &said) }).unwrap();
        assert!(death.text.len() < gnntop_wire::MAX_TEXT_LEN, "{}", death.text.len());
    }
}
