#!/usr/bin/env python3
"""Runs trainings of public packages alone and under gnntop, and compares steps, output and exit code.

usage: scripts/public-programs.py --venv FOLDER [--gnntop PROGRAM] [--native LIBRARY] [--only PACKAGE]...

Run it with a Python that has torch. FOLDER becomes an environment on top of it, into which the packages are installed
without their dependencies, so that torch stays as it is. Torch's own hook after an optimizer's step counts the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COUNTER = """
import atexit, warnings
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
warnings.filterwarnings("ignore")
torch.manual_seed(0)
steps = [0]
def count(*_): steps[0] += 1
register_optimizer_step_post_hook(count)
atexit.register(lambda: print("counted", steps[0]))
x, y = torch.randn(640, 8), torch.randn(640, 1)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
"""
SKLEARN = ["scikit-learn", "scipy", "joblib", "threadpoolctl", "narwhals"]
# The package, what else it needs, and the lines that call its own trainer.
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "skorch": (
        [*SKLEARN, "tabulate"],
        """
from skorch import NeuralNetRegressor
net = NeuralNetRegressor(model, max_epochs=5, batch_size=32, train_split=None, verbose=0)
net.fit(x.numpy(), y.numpy())
print(net.history[:, "train_loss"])
""",
    ),
    "pytorch-ignite": (
        [],
        """
from ignite.engine import Events, create_supervised_trainer
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.nn.MSELoss())
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: print(engine.state.output))
trainer.run(loader, max_epochs=5)
""",
    ),
    "pytorch-tabnet": (
        [*SKLEARN, "pandas", "python-dateutil", "tqdm"],
        """
from pytorch_tabnet.tab_model import TabNetRegressor
net = TabNetRegressor(verbose=0)
net.fit(x.numpy(), y.numpy(), max_epochs=3, batch_size=64, virtual_batch_size=32)
print(net.history["loss"])
""",
    ),
    "stable-baselines3": (
        ["gymnasium", "cloudpickle", "farama-notifications", "pandas", "python-dateutil", "matplotlib"],
        """
from stable_baselines3 import PPO
agent = PPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=0, device="cpu").learn(512)
print(float(sum(p.sum() for p in agent.policy.parameters())))
""",
    ),
    "pyro-ppl": (
        ["pyro-api", "opt-einsum", "tqdm"],
        """
import pyro, pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO
def guide(): pyro.sample("z", dist.Normal(pyro.param("m", torch.zeros(())), 1.0))
def prior():
    z = pyro.sample("z", dist.Normal(0.0, 1.0))
    pyro.sample("seen", dist.Normal(z, 1.0), obs=torch.tensor(1.0))
svi = SVI(prior, guide, pyro.optim.SGD({"lr": 0.01}), Trace_ELBO())
print([svi.step() for _ in range(50)])
""",
    ),
}


def prepare(venv: Path, packages: list[str]) -> Path:
    """The Python of an environment that has these packages and sees torch."""
    python = venv / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "torch.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*install, *packages], check=True)
    return python


def run(command: list[str], folder: Path, **extra: str) -> tuple[int, str, str]:
    """Exit code, stdout and all else that was printed; stdout goes to a file: gnntop would keep it as a log."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GNNTOP")}
    variables = inherited | {"GNNTOP_DIR": f"{folder}/sessions", "OMP_NUM_THREADS": "1"} | extra
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, timeout=180)
    return done.returncode, (folder / "out").read_text(), (done.stdout + done.stderr).decode()


def compare(name: str, python: Path, gnntop: Path, native: Path) -> bool:
    """Runs one program both ways and prints a line of it."""
    ask = f"import importlib.metadata as m; print(m.version({name!r}))"
    version = subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as made:
        folder, recording = Path(made), f"{made}/a.gnntop"
        (folder / "train.py").write_text(COUNTER + PROGRAMS[name][1])
        command = ["sh", "-c", 'exec "$@" >out', "sh", str(python), "train.py"]
        alone = run(command, folder)
        reach = {"PYTHONPATH": str(REPOSITORY / "python/gnntop/bootstrap"), "GNNTOP_NATIVE": str(native)}
        watched = run([str(gnntop), "run", "--plain", "--record", recording, "--", *command], folder, **reach)
        told = subprocess.run([gnntop, "report", recording, "--json"], capture_output=True)
    seen = json.loads(told.stdout)["steps"]["total"] if told.returncode == 0 else None
    counted = int(alone[1].rpartition("counted")[2] or -1)
    passed = alone[:2] == watched[:2] and alone[0] == 0 and counted == seen
    same = "same output" if alone[:2] == watched[:2] else "other output"
    print(f"{name} {version}: counted {counted}, seen {seen}, {same}, exit {alone[0]} and {watched[0]}:", end=" ")
    print("pass" if passed else f"FAIL\n{alone[2][-500:]}\n{watched[2][-500:]}", flush=True)
    return passed


def main() -> None:
    """Runs the programs that were asked for; exits with 1 if one differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--gnntop", type=Path, default=REPOSITORY / "target/release/gnntop")
    parser.add_argument("--native", type=Path, default=REPOSITORY / "target/release/libgnntop_python.so")
    parser.add_argument("--only", action="append", choices=[*PROGRAMS])
    arguments = parser.parse_args()
    chosen = arguments.only or list(PROGRAMS)
    packages = {package for name in chosen for package in [name, *PROGRAMS[name][0]]}
    python = prepare(arguments.venv.absolute(), sorted(packages))
    passed = [compare(name, python, arguments.gnntop.resolve(), arguments.native.resolve()) for name in chosen]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
