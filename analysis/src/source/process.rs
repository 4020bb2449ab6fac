//! Processes of this machine: whether one is still the same, its name, and whose child it is.

use std::fs;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use gnntop_wire::SessionInfo;

use super::platform::ticks_per_second;
use super::program_name::program_name;

/// Most generations of parents followed.
const MAX_GENERATIONS: usize = 64;
/// How often to try to read a command line, and the pause between tries.
const COMMAND_TRIES: usize = 10;
const COMMAND_INTERVAL: Duration = Duration::from_millis(2);

/// A process, distinguished by its start time from a later one with the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pid: u32,
    start_ticks: u64,
}

impl Process {
    /// The live process with this id, if there is one.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = ProcessStat::read(pid)?;
        stat.alive.then_some(Self { pid, start_ticks: stat.start_ticks })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks since boot.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether it is still running; a zombie is not.
    pub fn is_alive(&self) -> bool {
        Self::find(self.pid).as_ref() == Some(self)
    }

    /// Its command line, or its short name in brackets if that is hidden or empty.
    pub fn command(&self) -> String {
        let words = self.words();
        if words.is_empty() { format!("[{}]", self.name()) } else { words.join(" ") }
    }

    /// Its name for people: `python train.py`, even if a shell or a shim has started that. Its short name if its command
    /// line is hidden or empty.
    pub fn program_name(&self) -> String {
        let words = self.words();
        if words.is_empty() { self.name() } else { program_name(&words) }
    }

    /// The process that started it, or has adopted it.
    pub fn parent(&self) -> Option<Self> {
        ProcessStat::read(self.pid).filter(|stat| stat.parent > 1).and_then(|stat| Self::find(stat.parent))
    }

    /// The user by whose rights it acts; `None` if the system does not say.
    pub fn user(&self) -> Option<u32> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_ascii_whitespace().nth(1)?.parse().ok() // the first is who started it
    }

    /// Its command line; empty for a moment while the process executes another program, as when a shim starts Python.
    pub fn words(&self) -> Vec<String> {
        let read = || fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let mut line = read();
        for _ in 0..COMMAND_TRIES {
            if !line.is_empty() {
                break;
            }
            thread::sleep(COMMAND_INTERVAL);
            line = read();
        }
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// A variable of the environment that it was started with.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned());
        String::from_utf8(environment.split(|byte| *byte == 0).find_map(value)?).ok()
    }

    /// Its short name.
    pub fn name(&self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        if name.trim().is_empty() { "process".to_owned() } else { name.trim().to_owned() }
    }
}

/// What the process does that published a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterlife {
    /// It runs on.
    Same,
    /// It runs under another command line, as after `exec`.
    Other,
    /// It is gone, about to go, or not to be seen here.
    Gone,
}

/// What the process that published this session does now.
pub(super) fn afterlife(info: &SessionInfo) -> Afterlife {
    let words = if still_runs(info) { Process::find(info.pid).map(|process| process.words()) } else { None };
    match words {
        // At its very end a process is still listed and has no command line any more.
        None => Afterlife::Gone,
        Some(words) if words.is_empty() => Afterlife::Gone,
        Some(words) if words.iter().flat_map(|word| word.split_whitespace()).eq(info.command.split_whitespace()) => {
            Afterlife::Same
        }
        Some(_) => Afterlife::Other,
    }
}

/// Whether the process that published this session still runs on this machine, as it does after `exec`.
fn still_runs(info: &SessionInfo) -> bool {
    // Another machine, or another container, has processes of its own.
    let is_here = kernel_says("hostname", &info.host) && has_our_clock(info);
    let start_ns = |process: Process| {
        let ticks = u128::from(process.start_ticks) * 1_000_000_000;
        ticks / u128::from(ticks_per_second())
    };
    is_here && Process::find(info.pid).is_some_and(|process| start_ns(process) <= u128::from(info.start.boot_ns))
}

/// Whether the session's monotonic clock is this machine's.
pub(crate) fn has_our_clock(info: &SessionInfo) -> bool {
    static OWN: LazyLock<Option<String>> = LazyLock::new(|| own("random/boot_id"));
    OWN.as_ref() == Some(&info.boot_id)
}

fn kernel_says(name: &str, text: &str) -> bool {
    own(name).as_deref() == Some(text)
}

fn own(name: &str) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().to_owned())
}

/// Whether the process `pid` is `ancestor` or descends from it.
pub fn descends(pid: u32, ancestor: u32) -> bool {
    let mut pid = pid;
    for _ in 0..MAX_GENERATIONS {
        if pid == ancestor {
            return true;
        }
        match ProcessStat::read(pid) {
            Some(stat) if stat.parent > 1 => pid = stat.parent,
            _ => return false,
        }
    }
    false
}

/// The system's data on a process.
struct ProcessStat {
    alive: bool,
    parent: u32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
}

impl ProcessStat {
    #[cfg(target_os = "linux")]
    fn read(pid: u32) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in brackets and may hold anything, brackets and spaces too.
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let state = fields.first()?;
        Some(Self {
            alive: !matches!(*state, "Z" | "X" | "x"),
            parent: fields.get(1)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn read(pid: u32) -> Option<Self> {
        super::platform::has_process(pid).then_some(Self { alive: true, parent: 0, start_ticks: 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn this_process_is_alive_and_descends_from_parent() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert!(!own.name().is_empty() && !own.command().is_empty());
        assert_eq!(own.user(), Some(rustix::process::geteuid().as_raw()));
        assert!(descends(own.pid(), own.pid()));
        assert!(descends(own.pid(), std::os::unix::process::parent_id()));
        assert_eq!(own.parent().map(|parent| parent.pid()), Some(std::os::unix::process::parent_id()));
        assert!(!descends(own.pid(), 900_000_001));
    }

    #[test]
    fn publisher_that_still_runs_is_found_on_its_machine_alone() {
        let kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap().trim().to_owned();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let start = gnntop_wire::Anchor { boot_ns: now.tv_sec.cast_unsigned() * 1_000_000_000, ..Default::default() };
        let (host, boot_id) = (kernel("hostname"), kernel("random/boot_id"));
        let own = SessionInfo { pid: std::process::id(), host, boot_id, start, ..SessionInfo::default() };
        assert!(still_runs(&SessionInfo { start: gnntop_wire::Anchor { boot_ns: u64::MAX, ..start }, ..own.clone() }));
        assert!(!still_runs(&SessionInfo { host: "elm".to_owned(), ..own.clone() }));
        assert!(!still_runs(&SessionInfo { start: Default::default(), ..own.clone() }), "a later process with its id");
        assert!(!still_runs(&SessionInfo { pid: 900_000_001, ..own }));
    }

    #[test]
    fn process_that_runs_on_is_told_from_one_that_runs_another_program() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap().trim().to_owned();
        let start = gnntop_wire::Anchor { boot_ns: u64::MAX, ..Default::default() };
        let (host, boot_id) = (kernel("hostname"), kernel("random/boot_id"));
        let now = |pid, command: &str| {
            let (host, boot_id, command) = (host.clone(), boot_id.clone(), command.to_owned());
            afterlife(&SessionInfo { pid, host, boot_id, command, start, ..SessionInfo::default() })
        };
        assert_eq!(now(child.id(), "sleep 1000"), Afterlife::Same);
        assert_eq!(now(child.id(), "python3 train.py"), Afterlife::Other);
        // Like one that is about to end, this has no command line.
        assert_eq!(now(2, "python3 train.py"), Afterlife::Gone);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(now(child.id(), "sleep 1000"), Afterlife::Gone);
    }

    #[test]
    fn zombie_child_is_not_alive() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        assert!(descends(child.id(), std::process::id()));
        child.kill().unwrap();
        while process.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!process.is_alive());
    }
}
