#!/usr/bin/env python3
"""Puts the results of on-gpu.sh side by side with their targets, as Markdown.

usage: on-gpu.py RESULTS
"""
import json, re, statistics, sys
from pathlib import Path

results = Path(sys.argv[1])


def text(name):
    file = results / f"{name}.log"
    return file.read_text(errors="replace") if file.exists() else ""


def ours(name):
    """Step time (p50) in ms, items per second, and the device's peak memory in MiB, as far as the report has them."""
    file = results / f"{name}.json"
    try:
        report = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    step = next((phase for phase in report.get("phases", []) if phase.get("name") == "period"), None)
    peak = ((report.get("memory") or {}).get("device") or {}).get("peak_bytes")
    return dict(ms=step["p50_ns"] / 1e6, mib=peak and peak / (1 << 20)) if step else None


def peer(name):
    lines = [line for line in text(name).splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def cell(value, form="{:.2f}"):
    return "–" if value is None else form.format(value)


def beside(row, mine, theirs, target):
    a, b = ours(mine), peer(theirs)
    ratio = b["step_ms"] / a["ms"] if a and b else None
    memory = b["peak_mib"] / a["mib"] if a and b and a["mib"] and b["peak_mib"] else None
    print(f"| {row} | {cell(a and a['ms'])} | {cell(a and a['mib'], '{:.0f}')} | {cell(b and b['step_ms'])} "
          f"| {cell(b and b['peak_mib'], '{:.0f}')} | {cell(ratio, '{:.1f}')} | {cell(memory, '1/{:.1f}')} | {target} |")


def trainings():
    print("## Beside PyTorch Geometric\n")
    print("| run | our step, ms | MiB | its step, ms | MiB | times as fast | our memory | target |\n|---|---|---|---|---|---|---|---|")
    for name in sorted({file.stem for file in results.glob("peer-pna-*.log")}):
        batch = name.rsplit("-", 1)[1]
        beside(f"pna, {batch} molecules", f"pna-{batch}", name, "3 x, memory 1/3 at 4096")
        a = ours(f"pna-{batch}")
        if a:
            print(f"| | {float(batch) / a['ms'] * 1e3:,.0f} graphs/s by the median step | | | | | | 15,700 end to end at 4096 |")
    for model in ("sage", "gat"):
        beside(f"{model}, features copied by both", model, f"peer-{model}", "2 x")
        beside(f"{model}, features on the device of both", f"{model}-held", f"peer-{model}-resident", "2 x")
        beside(f"{model}, as one subgraph, features on the device of both", f"{model}-held-subgraph", f"peer-{model}-resident", "")
    theirs = peer("peer-gcn")
    print(f"\n## GCN on Cora (target: an epoch under 1 ms)\n\nPyTorch Geometric: {cell(theirs and theirs['step_ms'], '{:.3f}')} ms an epoch.\n")
    print("```\n" + "\n".join(line for line in text("gcn").splitlines() if "epoch" in line) + "\n```\n")


def kernels():
    print("## Kernels beside a copy (target: 70 %)\n")
    print("\n".join(line for line in text("device-bench").splitlines() if line.startswith("|") or "no GPU" in line) + "\n")


def publishing():
    """The median epochs that GCN reports, with and without publishing."""
    epochs = {}
    for file in sorted(results.glob("publish-*-*.log")):
        told = re.search(r"epoch ([\d.]+) ms \(p95", file.read_text(errors="replace"))
        if told:
            epochs.setdefault(file.stem.rsplit("-", 1)[1], []).append(float(told[1]))
    print("## Publishing (target: at most 0.2 % of throughput at steps of 5 ms, which is 10 us a step)\n")
    if len(epochs) == 2:
        on, off = (statistics.median(epochs[state]) for state in ("on", "off"))
        print(f"GCN, medians of {len(epochs['on'])} and {len(epochs['off'])} runs: {on:.3f} ms a step with, {off:.3f} without: "
              f"{(on - off) * 1e3:+.1f} us a step\n")
    sync = ours("publish-sync")
    print(f"PNA with --sync: {sync['ms']:.2f} ms a step\n" if sync else "--sync: not run\n")


def runs():
    print("## All runs\n\n| run | status | s |\n|---|---|---|")
    for line in (results / "runs.txt").read_text().splitlines():
        name, status, took = line.split()
        print(f"| {name} | {'ok' if status == '0' else 'took too long' if status in ('124', '137') else 'failed, ' + status} | {took} |")
    tests = re.findall(r"^test result: .*$|^skipped: .*$", text("device-test"), re.M)
    print("\nTests on the device: " + ("; ".join(sorted(set(tests))) or "none"))


print("# On a GPU\n\n```\n" + text("machine").strip()[:2000] + "\n```\n")
trainings()
kernels()
publishing()
runs()
