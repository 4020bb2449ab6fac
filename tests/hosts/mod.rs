//! Two machines on one: network namespaces that only a cable joins, of which the second has a name, a boot and a clock of its
//! own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// By how many seconds the second machine's clock is ahead.
pub const AHEAD_S: u64 = 5;
/// Their network.
const NETWORK: &str = "10.213.77.0/30";
const ADDRESSES: [&str; 2] = ["10.213.77.1", "10.213.77.2"];

/// Both machines; they are gone when this is dropped.
pub struct Hosts {
    names: [String; 2],
    /// What mpirun calls to start something on the second machine.
    agent: PathBuf,
}

impl Hosts {
    /// Starts them; what they need lies in `dir`. An error is why they cannot be.
    pub fn start(dir: &Path) -> Result<Self, String> {
        let names = ["elm", "oak"].map(|name| format!("gnntop-{name}-{}", std::process::id()));
        let agent = dir.join("agent.sh");
        done("unshare", &["--uts", "--mount", "--time", "--monotonic", "1", "--fork", "true"])?;
        let hosts = Self { names, agent };
        hosts.connect()?;
        hosts.write_agent(dir).map_err(|error| error.to_string())?;
        Ok(hosts)
    }

    fn connect(&self) -> Result<(), String> {
        let [elm, oak] = &self.names;
        self.names.iter().try_for_each(|name| done("ip", &["netns", "add", name]))?;
        let cable = ["link", "add", "cable0", "netns", elm, "type", "veth", "peer", "name", "cable1", "netns", oak];
        done("ip", &cable)?;
        for (name, (end, address)) in self.names.iter().zip(["cable0", "cable1"].iter().zip(ADDRESSES)) {
            done("ip", &["-n", name, "address", "add", &format!("{address}/30"), "dev", end])?;
            done("ip", &["-n", name, "link", "set", end, "up"])?;
            done("ip", &["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// A stand-in for ssh: `agent HOST COMMAND...`.
    fn write_agent(&self, dir: &Path) -> std::io::Result<()> {
        let boot = dir.join("boot_id");
        fs::write(&boot, "0a4b0a4b-0000-4000-8000-00000000000a\n")?;
        let script = format!(
            "#!/bin/sh\nshift\nexport INNER=\"$*\"\nexec ip netns exec {} unshare --uts --mount --time --monotonic {AHEAD_S} --fork \
             sh -c 'hostname oak && mount --bind {} /proc/sys/kernel/random/boot_id && exec sh -c \"$INNER\"'\n",
            self.names[1],
            boot.display()
        );
        fs::write(&self.agent, script)?;
        fs::set_permissions(&self.agent, fs::Permissions::from_mode(0o755))
    }

    /// Pulls the cable: nothing that one of them sends comes to the other any more.
    pub fn pull_the_cable(&self) {
        done("ip", &["-n", &self.names[0], "link", "set", "cable0", "down"]).unwrap();
    }

    /// An mpirun on the first machine that starts this there and on the second one.
    pub fn mpirun(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        let hosts = ADDRESSES.map(|address| format!("{address}:1")).join(",");
        command.args(["netns", "exec", &self.names[0], "mpirun", "--host", &hosts, "-n", "2", "-x", "GNNTOP_DIR"]);
        command.arg("--mca").arg("plm_rsh_agent").arg(&self.agent);
        for setting in [["btl", "tcp,self"], ["btl_tcp_if_include", NETWORK], ["oob_tcp_if_include", NETWORK]] {
            command.arg("--mca").args(setting);
        }
        command.args(words);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was never there is gone as well.
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
        }
    }
}

/// Does this, or says why it cannot be.
fn done(program: &str, words: &[&str]) -> Result<(), String> {
    let line = format!("{program} {}", words.join(" "));
    let output = Command::new(program).args(words).output().map_err(|error| format!("{line}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{line}: {}", said.trim())) }
}
