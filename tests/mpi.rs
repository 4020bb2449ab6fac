//! Ranks that are processes of MPI, and what becomes of a run when one of them is killed, stopped, slow, out of memory,
//! started with different settings, on a machine whose clock is off, or on one that is gone. Where MPI or the rights are missing, tests say so and are skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod hosts;
mod sessions;

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hosts::Hosts;
use serde_json::Value;
use sessions::{Ran, Sessions, limit_memory, spawn, wait_until};

/// A training whose steps take a few milliseconds.
const SMALL: &str = "--nodes 600 --edges 6000 --fanouts 4,4 --hidden 8 --threads-per-rank 1 --batch-size";
/// Its batches.
const BATCH: &str = "16";
/// Longer than anything here takes on a machine that is not dead.
const OUTER_LIMIT: Duration = Duration::from_secs(120);

/// The words of the small training with batches of this size.
fn small(batch: &str) -> Vec<&str> {
    SMALL.split(' ').chain([batch]).collect()
}

/// The right to use mpirun, which one test has at a time: ranks that wait use up their cores. Where there is none, says so.
fn mpirun() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let found = Command::new("mpirun").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if let Err(error) = &found {
        println!("skipped: mpirun cannot be started ({error}); install openmpi-bin");
    }
    found.is_ok().then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes this mpirun start more ranks than there are cores, also for root, and nothing of another mpirun's.
fn permissive(command: &mut Command) -> &mut Command {
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
}

/// A run of two ranks, which is over when the test is.
struct Training {
    child: Option<Child>,
}

impl Drop for Training {
    /// Where a test fails before the end: mpirun ends its ranks when it is asked to.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

impl Training {
    /// Starts it, and waits until both ranks have done enough steps for the usual one to be known.
    fn start(sessions: &Sessions, more: &[&str]) -> Self {
        let words = ["train", "sage", "--ranks", "2", "--engine", "mpi", "--epochs", "1000000"];
        let words = [&words[..], &small(BATCH), more].concat();
        let mut command = sessions.gnntop(words);
        Self::running(sessions, permissive(&mut command))
    }

    /// The same, started by this command.
    fn running(sessions: &Sessions, command: &mut Command) -> Self {
        let training = Self { child: Some(spawn(command)) };
        wait_until(|| steps(sessions).is_some_and(|steps| steps.iter().all(|steps| *steps >= 40)));
        training
    }

    /// Waits for the end, which somebody has brought about.
    fn ended(mut self) -> Ran {
        let begin = Instant::now();
        while self.child.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < OUTER_LIMIT, "the training goes on without one of its ranks");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ran::new(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

/// What `gnntop report` says of the run now, or of a recording.
fn report(sessions: &Sessions, of: &str) -> Option<Value> {
    let ran = sessions.run(["report", of, "--json"]);
    serde_json::from_str(&ran.out).ok().filter(|_| ran.code == Some(0))
}

/// Steps of each rank; `None` before both have published.
fn steps(sessions: &Sessions) -> Option<Vec<u64>> {
    let report = report(sessions, "sage")?;
    let ranks = report["run"]["ranks"].as_array().filter(|ranks| ranks.len() == 2)?;
    Some(ranks.iter().filter_map(|rank| rank["steps"].as_u64()).collect())
}

fn pid(sessions: &Sessions, rank: usize) -> String {
    report(sessions, "sage").unwrap()["run"]["ranks"][rank]["pid"].to_string()
}

fn signal(pid: &str, name: &str) {
    assert!(Command::new("kill").args(["-s", name, pid]).status().unwrap().success());
}

/// Kills processes at the same time: of one that goes on without the others it would be said that they are gone.
fn kill(pids: &[&str]) {
    assert!(Command::new("kill").args(["-s", "KILL"]).args(pids).status().unwrap().success());
}

/// The sentence of a finding of this kind.
fn finding(report: &Value, kind: &str) -> Option<String> {
    let found = report["findings"]["found"].as_array()?;
    let finding = found.iter().find(|finding| finding["kind"] == kind)?;
    Some(finding["summary"].as_str()?.to_owned())
}

/// Waits until the live run is said to hang, and gives what is said.
fn hang(sessions: &Sessions) -> String {
    let begin = Instant::now();
    loop {
        if let Some(said) = report(sessions, "sage").and_then(|report| finding(&report, "hang")) {
            println!("named {:.1} s after the last look at a run that went on: {said}", begin.elapsed().as_secs_f64());
            return said;
        }
        assert!(begin.elapsed() < OUTER_LIMIT, "nobody says that the run hangs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The recording of a run that is over says the same, read as a whole and replayed.
fn assert_named_later(sessions: &Sessions, words: &str) {
    assert_eq!(sessions.run(["record", "sage", "--last", "1h", "-o", "a.gnntop", "--force"]).code, Some(0));
    let said = finding(&report(sessions, "a.gnntop").unwrap(), "hang").unwrap();
    assert!(said.contains(words), "{said}");
    let replayed = sessions.run(["replay", "a.gnntop", "--plain", "--speed", "20", "--interval", "100ms"]);
    assert!(replayed.out.contains("hang: ") && replayed.out.contains(words), "{replayed:?}");
}

/// What the ranks of a run that is over have published is read without damage, and has these steps at least.
fn assert_whole(sessions: &Sessions, before: &[u64]) {
    assert_eq!(sessions.run(["record", "sage", "--last", "1h", "-o", "a.gnntop", "--force"]).code, Some(0));
    let read = sessions.run(["report", "a.gnntop", "--json"]);
    assert!(read.code == Some(0) && !read.err.contains("damaged"), "{read:?}");
    let report: Value = serde_json::from_str(&read.out).unwrap();
    let ranks = report["run"]["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), before.len());
    assert!(ranks.iter().zip(before).all(|(rank, before)| rank["steps"].as_u64() >= Some(*before)), "{ranks:#?}");
}

#[test]
fn killed_rank_ends_the_run_and_is_named() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let training = Training::start(&sessions, &[]);
    let before = steps(&sessions).unwrap();
    signal(&pid(&sessions, 1), "KILL");
    let ran = training.ended();
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("process rank 1") && ran.err.contains("signal 9"), "{ran:?}");
    assert_whole(&sessions, &before);
}

#[test]
fn rank_out_of_memory_ends_the_run_and_is_named() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let training = Training::start(&sessions, &["--inject", "leak:32MiB@rank=1,from=60,every=4"]);
    let before = steps(&sessions).unwrap();
    limit_memory(pid(&sessions, 1).parse().unwrap(), 256 << 20);
    let ran = training.ended();
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("gnntop: ")).collect();
    assert_eq!(told.len(), 1, "{ran:?}");
    assert!(told[0].contains("gnntop: rank 1 is out of memory: the system refuses "), "{ran:?}");
    assert!(!ran.err.contains("Process received signal"), "no page of addresses: {ran:?}");
    assert_whole(&sessions, &before);
}

#[test]
fn a_rank_that_is_stopped_is_named_live_and_afterwards() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let training = Training::start(&sessions, &[]);
    let (zero, one) = (pid(&sessions, 0), pid(&sessions, 1));
    signal(&one, "STOP");
    let said = hang(&sessions);
    assert!(
        said.contains("rank 1 has published nothing") && said.contains("rank 0 waits for it in all-reduce"),
        "{said}"
    );
    kill(&[&zero, &one]);
    assert_ne!(training.ended().code, Some(0));
    assert_named_later(&sessions, "rank 0 waits for it in all-reduce");
}

#[test]
fn a_rank_that_leaves_out_an_all_reduce_is_named_live_and_afterwards() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let training = Training::start(&sessions, &["--inject", "skip-all-reduce@at=60,rank=1"]);
    let said = hang(&sessions);
    let words = "rank 1 has waited in broadcast";
    assert!(said.contains(words) && said.contains("at step 60; rank 0 waits for it in all-reduce"), "{said}");
    kill(&[&pid(&sessions, 0), &pid(&sessions, 1)]);
    assert_ne!(training.ended().code, Some(0));
    assert_named_later(&sessions, words);
}

#[test]
fn a_rank_that_is_slow_is_a_straggler() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let words = ["train", "sage", "--ranks", "2", "--engine", "mpi", "--epochs", "6", "--inject", "stall:60ms@rank=1"];
    let mut command = sessions.gnntop([&words[..], &small(BATCH)].concat());
    let ran = Ran::new(&permissive(&mut command).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = finding(&report(&sessions, "sage").unwrap(), "straggler").unwrap();
    assert!(said.starts_with("rank 1 is a straggler") && said.ends_with("longer in forward"), "{said}");
}

#[test]
fn a_rank_that_is_started_with_other_settings_ends_the_run_with_both_of_them() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let gnntop = env!("CARGO_BIN_EXE_gnntop");
    let one = |batch: &'static str, more: &[&'static str]| {
        [&["-n", "1", gnntop, "train", "sage"][..], &small(batch), more].concat()
    };
    for (other, here, there) in [
        (one("32", &[]), "--batch-size 32", "--batch-size 16"),
        // The exchange of gradients would notice neither of these.
        (one(BATCH, &["--plain"]), "--plain true", "--plain false"),
        (one(BATCH, &["--seed", "7"]), "--seed 7", "--seed 1234"),
    ] {
        let words = [one(BATCH, &[]), vec![":"], other].concat();
        let mut command = Command::new("mpirun");
        command.args(words).env("GNNTOP_DIR", sessions.path()).env_remove("GNNTOP").current_dir(sessions.path());
        let ran = Ran::new(&permissive(&mut command).output().unwrap());
        assert_ne!(ran.code, Some(0), "{ran:?}");
        let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("different settings")).collect();
        assert_eq!(told.len(), 1, "{ran:?}");
        let words = format!("rank 1 was started with different settings than rank 0: here {here}, there {there}");
        assert!(told[0].contains(&words), "{ran:?}");
    }
}

#[test]
fn clocks_of_two_machines_are_aligned() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let hosts = match Hosts::start(sessions.path()) {
        Ok(hosts) => hosts,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let train = [&[env!("CARGO_BIN_EXE_gnntop"), "train", "sage", "--epochs", "3"][..], &small(BATCH)].concat();
    let mut command = hosts.mpirun(&train);
    command.env("GNNTOP_DIR", sessions.path()).env_remove("GNNTOP").current_dir(sessions.path());
    let ran = Ran::new(&permissive(&mut command).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = report(&sessions, "sage").unwrap();
    let ranks = report["run"]["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 2, "{report:#}");
    assert_eq!(ranks[0]["steps"], ranks[1]["steps"]);
    assert_eq!((&ranks[1]["host"], &ranks[1]["clock_evidence"]), (&"oak".into(), &"measured".into()), "{ranks:#?}");
    let number = |name: &str| ranks[1][name].as_f64().unwrap();
    // What the ranks measured, and how far they said that it may be off.
    let off_ns = number("clock_offset_ns") + hosts::AHEAD_S as f64 * 1e9;
    assert!(off_ns.abs() <= number("clock_error_ns"), "off by {off_ns} ns: {ranks:#?}");
    println!("the clock of oak was measured to {} us", number("clock_error_ns") / 1e3);
}

#[test]
fn lost_machine_is_suspected_live_and_ends_the_training() {
    let Some(_alone) = mpirun() else { return };
    let sessions = Sessions::new();
    let hosts = match Hosts::start(sessions.path()) {
        Ok(hosts) => hosts,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let train = [&[env!("CARGO_BIN_EXE_gnntop"), "train", "sage", "--epochs", "1000000"][..], &small(BATCH)].concat();
    let mut command = hosts.mpirun(&train);
    command.env("GNNTOP_DIR", sessions.path()).env_remove("GNNTOP").current_dir(sessions.path());
    // Long enough for the hang to be seen, and shorter than what mpirun waits for by itself.
    for (name, seconds) in [("time", "6"), ("intvl", "1"), ("probes", "3")] {
        command.env(format!("OMPI_MCA_oob_tcp_keepalive_{name}"), seconds);
    }
    let training = Training::running(&sessions, permissive(&mut command));
    let before = steps(&sessions).unwrap();
    hosts.pull_the_cable();
    let said = hang(&sessions);
    let words = "or the connection between their machines is gone (";
    assert!(said.contains("waited in ") && said.contains(words) && said.contains("oak"), "{said}");
    let ran = training.ended();
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("lost communication") && ran.err.contains("10.213.77.2"), "the machine is named: {ran:?}");
    assert_whole(&sessions, &before);
    assert_named_later(&sessions, words);
}

#[test]
fn mpirun_gets_default_options_unless_set() {
    let sessions = Sessions::new();
    let fake = sessions.file("mpirun", b"#!/bin/sh\nenv | grep ^OMPI_MCA_ | sort\n");
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", sessions.path().display(), std::env::var("PATH").unwrap());
    let told = |own: &[(&str, &str)]| {
        let mut command = sessions.gnntop(["train", "sage", "--ranks", "2", "--engine", "mpi"]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OMPI_MCA_")) {
            command.env_remove(name);
        }
        Ran::new(&command.env("PATH", &path).envs(own.iter().copied()).output().unwrap()).out
    };
    let usual = told(&[]);
    assert!(usual.contains("OMPI_MCA_rmaps_base_oversubscribe=1\n"), "{usual}");
    assert!(usual.contains("OMPI_MCA_oob_tcp_keepalive_time=10\n"), "{usual}");
    let own = told(&[("OMPI_MCA_oob_tcp_keepalive_time", "300")]);
    assert!(own.contains("OMPI_MCA_oob_tcp_keepalive_time=300\n"), "{own}");
}
