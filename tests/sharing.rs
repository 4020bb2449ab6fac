//! `gnntop run --share`: the sessions of a program in a directory that other machines see, and what becomes of them and of the
//! program when something is in the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use gnntop_fixtures::SmallDisk;
use serde_json::Value;

use crate::sessions::{Ran, Sessions, has_python, signal_to, spawn, wait_until};

/// Makes steps until the file `go` is there, has a child that makes some too, and fails.
const TRAIN: &str = "
import gnntop, os, subprocess, sys, time
def steps(count):
    for _ in range(count):
        with gnntop.span('forward'):
            time.sleep(0.001)
        gnntop.step()
steps(60)
if sys.argv[1:]:
    sys.exit(0)
subprocess.run([sys.executable, 'train.py', 'child'], check=True)
open('ready', 'w').close()
while not os.path.exists('go'):
    steps(1)
raise ValueError('the loss is NaN')
";

/// Two directories: the sessions of the machine that trains, and what other machines see.
struct TwoMachines {
    here: Sessions,
    elsewhere: Sessions,
}

impl TwoMachines {
    fn new() -> Self {
        let here = Sessions::new();
        here.file("train.py", TRAIN.as_bytes());
        Self { here, elsewhere: Sessions::new() }
    }

    fn shared(&self) -> PathBuf {
        self.elsewhere.path().join("shared")
    }

    fn train_to(&self, to: &Path) -> Command {
        let mut command = self.here.gnntop(["run", "--plain", "--share"]);
        command.arg(to).args(["--", "python3", "train.py"]);
        command
    }

    /// What another machine says of what it sees.
    fn see(&self, words: &[&str]) -> Ran {
        Ran::new(&self.elsewhere.gnntop(words).env("GNNTOP_DIR", self.shared()).output().unwrap())
    }

    fn finish(&self, child: Child) -> Ran {
        self.here.file("go", b"");
        Ran::new(&child.wait_with_output().unwrap())
    }
}

fn steps(report: &Ran) -> u64 {
    let report: Value = serde_json::from_str(&report.out).unwrap_or_default();
    report["steps"]["total"].as_u64().unwrap_or(0)
}

/// The process that copies, of the program whose shared directory this is.
fn copier(to: &Path) -> Option<u32> {
    let word = format!("--to={}", to.display());
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_word = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.split(|byte| *byte == 0).any(|w| w == word.as_bytes()))
    };
    processes.into_iter().find(has_word)
}

#[test]
fn another_machine_sees_the_run_while_it_lives_and_how_it_died() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = TwoMachines::new();
    let child = spawn(&mut machines.train_to(&machines.shared()));
    wait_until(|| {
        machines.see(&["list"]).out.matches(" live ").count() == 1 && machines.here.path().join("ready").exists()
    });
    let before = steps(&machines.see(&["report", "--json"]));
    wait_until(|| steps(&machines.see(&["report", "--json"])) > before.max(60));
    let ran = machines.finish(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let list = machines.see(&["list"]);
    assert_eq!((list.out.matches(" ended ").count(), list.out.matches(" live ").count()), (2, 0), "{list:?}");
    assert!(list.out.contains("ValueError: the loss is NaN"), "{list:?}");
    // File by file what the machine itself has, but for the lock.
    let mut compared = 0;
    for session in fs::read_dir(machines.shared()).unwrap().map(|entry| entry.unwrap()) {
        for file in
            fs::read_dir(session.path()).unwrap().map(|entry| entry.unwrap()).filter(|f| f.file_name() != "live")
        {
            let own = machines.here.path().join(session.file_name()).join(file.file_name());
            assert!(fs::read(file.path()).unwrap() == fs::read(&own).unwrap(), "{own:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
    machines.see(&["clean", "--older", "0s"]);
    assert_eq!(fs::read_dir(machines.shared()).unwrap().count(), 0, "a copy of what has ended is nobody's");
}

#[test]
fn a_copier_that_hangs_holds_up_no_program() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = TwoMachines::new();
    let child = spawn(&mut machines.train_to(&machines.shared()));
    let copied = || fs::read_dir(machines.shared()).map_or(0, Iterator::count);
    wait_until(|| machines.here.path().join("ready").exists() && copied() == 2);
    let copier = copier(&machines.shared()).unwrap();
    signal_to(copier, "STOP");
    let ran = machines.finish(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(&format!("is not complete yet; process {copier} keeps trying")), "{ran:?}");
    // The system lets it go on when nobody is left to do so.
    wait_until(|| machines.see(&["list"]).out.matches(" ended ").count() == 2);
}

#[test]
fn what_cannot_be_shared_in_is_refused_or_left_out() {
    let sessions = Sessions::new();
    let file = sessions.file("file", b"");
    let refused = sessions.run(["run", "--share", file.to_str().unwrap(), "--", "touch", "started"]);
    refused.assert_refused("cannot share in");
    assert!(!sessions.path().join("started").exists());
    let own = sessions.run(["run", "--share", "./.", "--", "touch", "started"]);
    own.assert_refused("is the directory of this machine's own sessions");
    assert!(!sessions.path().join("started").exists());
    let mut command = sessions.gnntop(["run", "--", "sh", "-c", "exit 7"]);
    let ran = Ran::new(&command.env("GNNTOP_SHARE", &file).output().unwrap());
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.err.contains("GNNTOP_SHARE is not used"), "{ran:?}");
    let ran = Ran::new(&command.env("GNNTOP_SHARE", "~/shared").output().unwrap());
    assert!(ran.err.contains("which is no absolute path; GNNTOP_SHARE is not used"), "{ran:?}");
    assert!(!sessions.path().join("~").exists());
}

#[test]
fn a_shared_disk_that_is_full_is_said_and_copied_to_later() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let disk = match SmallDisk::new("256k") {
        Ok(disk) => disk,
        Err(why) => return println!("skipped: {why}"),
    };
    let (machines, fill) = (TwoMachines::new(), disk.path().join("fill"));
    let to = disk.path().join("shared");
    fs::write(&fill, vec![0; 250 << 10]).unwrap();
    let child = spawn(&mut machines.train_to(&to));
    wait_until(|| machines.here.path().join("ready").exists() && copier(&to).is_some());
    std::thread::sleep(std::time::Duration::from_secs(3));
    fs::remove_file(fill).unwrap();
    let complete = || {
        let mut see = machines.elsewhere.gnntop(["list"]);
        Ran::new(&see.env("GNNTOP_DIR", &to).output().unwrap()).out.contains("train.py")
    };
    wait_until(complete);
    let ran = machines.finish(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("cannot copy to") && ran.err.contains("can be written again"), "{ran:?}");
}

#[test]
fn a_copy_that_is_not_complete_when_the_program_ends_is_said_and_completed_later() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = TwoMachines::new();
    let to = machines.shared();
    let child = spawn(&mut machines.train_to(&to));
    wait_until(|| machines.here.path().join("ready").exists() && fs::read_dir(&to).map_or(0, Iterator::count) == 2);
    let aside = to.with_extension("aside");
    fs::rename(&to, &aside).unwrap();
    fs::write(&to, b"in its place").unwrap();
    let copier = copier(&to).unwrap();
    let ran = machines.finish(child);
    assert!(ran.err.contains(&format!("is not complete yet; process {copier} keeps trying")), "{ran:?}");
    fs::remove_file(&to).unwrap();
    fs::rename(&aside, &to).unwrap();
    wait_until(|| machines.see(&["list"]).out.matches(" ended ").count() == 2);
}

#[test]
fn a_copier_that_is_killed_is_said() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = TwoMachines::new();
    let child = spawn(&mut machines.train_to(&machines.shared()));
    wait_until(|| machines.here.path().join("ready").exists() && copier(&machines.shared()).is_some());
    signal_to(copier(&machines.shared()).unwrap(), "KILL");
    let ran = machines.finish(child);
    assert!(ran.err.contains("is not complete: its process ended (signal: 9"), "{ran:?}");
}
