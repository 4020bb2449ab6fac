//! The commands that read: list, attach, replay, report and doctor, on hand-written sessions and recordings.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;

use crate::sessions::{Sessions, spawn, wait_until};
use gnntop_fixtures::{MS, SECOND, StreamBuilder, TrainingRun, session_info};
use gnntop_wire::{SessionInfo, TrackRole};

fn run_of(name: &'static str) -> Vec<u8> {
    TrainingRun { name, ..TrainingRun::default() }.bytes()
}

#[test]
fn help_goes_to_standard_output_and_wrong_usage_to_standard_error() {
    let sessions = Sessions::new();
    let help = sessions.run(["--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Examples:") && help.err.is_empty());
    let version = sessions.run(["--version"]).out;
    assert!(version.starts_with(concat!("gnntop ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    for command in
        ["run", "train", "attach", "trace", "list", "clean", "record", "replay", "report", "doctor", "config"]
    {
        let help = sessions.run([command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.out.contains("Examples:"), "{command}");
    }
    for wrong in [&["atach"][..], &["list", "--most"], &["replay"], &["replay", "x", "--speed", "fast"], &["run"]] {
        let ran = sessions.run(wrong);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{wrong:?}");
    }
    // No training has such a name.
    let unknown = sessions.run(["run", "--named", "--", "python", "train.py"]);
    assert_eq!(unknown.err, "gnntop: unknown option --named; see gnntop run --help\n");
}

#[test]
fn list_shows_sessions_and_reports_invalid_ones() {
    let sessions = Sessions::new();
    let none = sessions.run(["list"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    assert!(none.err.contains("gnntop run pna"));
    let _live = sessions.live("alive", &run_of("pna"));
    let ended = sessions.ended("over", &run_of("gin"));
    symlink(ended.dir(), sessions.path().join("link")).unwrap();
    let list = sessions.run(["list"]);
    let lines: Vec<&str> = list.out.lines().collect();
    assert_eq!(lines.len(), 3, "{list:?}");
    assert!(lines[0].starts_with("NAME"));
    assert!(lines[1].starts_with("pna") && lines[1].contains("live"), "{list:?}");
    assert!(lines[2].starts_with("gin") && lines[2].contains("ended"), "{list:?}");
    assert!(list.err.contains("link is a symbolic link"), "{list:?}");
    assert!(!sessions.run(["list", "--live"]).out.contains("gin"));
}

#[test]
fn refused_sessions_directory_is_reported_in_one_line() {
    let sessions = Sessions::new();
    let file = sessions.file("file", b"");
    for command in ["list", "clean", "attach", "record"] {
        let output = sessions.gnntop([command]).env("GNNTOP_DIR", &file).output().unwrap();
        crate::sessions::Ran::new(&output)
            .assert_refused("is not a directory; set GNNTOP_DIR to a directory of your own");
    }
    let missing = sessions.gnntop(["list"]).env("GNNTOP_DIR", sessions.path().join("none")).output().unwrap();
    assert_eq!(missing.status.code(), Some(0));
}

#[test]
fn gnntop_without_command_prints_hint_or_offers_a_choice() {
    let sessions = Sessions::new();
    let none = sessions.run([""; 0]);
    assert_eq!(none.code, Some(0));
    assert!(none.out.contains("gnntop run pna"), "{none:?}");
    let _one = sessions.live("one", &run_of("pna"));
    let _two = sessions.live("two", &run_of("gin"));
    let several = sessions.run([""; 0]);
    assert_eq!(several.code, Some(1));
    assert!(several.out.contains("pna (pid 4711)") && several.out.contains("gin (pid 4711)"), "{several:?}");
}

#[test]
fn an_unknown_session_is_answered_with_the_known_ones() {
    let sessions = Sessions::new();
    sessions.run(["attach"]).assert_refused("no live session in ");
    sessions.run(["attach", "pna"]).assert_refused("no session named pna; there are no live sessions");
    let _live = sessions.live("one", &run_of("pna"));
    sessions.run(["attach", "pan"]).assert_refused("no session named pan; live sessions: pna (pid 4711)");
    let _other = sessions.live("two", &run_of("pna"));
    sessions.run(["attach", "pna"]).assert_refused("pna may be any of 2: pna (pid 4711), pna (pid 4711)");
}

#[test]
fn a_session_is_followed_until_its_publisher_dies() {
    let sessions = Sessions::new();
    let run = TrainingRun { ends: false, ..TrainingRun::default() }.bytes();
    let mut session = sessions.live("one", &run[..run.len() / 2]);
    let mut child = spawn(&mut sessions.gnntop(["attach"]));
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 14];
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"pna (pid 4711)");
    session.append(&run[run.len() / 2..]);
    session.die();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("step 100,") && rest.contains("ended unexpectedly: killed?"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_recording_is_replayed_at_speed_and_reported_on() {
    let sessions = Sessions::new();
    let file = sessions.file("a.gnntop", &run_of("pna"));
    let replay = sessions.run(["replay", "a.gnntop", "--speed", "100"]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    assert!(replay.out.contains("step 100,") && replay.out.contains("end of the recording"), "{replay:?}");
    let report = sessions.run(["report", file.to_str().unwrap()]);
    assert_eq!((report.code, report.err.as_str()), (Some(0), ""));
    assert!(report.out.contains("100 steps") && report.out.contains("backward"), "{report:?}");
}

#[test]
fn energy_uses_flags_and_settings_in_every_command() {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &run_of("pna"));
    let given = ["--cpu-watts", "50", "--ram-watts", "2"];
    let told = |more: &[&str]| {
        let out = sessions.run(["report", "a.gnntop"].iter().chain(&given).chain(more)).out;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(told(&[]).contains("carbon - give the electricity's region"), "no region, no number");
    assert!(told(&["--region", "CA-QC"]).contains("CA-QC 31.23 g/kWh (2023, lifecycle, derived"));
    fs::create_dir(sessions.path().join("gnntop")).unwrap();
    fs::write(sessions.path().join("gnntop/config.toml"), "[energy]\nregion = 'FRA'\n").unwrap();
    assert!(told(&[]).contains("; FRA "), "{:?}", told(&[]));
    assert!(told(&["--carbon-intensity", "100"]).contains("100 g/kWh (as given)"));
    let hours = "time,g_per_kwh\n2026-01-02T03:00:00Z,40\n2026-01-02T04:00:00Z,80\n";
    sessions.file("grid.csv", hours.as_bytes());
    let over_time = told(&["--carbon-intensity-file", "grid.csv"]);
    assert!(over_time.contains("40 g/kWh (mean over the run's energy); grid.csv"), "{over_time}");
    sessions.file("late.csv", b"2026-01-02T05:00:00Z,40\n");
    assert!(
        told(&["--carbon-intensity-file", "late.csv"]).contains("carbon - late.csv does not cover the time of the run")
    );
    for command in [&["replay", "a.gnntop"][..], &["attach"], &["run", "--plain"], &[]] {
        let flags = ["--region", "Atlantis"];
        let ran = sessions.run(command.iter().chain(&flags).chain(if command.contains(&"run") {
            &["--", "true"][..]
        } else {
            &[]
        }));
        assert!(ran.code == Some(2) && ran.err.contains("`Atlantis`"), "{command:?}: {ran:?}");
    }
}

#[test]
fn recording_is_read_from_a_pipe() {
    let sessions = Sessions::new();
    let bytes = run_of("pna");
    sessions.file("a.gnntop", &bytes);
    let from_file = sessions.run(["report", "a.gnntop"]);
    let from_pipe = sessions.run_with(["report", "-"], &bytes);
    assert_eq!((from_pipe.code, &from_pipe.out), (Some(0), &from_file.out));
    let replay = sessions.run_with(["replay", "-", "--speed", "100"], &bytes);
    assert!(replay.code == Some(0) && replay.out.contains("step 100,"), "{replay:?}");
}

#[test]
fn a_report_for_programs_is_json() {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &run_of("pna"));
    sessions.ended("b", &run_of("gin"));
    let one = sessions.run(["report", "a.gnntop", "--json", "--percentiles", "50,99.9", "--skip-steps", "10"]);
    let one: serde_json::Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!((&one["schema_version"], &one["session"]["name"]), (&1.into(), &"pna".into()));
    let two = sessions.run(["report", "a.gnntop", "gin", "--json"]);
    let two: serde_json::Value = serde_json::from_str(&two.out).unwrap();
    assert_eq!((&two[0]["session"]["name"], &two[1]["session"]["name"]), (&"pna".into(), &"gin".into()));
    assert_eq!(sessions.run(["report", "a.gnntop", "--percentiles", "101"]).code, Some(2));
}

#[test]
fn report_of_a_live_session() {
    let sessions = Sessions::new();
    let run = TrainingRun { ends: false, ..TrainingRun::default() };
    let _live = sessions.live("one", &run.bytes());
    let report = sessions.run(["report"]);
    assert!(report.code == Some(0) && report.out.contains("100 steps"), "{report:?}");
}

#[test]
fn names_cannot_drive_the_terminal() {
    let sessions = Sessions::new();
    let mut stream = StreamBuilder::new("\x1b[2Jboom\x07\n");
    let track = stream.track(gnntop_wire::TrackRole::Training, "\x1b]0;title\x07");
    stream.phase(
        track,
        1,
        "\x1b[31mred\u{9b}1m",
        gnntop_fixtures::START_NS,
        gnntop_fixtures::START_NS + gnntop_fixtures::MS,
    );
    stream.step(track, 1, gnntop_fixtures::START_NS, gnntop_fixtures::START_NS + gnntop_fixtures::MS);
    let bytes = stream.bytes();
    sessions.file("a.gnntop", &bytes);
    let session = sessions.ended("one", &bytes);
    let dir = session.dir().to_str().unwrap();
    for arguments in [&["list"][..], &["report", "a.gnntop"], &["report", "a.gnntop", "--json"], &["attach", dir]] {
        let ran = sessions.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let harmful = |c: char| c.is_control() && c != '\n';
        assert!(!ran.out.contains(harmful) && !ran.err.contains(harmful), "{ran:?}");
    }
    sessions.run(["attach", "\x1b[2J"]).assert_refused("no session named \u{fffd}[2J");
}

#[test]
fn the_doctor_is_for_people_and_programs() {
    let sessions = Sessions::new();
    let words = sessions.run(["doctor"]);
    assert!(words.code == Some(0) && words.out.contains("sessions directory"), "{words:?}");
    let json = sessions.run(["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(json["checks"].as_array().unwrap().len() > 5);
    let file = sessions.file("file", b"");
    let failed = sessions.gnntop(["doctor"]).env("GNNTOP_DIR", file).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn closed_output_pipe_is_no_failure() {
    let sessions = Sessions::new();
    let _live = sessions.live("one", &run_of("pna"));
    let mut child = spawn(&mut sessions.gnntop(["attach"]));
    drop(child.stdout.take());
    wait_until(|| child.try_wait().unwrap().is_some());
    let ran = crate::sessions::Ran::new(&child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn settings_are_shown_and_mistakes_in_them_refused() {
    let sessions = Sessions::new();
    let path = sessions.run(["config", "path"]).out;
    assert_eq!(path.trim_end(), sessions.path().join("gnntop/config.toml").to_str().unwrap());
    std::fs::create_dir(sessions.path().join("gnntop")).unwrap();
    std::fs::write(path.trim_end(), "theme = 'high-contrast'\n[keys]\nfreeze = 'f'\n").unwrap();
    let printed = sessions.run(["config", "print", "--view", "memory"]).out;
    for (setting, origin) in
        [("theme = \"high-contrast\"", "# file"), ("view = \"memory\"", "# flag"), ("freeze = [\"f\"]", "")]
    {
        assert!(
            printed.lines().any(|line| line.starts_with(setting) && line.contains(origin)),
            "{setting}:\n{printed}"
        );
    }
    std::fs::write(path.trim_end(), "\ntheme = 'mauve'\n").unwrap();
    let refused = sessions.run(["attach", "nobody"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("config.toml:2: theme is mauve: give one of default,"), "{refused:?}");
}

#[test]
fn completions_and_man_cover_every_command() {
    let sessions = Sessions::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sessions.run(["completions", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        assert!(script.out.contains("replay") && script.out.contains("high-contrast"), "{shell}");
    }
    assert!(sessions.run(["man"]).out.contains(".TH gnntop 1"));
    let dir = sessions.path().join("man1");
    assert_eq!(sessions.run(["man", dir.to_str().unwrap()]).code, Some(0));
    let page = std::fs::read_to_string(dir.join("gnntop-replay.1")).unwrap();
    assert!(page.contains("Speed, from 0.1 to 100"), "{page}");
}

#[test]
fn hints_at_what_was_meant_work() {
    let sessions = Sessions::new();
    let said = |arguments: &[&str]| sessions.run(arguments).err;
    assert!(said(&["rn", "pna"]).contains("a similar subcommand exists: 'run'"), "{}", said(&["rn", "pna"]));
    for arguments in [&["run", "train.py", "--lr", "0.1"][..], &["train.py", "--lr", "0.1"]] {
        let said = said(arguments);
        assert!(said.contains("to start a program of your own: gnntop run -- python train.py --lr 0.1"), "{said}");
    }
    for arguments in [&["run", "sh", "-c", "exit 3"][..], &["sh", "-c", "exit 3"]] {
        let said = said(arguments);
        assert!(said.contains("to start a program of your own: gnntop run -- sh -c 'exit 3'"), "{said}");
    }
    assert_eq!(sessions.run(["run", "--", "sh", "-c", "exit 3"]).code, Some(3), "what is suggested works");
}

#[test]
fn hung_session_is_listed_as_one_without_steps() {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let now_ns = gnntop_sensors::monotonic_ns();
    let stream = |last_step_s: u64| {
        let mut stream =
            StreamBuilder::from_info(&SessionInfo { boot_id: boot_id.clone(), ..session_info("train.py") });
        let main = stream.track(TrackRole::Training, "main");
        let end_ns = now_ns - last_step_s * SECOND;
        (1..=20).for_each(|step| stream.step(main, step, end_ns - (21 - step) * MS, end_ns - (20 - step) * MS));
        stream.bytes()
    };
    let sessions = Sessions::new();
    let _hung = sessions.live("hung", &stream(60));
    let _live = sessions.live("live", &stream(0));
    let list = sessions.run(["list"]).out;
    let states = ["no step for 1m", "live"].map(|state| list.lines().filter(|line| line.contains(state)).count());
    assert_eq!(states, [1, 1], "{list}");
}
