#!/usr/bin/env python3
"""Times gnntop's trainings beside PyTorch Geometric and DGL on the same machine, interleaved, and prints a table.

usage: beside-peers.py --peers DIR --pyg PYTHON --dgl PYTHON --graph DIR --images FILE --cora DIR [--repeats 3] [ROW...]

--peers holds the scripts pna.py, gcn_cora.py, sampled.py and vig.py, which print one JSON line each; --pyg and --dgl
are Python interpreters that have the libraries. Rows: pna gcn sage gat vig (all of them if none is named), and those
that need a processor with AVX-512 BF16: sage-bf16 gat-bf16 (DGL's GAT refuses bf16). Each row runs ours, theirs, ours, theirs, ... and shows medians of the step time and the largest resident memory of either.
gnntop is target/release/gnntop, or the program named by the variable GNNTOP.
"""
import argparse, json, os, resource, statistics, subprocess, sys, tempfile

TUNED = dict(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="17179869184", MALLOC_TOP_PAD_="67108864")


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=__doc__.split("usage: ")[1].split("\n")[0])
    for name in ("peers", "pyg", "dgl", "graph", "images", "cora"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("rows", nargs="*", default=[])
    return parser.parse_args()


def rows(a):
    """name: (what gnntop trains, the peers' interpreters and scripts)."""
    sampled = f"--data {a.graph} --workers 0 --batch-size 512 --epochs 1 --steps 25"
    peer = f"sampled.py --data {a.graph} --batch 512 --steps 25 --flush 1"
    return {
        "pna": ("pna --preset study --workers 0 --steps 4",
                [(a.pyg, f"pna.py --batch-size 512 --steps 3 --flush 1{compiled}") for compiled in ("", " --compile 1")]),
        "gcn": (f"gcn --recipe study --runs 1 --epochs 300 --data {a.cora}",
                [(a.pyg, f"gcn_cora.py --variant {v} --epochs 300 --flush 1 --data {a.cora}") for v in ("eager", "cached", "sparse", "compile")]),
        "sage": (f"sage {sampled}", [(a.dgl, f"{peer} --system dgl --model sage")]),
        "gat": (f"gat {sampled}", [(a.dgl, f"{peer} --system dgl --model gat")]),
        "sage-bf16": (f"sage {sampled} --matmul-precision bf16",
                      [(a.dgl, f"{peer} --system dgl --model sage{bf16}") for bf16 in ("", " --bf16 1")]),
        "gat-bf16": (f"gat {sampled} --matmul-precision bf16", [(a.dgl, f"{peer} --system dgl --model gat")]),
        "vig": (f"vig --data {a.images} --workers 0 --batch-size 20 --epochs 1 --steps 12",
                [(a.pyg, f"vig.py --images 20 --steps 4 --adjacency csr --flush 1 --data {a.images}")]),
    }


def run(command, environment):
    """Runs it, and returns its output and its peak resident memory in MiB."""
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **environment})
    printed = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return printed, usage.ru_maxrss / 1024


def ours(training):
    gnntop = os.environ.get("GNNTOP", "target/release/gnntop")
    with tempfile.TemporaryDirectory() as folder:
        recording = f"{folder}/a.gnntop"
        _, memory = run([gnntop, "train", *training.split(), "--record", recording], {})
        report = json.loads(run([gnntop, "report", recording, "--json", "--skip-steps", "1"], {})[0])
    step = next(phase for phase in report["phases"] if phase["name"] == "period")
    return step["p50_ns"] / 1e6, memory


def theirs(a, python, script):
    printed, memory = run([python, *f"{a.peers}/{script}".split(), "--threads", "2"], TUNED)
    line = json.loads(printed.strip().split("\n")[-1])
    return line.get("step_ms") or line["epoch_ms"], memory


def main():
    a = options()
    print("| row | ours | ms a step | MiB | peer | ms a step | MiB | times as fast |\n|---|---|---|---|---|---|---|---|")
    for name, (training, peers) in rows(a).items():
        if name not in (a.rows or ("pna", "gcn", "sage", "gat", "vig")):
            continue
        for python, script in peers:
            pairs = [(ours(training), theirs(a, python, script)) for _ in range(a.repeats)]
            (step, memory), (peer_step, peer_memory) = ([statistics.median(c) for c in zip(*side)] for side in zip(*pairs))
            peer = script.split()[0] + "".join(f" {w}" for w in script.split() if w in ("eager", "cached", "sparse", "compile", "--compile", "dgl", "--bf16", "csr"))
            print(f"| {name} | `train {training.split(' --data')[0]}` | {step:.2f} | {memory:.0f} | {peer} | {peer_step:.2f} | {peer_memory:.0f} "
                  f"| {peer_step / step:.1f} |", flush=True)


main()
