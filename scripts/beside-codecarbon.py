#!/usr/bin/env python3
"""Runs a training once, under CodeCarbon 3.3.2 and under gnntop at the same time, prints both totals and why they differ,
and has CodeCarbon's own reader and pandas read gnntop's emissions.csv back.

usage: beside-codecarbon.py [--venv DIR] [--region CAN] [--steps 60] [TRAINING...]

gnntop is target/release/gnntop, or the program named by the variable GNNTOP; TRAINING is what it trains, by default
`pna`. CodeCarbon is installed from PyPI into --venv (about 250 MB), once; if that is impossible, the script says why
and ends with 0. It reads the machine every second, offline, in machine mode, its only mode that follows another
process.
"""
import argparse, json, os, subprocess, sys, tempfile, venv

VERSION = "3.3.2"


def options():
    usage = __doc__.split("usage: ")[1].split("\n")[0]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=usage)
    parser.add_argument("--venv", default="target/codecarbon")
    parser.add_argument("--region", default="CAN", help="a country by three letters, for both")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("training", nargs="*", default=["pna"])
    return parser.parse_args()


def python_with_codecarbon(folder):
    """The interpreter of an environment that has it; None, with the reason printed, if that is impossible."""
    python = os.path.join(folder, "bin", "python")
    check = [python, "-c", f"import codecarbon; assert codecarbon.__version__ == '{VERSION}'"]
    if os.path.exists(python) and subprocess.run(check, capture_output=True).returncode == 0:
        return python
    venv.create(folder, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"codecarbon=={VERSION}"]
    installed = subprocess.run(install, capture_output=True, text=True)
    if installed.returncode != 0:
        reason = (installed.stderr.strip().splitlines() or ["pip failed"])[-1]
        print(f"skipped: codecarbon {VERSION} cannot be installed: {reason}")
        return None
    return python


# Runs inside the environment: a command under CodeCarbon; its figures as one line of JSON.
TRACK = r"""
import json, subprocess, sys
from codecarbon import OfflineEmissionsTracker
country, command = sys.argv[1], sys.argv[2:]
tracker = OfflineEmissionsTracker(country_iso_code=country, measure_power_secs=1, tracking_mode="machine",
                                  save_to_file=False, log_level="error", allow_multiple_runs=True)
tracker.start()
ended = subprocess.run(command, stdout=sys.stderr)
tracker.stop()
data = tracker.final_emissions_data
hardware = [part.description() for part in tracker._hardware]
modes = [getattr(part, "_mode", "") for part in tracker._hardware]
print(json.dumps(dict(code=ended.returncode, seconds=data.duration, cpu=data.cpu_energy * 3.6e6, gpu=data.gpu_energy * 3.6e6,
                      ram=data.ram_energy * 3.6e6, all=data.energy_consumed * 3.6e6, kg=data.emissions,
                      cpu_watts=data.cpu_power, ram_watts=data.ram_power, hardware=hardware, modes=modes)))
"""

# Runs inside the environment: gnntop's file through pandas, and through CodeCarbon's own reader, which appends to it.
READ_BACK = r"""
import os, sys
import pandas
from codecarbon.output_methods.emissions_data import EmissionsData
from codecarbon.output_methods.file import FileOutput
folder = sys.argv[1]
path = os.path.join(folder, "emissions.csv")
table = pandas.read_csv(path)
fields = list(EmissionsData.__dataclass_fields__)
assert list(table.columns) == fields, (list(table.columns), fields)
row = EmissionsData(**{field: table[field][0] for field in fields})
FileOutput(output_file_name="emissions.csv", output_dir=folder, on_csv_write="append").out(row, row)
again = pandas.read_csv(path)
assert len(again) == len(table) + 1, "the row was not appended"
assert sorted(os.listdir(folder)) == ["emissions.csv", "emissions.quality.csv"], os.listdir(folder)
print(f"emissions.csv: {len(fields)} columns as CodeCarbon's, read by pandas {pandas.__version__}, appended to, not moved away")
"""


def joules(figure):
    if figure is None:
        return "not known"
    band = f" ({figure['lo_joules']:.0f} to {figure['hi_joules']:.0f})" if figure["label"] == "modelled" else ""
    return f"{figure['joules']:.1f} J{band} {figure['label']}"


def table(theirs, energy):
    kinds = {"cpu": ("cpu",), "ram": ("memory", "dram"), "gpu": ("gpu",)}
    print(f"{'':<12}{'CodeCarbon, machine':<22}{'gnntop, whole devices':<38}{'gnntop, the job'}")
    for name, prefixes in kinds.items():
        for part in (part for part in energy["components"] if part["name"].startswith(prefixes)):
            print(f"{part['name']:<12}{theirs[name]:<8.1f}{'J':<14}{joules(part['device']):<38}{joules(part['job'])}")
    total = energy["total"]
    print(f"{'in all':<12}{theirs['all']:<8.1f}{'J':<14}{joules(total['device']):<38}{joules(total['job'])}")


def reasons(theirs, energy):
    """Why the two differ, from their own descriptions."""
    print("\nwhy they differ")
    for what, mode in zip(theirs["hardware"], theirs["modes"]):
        print(f"  CodeCarbon: {what}{', by ' + mode if mode else ''}")
    print(f"  CodeCarbon: at its end {theirs['cpu_watts']:.1f} W of processor, {theirs['ram_watts']:.1f} W of memory")
    for part in energy["components"]:
        print(f"  gnntop: {part['name']}: {part['source'] if part['source'] != 'none' else part['reason']}")
    print("  the processor's load: CodeCarbon takes 0.1 + 0.9 u^3 of a TDP, gnntop 0.10 + 0.65 u; other programs count for")
    print("    the machine in both, and not for gnntop's job")
    print("  memory: CodeCarbon takes 5 W a module of a guessed number, gnntop 1.5 W (0.4 to 5)")
    print("  neither is a measurement where the label says modelled")


def main():
    a = options()
    gnntop = os.path.abspath(os.environ.get("GNNTOP", "target/release/gnntop"))
    if not os.path.exists(gnntop):
        print(f"skipped: there is no {gnntop}: build it with cargo build --release, or name it in GNNTOP")
        return 0
    python = python_with_codecarbon(a.venv)
    if python is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        recording, out = os.path.join(folder, "run.gnntop"), os.path.join(folder, "out")
        os.mkdir(out)
        os.environ.update(GNNTOP_DIR=os.path.join(folder, "sessions"), XDG_CONFIG_HOME=folder)
        run = [gnntop, "run", "--plain", "--record", recording, *a.training, "--steps", str(a.steps)]
        tracked = subprocess.run([python, "-c", TRACK, a.region, *run], stdout=subprocess.PIPE, text=True, check=True)
        theirs = json.loads(tracked.stdout.strip().splitlines()[-1])
        assert theirs["code"] == 0, f"the training ended with {theirs['code']}"
        told = subprocess.run([gnntop, "report", recording, "--json", "--region", a.region], stdout=subprocess.PIPE, check=True)
        report = json.loads(told.stdout)
        energy = report["energy"]
        print(f"{' '.join(a.training)}, {report['steps']['total']} steps, CodeCarbon {VERSION} over {theirs['seconds']:.1f} s\n")
        table(theirs, energy)
        reasons(theirs, energy)
        kg, of = energy["carbon"]["kilograms"], energy["carbon"]["intensity"]
        print(f"\ncarbon in {a.region}: CodeCarbon {1e6 * theirs['kg']:.1f} mg; gnntop {1e6 * kg[0]:.1f} mg "
              f"({1e6 * kg[1]:.1f} to {1e6 * kg[2]:.1f}) of the {energy['scope']}, {of['g_per_kwh']} g/kWh {of['basis']} {of['year']}")
        export = [gnntop, "export", recording, "--to", "emissions", "--region", a.region, "-o", os.path.join(out, "emissions.csv")]
        subprocess.run(export, check=True, stderr=subprocess.DEVNULL)
        subprocess.run([python, "-c", READ_BACK, out], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
