//! Where the data that a loop waits for come from.

use gnntop_wire::StackThread;

use super::*;

/// What is read in a second, with how many calls, and what of it comes from disks.
fn reads(bytes: f64, calls: f64, disk: impl Fn(f64) -> f64 + 'static) -> Vec<Reading> {
    vec![
        counted("process.io.rchar", Unit::Bytes, move |t| t * bytes),
        counted("process.io.read_calls", Unit::Count, move |t| t * calls),
        counted("process.io.read_bytes", Unit::Bytes, disk),
    ]
}

/// The findings about storage of a loop whose epochs have 100 steps, and whose first epoch may wait longer.
fn storage(first_wait_ms: u64, wait_ms: u64, readings: &[Reading]) -> Vec<Finding> {
    let plan = |step: u64| {
        let epoch = (step - 1) / 100;
        let wait_ms = if epoch == 0 { first_wait_ms } else { wait_ms };
        StepPlan { epoch, ..with_phase("data wait", wait_ms * MS) }
    };
    let found = all_findings(&run(400, plan, readings)).found.into_iter();
    found.filter(|finding| finding.kind == FindingKind::SlowStorage).collect()
}

#[test]
fn storage_that_is_slow_in_small_pieces_is_named() {
    let [found] = &storage(15, 15, &reads(8e6, 2000.0, |t| t * 8e6))[..] else { panic!("not found") };
    assert_facts(found, FindingKind::SlowStorage, &[(Number::ReadSize, 4000.0), (Number::ReadPerS, 8e6)]);
    assert_contains(found, FindingKind::SlowStorage, &["in small pieces"]);
    assert_eq!(storage(15, 15, &reads(8e6, 2000.0, |_| 0.0)), [], "from memory they cost little");
    assert_eq!(storage(0, 0, &reads(8e6, 2000.0, |t| t * 8e6)), [], "nothing waits for them");
}

#[test]
fn cold_cache_is_not_a_small_one() {
    // The first of four epochs takes six seconds.
    let cold = reads(50e6, 100.0, |t| t.min(6.0) * 50e6);
    let [found] = &storage(25, 0, &cold)[..] else { panic!("not found") };
    assert_contains(found, FindingKind::SlowStorage, &["the first epoch reads", "later ones find the data in memory"]);
    assert_facts(found, FindingKind::SlowStorage, &[(Number::Slower, 25.0 / 34.5)]);
    let [found] = &storage(25, 25, &reads(50e6, 100.0, |t| t * 50e6))[..] else { panic!("not found") };
    assert_contains(found, FindingKind::SlowStorage, &["every epoch reads", "from disks again"]);
    assert_facts(found, FindingKind::SlowStorage, &[(Number::FromDisksPerEpoch, 50e6 * 5.77)]);
}

#[test]
fn data_from_the_network_are_named() {
    let received = || counted("machine.network.received_bytes", Unit::Bytes, |t| t * 45e6);
    let remote = reads(50e6, 100.0, |_| 0.0).into_iter().chain([received()]).collect::<Vec<_>>();
    let [found] = &storage(15, 15, &remote)[..] else { panic!("not found") };
    assert_facts(found, FindingKind::SlowStorage, &[(Number::ReceivedPerS, 45e6)]);
    let local = reads(50e6, 100.0, |_| 0.0);
    assert_eq!(storage(15, 15, &local), []);
}

#[test]
fn files_of_a_network_file_system_are_named_by_the_stacks_that_wait_for_them() {
    let found = |call: &str| {
        let plan = |_| with_phase("data wait", 15 * MS);
        let mut stream = stream(400, plan, &reads(50e6, 100.0, |_| 0.0));
        let track = stream.track(TrackRole::Stacks, "stacks of train");
        for number in 0..6 {
            let (at_ns, frames) =
                (START_NS + (1 + number) * 1000 * MS, [call, "__getitem__ (data.py:2)", "loader worker"]);
            stream.stack(track, at_ns, StackThread::LoaderWorker, &frames);
        }
        let found = all_findings(&store_of(stream)).found.into_iter();
        found.filter(|finding| finding.kind == FindingKind::SlowStorage).collect::<Vec<_>>()
    };
    let [remote] = &found("read of part-3.bin on nfs4 (<system call>)")[..] else { panic!("not found") };
    assert_facts(remote, FindingKind::SlowStorage, &[(Number::Stacks, 6.0)]);
    assert_contains(remote, FindingKind::SlowStorage, &["over the network, from nfs4", "read of part-3.bin on nfs4"]);
    assert_eq!(found("read of part-3.bin on ext4 (<system call>)"), []);
}
