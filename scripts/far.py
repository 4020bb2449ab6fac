#!/usr/bin/env python3
"""Four ranks of torchrun on two machines, seen from a third by ssh.

Prints what the report says of them, what the line costs, and whether a step is lost or seen twice when it is cut
and mended.

    scripts/far.py --python ~/.cache/gnntop/python-env/bin/python [--gnntop target/release/gnntop] [--seconds 60]

The machines are network namespaces with names of their own, each with a real sshd of OpenSSH. Needs root, sshd, ssh
and ip. They share a kernel, and so a boot and a clock. Nothing outside a temporary folder and the namespaces is
changed.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MACHINES = {"elm": "10.213.78.2", "oak": "10.213.78.3"}
VIEWER = "10.213.78.1"
TRAIN = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.time() + float(os.environ["SECONDS"])
more = torch.ones(1)
step = 0
while more.item():
    loss = model(torch.randn(32, 64)).square().mean()
    if rank == 3:
        time.sleep(0.02)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 50 == 0:
        more.fill_(float(time.time() < end))
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
if rank == 0:
    print("STEPS", step, flush=True)
dist.destroy_process_group()
"""


def run(*words, check=True):
    """Runs a program of this machine."""
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True)


class Machines:
    """Two machines and the viewer's, joined by a bridge."""

    def __init__(self, folder, gnntop):
        self.folder, self.gnntop = folder, gnntop
        self.daemons = []
        self.remove()
        run("ip", "netns", "add", "gnntop-viewer")
        run("ip", "-n", "gnntop-viewer", "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", "gnntop-viewer", "address", "add", f"{VIEWER}/24", "dev", "bridge")
        run("ip", "-n", "gnntop-viewer", "link", "set", "bridge", "up")
        run("ip", "-n", "gnntop-viewer", "link", "set", "lo", "up")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
        (folder / "bin").mkdir()
        shutil.copy(gnntop, folder / "bin/gnntop")
        for name, address in MACHINES.items():
            self.add(name, address)
        hosts = "".join(f"Host {name}\n  HostName {address}\n" for name, address in MACHINES.items())
        (folder / "ssh_config").write_text(
            f"{hosts}Host *\n  User root\n  IdentityFile {folder}/key\n  StrictHostKeyChecking no\n"
            f"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        )
        ssh = folder / "bin/ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        ssh.chmod(0o755)

    def add(self, name, address):
        """Adds a machine with a cable to the bridge and an sshd."""
        space = f"gnntop-{name}"
        run("ip", "netns", "add", space)
        run(
            "ip", "link", "add", "cable", "netns", space, "type", "veth", "peer", "name", name, "netns", "gnntop-viewer"
        )
        run("ip", "-n", space, "address", "add", f"{address}/24", "dev", "cable")
        run("ip", "-n", space, "link", "set", "cable", "up")
        run("ip", "-n", space, "link", "set", "lo", "up")
        run("ip", "-n", "gnntop-viewer", "link", "set", name, "master", "bridge", "up")
        (self.folder / name).mkdir(mode=0o700)
        config = self.folder / f"sshd-{name}"
        config.write_text(
            f"ListenAddress {address}\nHostKey {self.folder}/key\nAuthorizedKeysFile {self.folder}/key.pub\n"
            f"StrictModes no\nPermitRootLogin yes\nUsePAM no\nPidFile none\n"
            f"SetEnv GNNTOP_DIR={self.folder}/{name} PATH={self.folder}/bin:/usr/bin:/bin\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        sshd = ["/usr/sbin/sshd", "-D", "-f", config]
        self.daemons.append(self.start(name, *sshd, stderr=subprocess.DEVNULL))

    def start(self, name, *words, **options):
        """Starts a program on a machine."""
        command = [
            "ip",
            "netns",
            "exec",
            f"gnntop-{name}",
            "unshare",
            "--uts",
            "sh",
            "-c",
            f'hostname {name}; exec "$@"',
            "sh",
        ]
        return subprocess.Popen([*command, *map(str, words)], **options)

    def environment(self, **more):
        """The variables of a program on one of them."""
        return os.environ | {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "GNNTOP_DIR": f"{self.folder}/none",
            **more,
        }

    def cable(self, name, state):
        """Pulls the cable of a machine (`down`), or puts it back (`up`)."""
        run("ip", "-n", "gnntop-viewer", "link", "set", name, state)

    def received(self):
        """Bytes that the viewer has received from the machines."""
        shown = json.loads(run("ip", "-n", "gnntop-viewer", "-s", "-j", "link", "show").stdout)
        # What the machines send each other passes the bridge and is not received by it.
        return sum(link["stats64"]["rx"]["bytes"] for link in shown if link["ifname"] == "bridge")

    def remove(self):
        """Ends all that runs on them, and removes them."""
        for daemon in self.daemons:
            daemon.kill()
        for name in [*MACHINES, "viewer"]:
            run("ip", "netns", "delete", f"gnntop-{name}", check=False)


def train(machines, python, seconds):
    """Starts the training on both machines, as docs/cookbook.md says."""
    script = machines.folder / "train.py"
    script.write_text(TRAIN)
    started = []
    for node, name in enumerate(MACHINES):
        environment = machines.environment(
            GNNTOP_DIR=f"{machines.folder}/{name}",
            SECONDS=str(seconds),
            GLOO_SOCKET_IFNAME="cable",
            OMP_NUM_THREADS="1",
        )
        torchrun = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", f"--node-rank={node}"]
        torchrun += [f"--master-addr={MACHINES['elm']}", "--master-port=29511", script]
        words = [machines.folder / "bin/gnntop", "run", "--plain", "--run", "night", "--", python, *torchrun]
        with (machines.folder / f"train-{name}.log").open("w") as log:
            started.append(machines.start(name, *words, env=environment, stdout=log, stderr=subprocess.STDOUT))
    return started


def cpu_s(pids):
    """CPU time of these processes and of their children that have ended, in seconds."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def processes(words):
    """Ids of the processes with these words in their command lines."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if words in line:
                found.append(int(entry.name))
    return found


def report(machines, *words):
    """A report as the viewer's machine makes it."""
    gnntop = machines.folder / "bin/gnntop"
    options = {"env": machines.environment(), "stdout": subprocess.PIPE, "text": True}
    return machines.start("viewer", gnntop, "report", *words, **options).communicate()[0]


def measure_line(machines, seconds):
    """Prints what the line carries and what both ends take while a recording is made of it."""
    senders = processes("gnntop send")
    before = machines.received(), cpu_s(processes("record")), cpu_s(senders)
    time.sleep(seconds)
    after = machines.received(), cpu_s(processes("record")), cpu_s(senders)
    received, near, far = ((new - old) / seconds for new, old in zip(after, before, strict=True))
    print(f"line: {received * 8 / 4 / 1000:.1f} kbit/s a rank")
    print(f"near end {near * 100:.2f} % of a core, far ends {far * 50:.2f} % each")


def follow(machines, seconds, python):
    """Follows the training from the viewer's machine, pulls a cable, and says whether every step was seen once."""
    trainings = train(machines, python, seconds)
    deadline = time.monotonic() + 60
    while sum(len(list((machines.folder / name).glob("*/live"))) for name in MACHINES) < 4:
        if time.monotonic() > deadline:
            sys.exit("the ranks have not begun")
        time.sleep(0.2)
    address, recording = "ssh:elm,oak/night", machines.folder / "a.gnntop"
    gnntop = machines.folder / "bin/gnntop"
    viewer = machines.start("viewer", gnntop, "record", address, "-o", recording, env=machines.environment())
    time.sleep(8)
    measure_line(machines, 15)
    machines.cable("oak", "down")
    # gloo's own connection is cut, too: after a longer time the training fails.
    time.sleep(8)
    machines.cable("oak", "up")
    print("\n".join(report(machines, address).splitlines()[6:13]))
    for training in trainings:
        training.wait()
    viewer.wait()
    logs = "".join(path.read_text() for path in machines.folder.glob("elm/*.log"))
    steps = int(re.search(r"STEPS (\d+)", logs).group(1))
    whole, recorded = json.loads(report(machines, "--json", address)), json.loads(report(machines, "--json", recording))
    seen = [row["steps"] for row in whole["run"]["ranks"]]
    print(f"steps of the program: {steps}; of each rank by ssh: {seen}")
    print("recorded by ssh while the line was cut:", [row["steps"] for row in recorded["run"]["ranks"]])
    return seen == [steps] * 4


def main():
    """Does what the command line says."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", required=True, help="a Python with torch")
    options.add_argument("--gnntop", default="target/release/gnntop")
    options.add_argument("--seconds", type=float, default=60)
    options = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gnntop-machines-"))
    machines = Machines(folder, options.gnntop)
    try:
        is_good = follow(machines, options.seconds, options.python)
    finally:
        machines.remove()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
