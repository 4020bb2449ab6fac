//! Ranks with a GPU each, joined by NCCL. Beside ranks that are threads where there are GPUs, skipped with the reason
//! where there are none; and the errors of a training run if something is missing, with a fake driver of one GPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use gnntop_workloads::command::Workload;
use gnntop_workloads::launch::DeviceChoice;
use gnntop_workloads::train::{Silent, Summary, TrainError};

/// A small training on GPUs.
fn train(ranks: usize, more: &[&str]) -> Result<Summary, TrainError> {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.gnntop");
    let ranks = ranks.to_string();
    let words = "--nodes 600 --edges 6000 --fanouts 4,4 --hidden 8 --threads-per-rank 1 --batch-size 16 --steps 20";
    let words = words.split(' ').chain(["--device", "cuda", "--ranks", &ranks, "--record"]);
    let options: Vec<OsString> =
        words.map(OsString::from).chain([record.into()]).chain(more.iter().map(OsString::from)).collect();
    Workload::parse("sage", &options).unwrap().run(&mut Silent)
}

#[test]
fn ranks_learn_the_same_as_with_threads() {
    let gpus = match DeviceChoice::gpus() {
        Ok(0) => return println!("skipped: the driver finds no GPU"),
        Ok(gpus) => gpus.min(8),
        Err(reason) => return println!("skipped: {reason}"),
    };
    let joined = match train(gpus, &["--engine", "nccl"]) {
        Err(error) if error.to_string().contains("cannot be loaded") => return println!("skipped: {error}"),
        joined => joined.unwrap(),
    };
    let threads = train(gpus, &["--engine", "threads"]).unwrap();
    println!("{gpus} ranks: loss {:?} with NCCL, {:?} with threads", joined.loss, threads.loss);
    assert_eq!(joined.steps, threads.steps);
    let [joined, threads] = [joined, threads].map(|summary| summary.loss.unwrap());
    assert!((joined - threads).abs() <= 1e-3 * threads.abs(), "{joined} with NCCL, {threads} with threads");
}

#[test]
fn without_a_driver_that_is_all_that_is_said() {
    let Err(missing) = DeviceChoice::gpus() else { return println!("skipped: there is a driver") };
    let error = train(2, &["--engine", "nccl"]).unwrap_err().to_string();
    assert_eq!(error, missing.to_string());
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn what_is_missing_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    let driver = member.join("nn/tests/fake-cuda/fake_cuda.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compile = |source: &Path, library: &str| {
        let mut command = Command::new(&compiler);
        command.args(["-O1", "-shared", "-fPIC", "-pthread", "-x", "c"]).arg(source);
        command.arg("-o").arg(folder.path().join(library)).status()
    };
    for (source, library) in [
        (driver.clone(), "libcuda.so.1"),
        (driver, "libcuda.so"),
        // Only looked for before a device is opened.
        ("/dev/null".into(), "libcublas.so.13"),
        ("/dev/null".into(), "libcurand.so.10"),
    ] {
        match compile(&source, library) {
            Ok(status) => assert!(status.success(), "{library} cannot be compiled"),
            Err(reason) => return println!("skipped: {compiler}: {reason}"),
        }
    }
    let said = |ranks: &str| {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "on_a_driver_that_is_none", "--ignored", "--nocapture"]);
        let output = alone.env("LD_LIBRARY_PATH", folder.path()).env("RANKS", ranks).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let text = said("2");
    if text.contains("told: 2 ranks need 2 GPUs") {
        println!("the loader finds an NCCL here: nothing is said of its absence");
    } else {
        assert!(text.contains("told: NCCL failed: it cannot be loaded (libnccl.so.2: "), "{text}");
    }
    assert!(compile(&member.join("tests/fake_nccl.c"), "libnccl.so.2").unwrap().success());
    let text = said("3");
    assert!(text.contains("told: 3 ranks need 3 GPUs, but the driver finds 1 from cuda:0: "), "{text}");
}

#[test]
#[ignore = "run by the test above, in its own process"]
fn on_a_driver_that_is_none() {
    let ranks = std::env::var("RANKS").unwrap().parse().unwrap();
    println!("told: {}", train(ranks, &["--engine", "nccl"]).unwrap_err());
}
