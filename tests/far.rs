//! Sessions of other machines, by ssh and Slurm. What stands for `ssh`, `squeue`, `scontrol` and `srun` are scripts that start
//! the far end here, in a sessions directory for each machine; `scripts/far.py` does the same with real ones of OpenSSH.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use gnntop_fixtures::ParallelRun;
use serde_json::Value;

use crate::sessions::{Published, Ran, Sessions, has_python, spawn, wait_until};

/// Takes the last two words, a machine and a command, and does what the machine's file says before it runs the command there.
const SSH: &str = r#"#!/bin/sh
while [ $# -gt 2 ]; do shift; done
echo "$1" >>"$MACHINES/calls"
[ -d "$MACHINES/$1" ] || { echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255; }
export GNNTOP_DIR="$MACHINES/$1" HOST="$1"
[ -e "$MACHINES/$1.sh" ] && . "$MACHINES/$1.sh"
exec sh -c "$2"
"#;

/// Some machines, and the one from which they are seen.
struct Machines {
    sessions: Sessions,
}

impl Machines {
    fn new(hosts: &[&str]) -> Self {
        let machines = Self { sessions: Sessions::new() };
        hosts.iter().for_each(|host| fs::create_dir(machines.path(host)).unwrap());
        fs::create_dir(machines.path("bin")).unwrap();
        machines.program("ssh", SSH);
        machines
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sessions.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.path(&format!("bin/{name}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What the machine does before anything is run on it.
    fn first(&self, host: &str, script: &str) {
        self.sessions.file(&format!("{host}.sh"), script.as_bytes());
    }

    fn session(&self, host: &str, pid: u32, bytes: &[u8]) -> Published {
        self.sessions.live(&format!("{host}/sage-{pid}-00000000"), bytes)
    }

    fn gnntop(&self, words: &[&str]) -> Command {
        let own = PathBuf::from(env!("CARGO_BIN_EXE_gnntop"));
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let own = [self.path("bin"), own.parent().unwrap().to_owned()];
        let path = own.into_iter().chain(std::env::split_paths(&usual));
        let mut command = self.sessions.gnntop(words);
        command.env("PATH", std::env::join_paths(path).unwrap()).env("MACHINES", self.sessions.path());
        command.env("TMPDIR", self.sessions.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::new(&self.gnntop(words).output().unwrap())
    }

    /// The folders of copies here.
    fn copies(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.sessions.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.filter(|name| name.to_string_lossy().starts_with("gnntop-far-"));
        names.map(|name| self.sessions.path().join(name)).collect()
    }

    /// Nothing is left here of the copies.
    fn assert_clean(&self) {
        assert!(self.copies().is_empty(), "{:?}", self.copies());
    }
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn the_ranks_of_several_machines_are_one_run() {
    let machines = Machines::new(&["elm", "oak"]);
    let parallel = ParallelRun { ranks: 2, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    let _oak = machines.session("oak", 5001, &parallel.session(1));
    for address in ["ssh:elm,oak", "ssh:me@elm,oak/job-17", "ssh:elm,oak,beech"] {
        if address.contains('@') {
            fs::rename(machines.path("elm"), machines.path("me@elm")).unwrap();
        }
        let ran = machines.run(&["report", address, "--json"]);
        let ranks = report(&ran)["run"]["ranks"].as_array().map_or(0, Vec::len);
        assert_eq!((ran.code, ranks), (Some(0), 2), "{address}: {ran:?}");
        let missing = ran.err.contains("beech is not reached: ssh: connect to host beech port 22: No route to host");
        assert_eq!(missing, address.contains("beech"), "{ran:?}");
        if address.contains('@') {
            fs::rename(machines.path("me@elm"), machines.path("elm")).unwrap();
        }
    }
    machines.assert_clean();
}

#[test]
fn a_line_that_is_cut_loses_no_step_and_has_none_twice() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = Machines::new(&["elm"]);
    machines.sessions.file(
        "train.py",
        b"
import gnntop, os, time
gnntop.start()
while not os.path.exists('go'):
    time.sleep(0.01)
for step in range(1200):
    with gnntop.span('forward'):
        time.sleep(0.005)
    gnntop.step()
",
    );
    // The first lines break after so many bytes, in the middle of anything.
    machines.first(
        "elm",
        r#"
        calls=$(wc -l <"$MACHINES/calls")
        case $calls in 1 | 2 | 3 | 4) sh -c "$2" | dd bs=1 count=$((calls * 1500 + 4500)) 2>/dev/null; exit 255;; esac
    "#,
    );
    let mut train = machines.gnntop(&["run", "--plain", "--", "python3", "train.py"]);
    let train = spawn(train.env("GNNTOP_DIR", machines.path("elm")));
    wait_until(|| fs::read_dir(machines.path("elm")).unwrap().any(|entry| entry.unwrap().path().join("live").exists()));
    let record = spawn(&mut machines.gnntop(&["record", "ssh:elm", "-o", "a.gnntop"]));
    wait_until(|| machines.path("a.gnntop").exists());
    machines.sessions.file("go", b"");
    assert_eq!(Ran::new(&train.wait_with_output().unwrap()).code, Some(0));
    let recorded = Ran::new(&record.wait_with_output().unwrap());
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    assert!(fs::read_to_string(machines.path("calls")).unwrap().lines().count() >= 4, "the line was cut");
    let report = report(&machines.run(&["report", "a.gnntop", "--json"]));
    assert_eq!(report["steps"]["total"], 1200);
    for what in ["missing_steps", "lost_segments", "missed_events", "repeated_blocks", "damage_count", "backward_times"]
    {
        assert_eq!(report["losses"][what], 0, "{what}");
    }
}

#[test]
fn what_cannot_be_read_is_said_with_what_to_do() {
    let machines = Machines::new(&["elm"]);
    let refused = |script: &str, words: &str| {
        machines.first("elm", script);
        machines.run(&["report", "ssh:elm"]).assert_refused(words);
        machines.assert_clean();
    };
    refused("", "elm has no session");
    refused("echo 'sh: gnntop: not found' >&2; exit 127", "elm has no gnntop in its PATH: install it there");
    refused(
        r#"echo '{"Hello":{"protocol":9,"version":"7.0.0"}}'; cat >/dev/null"#,
        "elm has gnntop 7.0.0, which does not talk to",
    );
    refused(
        "echo 'Permission denied (publickey).' >&2; exit 255",
        "elm is not reached: Permission denied (publickey).",
    );
    refused("exit 0", "elm is cut off");
    machines.run(&["report", "ssh:elm/nope"]).assert_refused("elm is cut off");
    assert_eq!(machines.run(&["report", "ssh:-oProxyCommand=touch"]).code, Some(2));
    assert_eq!(machines.run(&["list", "elm"]).code, Some(2));
    for words in [&["report", "ssh:elm", "ssh:oak"][..], &["report", "ssh:elm", "--against", "slurm:1"]] {
        let ran = machines.run(words);
        assert!(ran.code == Some(2) && ran.err.contains("a command takes one address"), "{ran:?}");
    }
    for command in ["report", "list"] {
        let ran = machines.run(&[command, "ssh:node[5-1]"]);
        assert!(ran.code == Some(2) && ran.err.contains("`5-1` counts down"), "{ran:?}");
    }
}

#[test]
fn a_hostile_machine_writes_nothing_but_sessions_of_its_own() {
    let machines = Machines::new(&["elm", "oak"]);
    let parallel = ParallelRun { ranks: 2, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    let pong = r#"echo '{"Hello":{"protocol":1,"version":"x"}}'; for i in 1 2 3 4 5 6 7 8; do read line; echo '{"Pong":{"monotonic_ns":0}}'; done; read line; sleep 0.3;"#;
    let alive = r#"echo '{"Session":{"name":"sage-5000-00000000","alive":true,"stopped":null}}';"#;
    let own = r#"echo '{"Session":{"name":"sage-9-00000000","alive":true,"stopped":null}}';"#;
    let append = |session: &str, file: &str| {
        format!(r#"echo '{{"Append":{{"session":"{session}","file":"{file}","at":0,"len":4}}}}'; printf evil;"#)
    };
    // What another machine sends is its own.
    let theirs = format!("{alive}{}", append("sage-5000-00000000", "00000000.gnntop"));
    machines.first("oak", &format!("{pong}{theirs} echo '\"Synced\"'; exec cat >/dev/null"));
    let ran = machines.run(&["report", "ssh:elm,oak", "--json"]);
    assert_eq!((ran.code, &report(&ran)["losses"]["damage_count"]), (Some(0), &0.into()), "{ran:?}");
    for says in [
        append("sage-9-00000000", "00000000.gnntop"),
        format!("{own}{}", append("sage-9-00000000", "../../evil")),
        format!("{own}{}", append("sage-9-00000000", "live")),
        r#"echo '{"Session":{"name":"../evil-1-00000000","alive":true,"stopped":null}}';"#.to_owned(),
        r#"echo '{"Append":{"session":"sage-9-00000000","file":"x","at":0,"len":99999999999}}';"#.to_owned(),
        "echo no message;".to_owned(),
        "yes | tr -d '\\n' | head -c 200000;".to_owned(),
        "printf '\\033[2J\\n';".to_owned(),
    ] {
        machines.first("oak", &format!("{pong}{says} exec cat >/dev/null"));
        let ran = machines.run(&["report", "ssh:elm,oak", "--json"]);
        assert_eq!(ran.code, Some(0), "{says}: {ran:?}");
        assert!(ran.err.contains("oak is not read further: "), "{says}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
        assert_eq!(report(&ran)["run"]["ranks"].as_array().map_or(0, Vec::len), 1, "{says}");
    }
    assert!(!machines.path("evil").exists());
    machines.assert_clean();
}

#[test]
fn a_view_says_what_is_not_reached_any_more() {
    let machines = Machines::new(&["elm"]);
    let parallel = ParallelRun { ranks: 1, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    machines.first(
        "elm",
        r#"[ $(wc -l <"$MACHINES/calls") = 1 ] || { echo "ssh: cut" >&2; exit 255; }
        exec 3<&0; sh -c "$2" <&3 & sleep 2; kill $!; exit 255"#,
    );
    let mut attach = machines.gnntop(&["attach", "--plain", "ssh:elm"]);
    let attach = spawn(attach.arg("--interval").arg("1s"));
    std::thread::sleep(Duration::from_secs(6));
    crate::sessions::signal(&attach, "TERM");
    let ran = Ran::new(&attach.wait_with_output().unwrap());
    assert!(ran.out.contains("is not reached: ssh: cut") || ran.err.contains("is not reached: ssh: cut"), "{ran:?}");
    machines.assert_clean();
}

/// Runs until its end, which need not come.
fn until_end(command: &mut Command) -> Ran {
    let mut child = spawn(command);
    wait_until(|| child.try_wait().unwrap().is_some());
    Ran::new(&child.wait_with_output().unwrap())
}

#[test]
fn an_ssh_that_is_a_script_ends_with_its_command() {
    let machines = Machines::new(&["elm"]);
    let parallel = ParallelRun { ranks: 1, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    // It runs the real one as a child, or leaves something behind, which is out of reach and holds its pipes.
    let left = r#"setsid sh -c 'while [ -d "$MACHINES/bin" ]; do sleep 0.1; done' &"#;
    for script in ["sh -c \"$2\"; exit", left, &format!("{left} sh -c \"$2\"; exit")] {
        machines.first("elm", script);
        for words in [&["report", "ssh:elm"][..], &["top", "--once", "ssh:elm"], &["list", "ssh:elm"]] {
            let ran = until_end(&mut machines.gnntop(words));
            assert!(ran.code == Some(0) && ran.out.contains("sage"), "{script}: {ran:?}");
        }
    }
    machines.assert_clean();
}

#[test]
fn a_signal_ends_what_waits_for_a_machine() {
    let machines = Machines::new(&["elm"]);
    machines.first("elm", "trap '' TERM INT HUP; echo >\"$MACHINES/reached\"; sh -c 'sleep 600'; sleep 600");
    machines.program("squeue", "#!/bin/sh\necho >\"$MACHINES/reached\"; sleep 600; sleep 600\n");
    let cases =
        [("TERM", ["report", "ssh:elm"], 1), ("INT", ["list", "ssh:elm"], 130), ("HUP", ["list", "slurm:1"], 1)];
    for (signal, words, code) in cases {
        let mut command = spawn(&mut machines.gnntop(&words));
        wait_until(|| machines.path("reached").exists());
        crate::sessions::signal(&command, signal);
        wait_until(|| command.try_wait().unwrap().is_some());
        let ran = Ran::new(&command.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        fs::remove_file(machines.path("reached")).unwrap();
    }
    machines.assert_clean();
}

#[test]
fn what_a_machine_says_drives_no_terminal_and_has_an_end() {
    let machines = Machines::new(&["elm"]);
    machines.first("elm", r"printf '\033]0;a\007b\377\n'; printf 'c\033[31m\n' >&2; exit 3");
    let ran = machines.run(&["list", "ssh:elm"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("\u{fffd}]0;a\u{fffd}b\u{fffd}\n", "c\u{fffd}[31m\n"));
    for endless in ["exec yes", "exec yes >&2"] {
        machines.first("elm", endless);
        let ran = machines.run(&["stop", "ssh:elm/sage"]);
        assert!(ran.code == Some(1) && ran.err.contains("elm says more than 1024 KiB; the rest is left out"));
    }
    machines.first("elm", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end; exit");
    let ran = machines.run(&["list", "ssh:elm"]);
    assert!(ran.code == Some(0) && ran.out.contains("x ... (the rest of the line is left out)\nend\n"), "{ran:?}");
}

#[test]
fn a_table_shows_what_has_ended() {
    let machines = Machines::new(&["elm"]);
    machines.sessions.ended("elm/sage-5000-00000000", &ParallelRun { ranks: 1, ..ParallelRun::default() }.session(0));
    let segment = machines.path("elm/sage-5000-00000000/00000000.gnntop");
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3 * 3600 + 600);
    fs::OpenOptions::new().append(true).open(segment).unwrap().set_modified(long_ago).unwrap();
    for address in ["ssh:elm", "ssh:elm/sage"] {
        let ran = machines.run(&["top", "--once", address]);
        assert!(ran.code == Some(0) && ran.out.contains("ended 3h"), "{ran:?}");
    }
}

#[test]
fn what_a_killed_command_has_left_goes_with_the_next() {
    let machines = Machines::new(&["elm"]);
    let parallel = ParallelRun { ranks: 1, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    let kill = || {
        let mut attach = spawn(&mut machines.gnntop(&["attach", "--plain", "ssh:elm"]));
        wait_until(|| machines.copies().iter().any(|dir| dir.join("sessions/sage-5000-00000000").exists()));
        let _second = machines.run(&["report", "ssh:elm"]);
        assert_eq!(machines.copies().len(), 1, "those of a command that runs stay");
        attach.kill().unwrap();
        attach.wait().unwrap();
        assert_eq!(machines.copies().len(), 1);
    };
    kill();
    assert_eq!(machines.run(&["report", "ssh:elm"]).code, Some(0));
    machines.assert_clean();
    kill();
    let clean = machines.run(&["clean", "--older", "1d"]);
    assert!(clean.code == Some(0) && clean.out.contains("a killed command has left it"), "{clean:?}");
    machines.assert_clean();
}

#[test]
fn a_job_has_no_more_machines_than_an_address() {
    let machines = Machines::new(&[]);
    machines.program("squeue", "#!/bin/sh\necho '4711 4711 node[1-200000]'\n");
    for (script, words) in [
        ("seq -f node%.0f 1 1025", "job 4711 has 1025 machines: more than 1024"),
        ("seq -f node%.0f 1 200000", "scontrol says more than the names of 1024 machines"),
        ("echo -oProxyCommand=x", "scontrol names a machine `-oProxyCommand=x`"),
        ("exit 3", "scontrol: it failed"),
    ] {
        machines.program("scontrol", &format!("#!/bin/sh\n{script}\n"));
        machines.run(&["report", "slurm:4711"]).assert_refused(words);
    }
    assert!(!machines.path("calls").exists(), "nothing was started for them");
}

#[test]
fn commands_that_act_run_on_the_machine() {
    let machines = Machines::new(&["elm", "oak"]);
    let parallel = ParallelRun { ranks: 2, ends: false, ..ParallelRun::default() };
    let _elm = machines.session("elm", 5000, &parallel.session(0));
    let ran = machines.run(&["list", "--live", "ssh:elm,oak"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("elm:\n") && ran.out.contains("job-17") && ran.out.contains("\noak:\n"), "{ran:?}");
    let stop = machines.run(&["stop", "ssh:oak/sage"]);
    assert!(stop.code == Some(1) && stop.err.contains("sage"), "{stop:?}");
}

#[test]
fn a_slurm_job_is_reached_by_ssh_or_else_by_srun() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let machines = Machines::new(&["elm", "oak"]);
    let train = b"import gnntop, os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n    gnntop.step()\n";
    machines.sessions.file("train.py", train);
    let tasks = [("elm", "0"), ("oak", "1")].map(|(host, rank)| {
        let mut task = machines.gnntop(&["run", "--plain", "--", "python3", "train.py"]);
        task.env("SLURM_JOB_ID", "4711").env("SLURM_PROCID", rank).env("SLURM_NTASKS", "2");
        spawn(task.env("GNNTOP_DIR", machines.path(host)))
    });
    let is_live = |host: &str| {
        let entries = fs::read_dir(machines.path(host)).unwrap();
        entries.flatten().any(|entry| entry.path().join("live").exists())
    };
    wait_until(|| is_live("elm") && is_live("oak"));
    machines.program("squeue", "#!/bin/sh\n[ \"$3\" = 4711 ] && echo '4711 4711 tree[elm,oak]' || echo slurm_load_jobs error: Invalid job id >&2\n[ \"$3\" = 4711 ]\n");
    machines.program("scontrol", "#!/bin/sh\n[ \"$3\" = 'tree[elm,oak]' ] && printf 'elm\\noak\\n'\n");
    let ranks = |ran: &Ran| report(ran)["run"]["ranks"].as_array().map_or(0, Vec::len);
    let ran = machines.run(&["report", "slurm:4711", "--json"]);
    assert_eq!((ran.code, ranks(&ran)), (Some(0), 2), "{ran:?}");
    machines.run(&["report", "slurm:9"]).assert_refused("squeue: slurm_load_jobs error: Invalid job id");
    // A job of several parts, and one that waits.
    machines.program("squeue", "#!/bin/sh\nprintf '4711+0 4711 elm\\n4711+1 4712 oak\\n4711+2 4713\\n'\n");
    machines.program("scontrol", "#!/bin/sh\necho \"$3\"\n");
    let ran = machines.run(&["report", "slurm:4711", "--json"]);
    assert_eq!((ran.code, ranks(&ran)), (Some(0), 2), "{ran:?}");
    machines.program("squeue", "#!/bin/sh\nprintf '4711_0 4711 elm\\n4711_1 4711 oak\\n'\n");
    let ran = machines.run(&["list", "--live", "slurm:4711"]);
    assert!(ran.out.contains("rank 0") && ran.out.contains("\noak:\n"), "{ran:?}");
    // A site that lets nobody into its nodes.
    machines.program("ssh", "#!/bin/sh\nexit 255\n");
    machines.program(
        "srun",
        r#"#!/bin/sh
        case "$*" in *--jobid=4711*--overlap*) ;; *) exit 1 ;; esac
        for word; do case $word in --nodelist=*) export GNNTOP_DIR="$MACHINES/${word#*=}" ;; esac; done
        while [ "$1" != sh ]; do shift; done; exec "$@"
    "#,
    );
    let ran = machines.run(&["report", "slurm:4711/train.py", "--json"]);
    assert_eq!((ran.code, ranks(&ran)), (Some(0), 2), "{ran:?}");
    machines.sessions.file("go", b"");
    tasks.into_iter().for_each(|task| assert_eq!(Ran::new(&task.wait_with_output().unwrap()).code, Some(0)));
    // What has ended is on no machine of Slurm's, but may be here.
    let here =
        |words: &[&str]| Ran::new(&machines.gnntop(words).env("GNNTOP_DIR", machines.path("elm")).output().unwrap());
    for squeue in ["exit 0", "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1"] {
        machines.program("squeue", &format!("#!/bin/sh\n{squeue}\n"));
        for address in ["slurm:4711", "slurm:4711/train.py"] {
            let ran = here(&["report", address]);
            assert!(ran.code == Some(0) && ran.err.contains("its sessions here are taken"), "{ran:?}");
        }
        here(&["report", "slurm:471/train.py"]).assert_refused("has no session of it: set GNNTOP_DIR");
        here(&["report", "slurm:4711/other"]).assert_refused("no session named other");
        let ran = here(&["top", "--once", "slurm:4711"]);
        assert!(ran.code == Some(0) && ran.out.contains("4711-"), "{ran:?}");
    }
    let list = |job: &str| here(&["list", "--job", job]).out.contains("train.py");
    assert!(list("4711") && !list("471"));
    machines.assert_clean();
}
