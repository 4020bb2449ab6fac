"""Mistakes that people make, each named by a finding.

`.item()` in every step is not among them: on a CPU there is no device to be waited for (see test_device_waits.py).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import clean
import pytest
from programs import GNNTOP, REACH, TORCHRUN, environment, recorded, report, run

HERE = Path(__file__).parent
REPORTS_CALLS = Path("/proc/self/syscall").exists()

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

# Kinds, and words that one of their findings must have.
NAMED = {
    "slow_collate": ("data-bound", "no workers (num_workers=0)\nthe training thread makes the batches: collate takes"),
    "samples": ("data-bound", "sample is on the training thread"),
    "starved": ("data-bound", "1 loader thread"),
    "slow_worker": ("data-bound", "worker 1 takes"),
    "leak": ("memory-growth", "losses with their graph"),
    "collects": ("stall", "garbage collection"),
    "saves": ("stall", "checkpoint"),
    "tiny_batches": ("tiny-batch", "batches of 2 samples"),
    "recompiles": ("recompilation", "<module> (recompiles.py:14): tensor"),
    "validates": ("validation", "validation takes"),
    "logs": ("gap", '"wandb log"'),
    "embeds": ("bound", "99 % of the parameters are in embeddings with dense gradients"),
    "double": ("bound", "most parameters are float64\nuse float32"),
    "debugs": ("debugging", "meant for debugging: anomaly detection\ntrain without torch.autograd.detect_anomaly()"),
    "judges": ("validation", "the model runs 41 times, mostly without a backward pass"),
    "sorts": (
        "data-bound",
        "first batch of an epoch\nthe loader has no workers (num_workers=0)\nthe training thread makes the batches\n",
    ),
}

# True of every program, or caused by other programs on the machine.
NO_MISTAKE = {"warm-up", "bound", "contention"}
# What a moment of the machine may do to single steps, as long as it costs little.
MOMENTS = {"spike", "page-faults", "aliasing"}


def run_preloaded(trainings: dict[str, list[str]], folder: Path) -> dict[str, dict[str, Any]]:
    """The reports on these trainings; each is a script and its arguments."""
    said = [":".join([name, *command]) for name, command in trainings.items()]
    command = [sys.executable, str(HERE / "preloaded.py"), str(folder), *said]
    # Freed memory is kept: else large tensors cost page faults, more or fewer by chance.
    kept = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
    subprocess.run(command, env={**environment(folder), **REACH, **kept}, check=True, timeout=600)
    return {name: report(session_of(folder / name)) for name in trainings}


def session_of(home: Path) -> Path:
    (session,) = (path for path in (home / "sessions").iterdir() if path.is_dir())
    return session


def words_of(finding: dict[str, Any]) -> str:
    return "\n".join([finding["summary"], *finding["evidence"], *finding["advice"]])


def blames(finding: dict[str, Any]) -> bool:
    is_moment = finding["kind"] in MOMENTS and finding["severity"] in {"note", "minor"}
    return finding["kind"] not in NO_MISTAKE and not is_moment


def kinds_blamed(seen: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in seen["findings"]["found"] if blames(finding)}


@pytest.fixture(scope="module")
def of_mistakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    mistakes = {name: [str(HERE / "mistakes" / f"{name}.py")] for name in NAMED}
    return run_preloaded(mistakes, tmp_path_factory.mktemp("mistakes"))


@pytest.mark.parametrize("mistake", NAMED)
def test_a_mistake_is_named(mistake: str, of_mistakes: dict[str, dict[str, Any]]) -> None:
    kind, words = NAMED[mistake]
    found = [finding for finding in of_mistakes[mistake]["findings"]["found"] if finding["kind"] == kind]
    assert any(words in words_of(finding) for finding in found), of_mistakes[mistake]["findings"]["found"]


@pytest.fixture(scope="module")
def of_clean_loops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    loops = {loop.__name__: [str(HERE / "clean.py"), loop.__name__] for loop in clean.LOOPS}
    return run_preloaded(loops, tmp_path_factory.mktemp("clean"))


@pytest.mark.parametrize("loop", [loop.__name__ for loop in clean.LOOPS])
def test_nothing_is_wrong_with_a_clean_loop(
    loop: str, of_clean_loops: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    seen = of_clean_loops[loop]
    assert seen["steps"]["total"] >= clean.STEPS, seen["steps"]
    blamed = kinds_blamed(seen)
    if blamed and blamed <= MOMENTS:
        # One bad moment may cost much of a run this short, but no two runs have the same.
        blamed &= kinds_blamed(run_preloaded({loop: [str(HERE / "clean.py"), loop]}, tmp_path)[loop])
    assert not blamed, [words_of(finding) for finding in seen["findings"]["found"] if blames(finding)]


def with_stacks(mistake: str, kind: str, tmp_path: Path) -> dict[str, Any]:
    """The one finding of this kind about a mistake whose stacks are sampled."""
    recording = tmp_path / "run.gnntop"
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "50", "--record", str(recording), "--")
    assert run([sys.executable, str(HERE / "mistakes" / f"{mistake}.py")], tmp_path, watching).code == 0
    (found,) = (it for it in report(recording)["findings"]["found"] if it["kind"] == kind)
    return found


def test_a_phase_that_only_waits_is_named_with_its_line(tmp_path: Path) -> None:
    found = with_stacks("waits", "idle-phase", tmp_path)
    assert found["summary"].startswith("forward waits" if REPORTS_CALLS else "forward takes")
    assert "forward (waits.py:16)" in words_of(found)
    assert "waiting in clock_nanosleep" in words_of(found) or not REPORTS_CALLS


@pytest.mark.parametrize(
    ("mistake", "kind", "function", "advice"),
    [
        ("normalises", "bound", "in gcn_norm (torch_geometric/nn/conv/gcn_conv.py)", "normalise the graph once"),
        ("transforms", "data-bound", ".forward (torch_geometric/transforms/", "as pre_transform, which stores"),
    ],
)
def test_what_a_graph_library_repeats_is_named(
    mistake: str, kind: str, function: str, advice: str, tmp_path: Path
) -> None:
    found = with_stacks(mistake, kind, tmp_path)
    assert function in words_of(found)
    assert advice in found["advice"][0]


def test_denormal_gradients_are_named_where_the_processor_is_slower_with_them(tmp_path: Path) -> None:
    ran, recording = recorded([sys.executable, str(HERE / "mistakes" / "denormals.py")], tmp_path)
    assert ran.code == 0, ran.err.decode()
    seen = report(recording)
    sampled = {counter["name"]: counter for counter in seen["counters"]}
    assert sampled["denormal gradients in a million"]["mean"] > 900_000
    is_slower = sampled["cost of denormals in percent"]["max"] >= 125
    assert any(finding["kind"] == "denormals" for finding in seen["findings"]["found"]) == is_slower


@pytest.mark.skipif(not REPORTS_CALLS, reason="this kernel does not report the system calls of threads")
def test_output_that_waits_for_its_reader_is_named_with_its_line(tmp_path: Path) -> None:
    found = with_stacks("prints", "gap", tmp_path)
    assert "in gap: in <module> (prints.py:20), waiting in write of a pipe" in words_of(found)
    assert found["advice"][0].startswith("write less output")


def test_a_thread_that_holds_the_interpreter_is_named_with_its_line(tmp_path: Path) -> None:
    found = with_stacks("holds_interpreter", "interpreter", tmp_path)
    assert "times it was in count_words (holds_interpreter.py:1" in words_of(found)


def test_a_call_that_logs_is_named_with_its_line(tmp_path: Path) -> None:
    assert "under <module> (logs.py:21)" in words_of(with_stacks("logs", "gap", tmp_path))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("part", "work", "place"),
    [
        ("items", "making the items takes", "decode (slow_part.py:24), under Samples.__getitem__ (slow_part.py:19)"),
        ("collate", "collate takes", "collate (slow_part.py:29)"),
    ],
)
def test_the_slow_part_of_making_batches_is_named_with_its_line(
    part: str, work: str, place: str, workers: int, tmp_path: Path
) -> None:
    recording = tmp_path / "run.gnntop"
    watching = (str(GNNTOP), "run", "--plain", "--stacks", "100", "--record", str(recording), "--")
    command = [sys.executable, str(HERE / "mistakes" / "slow_part.py"), part, str(workers)]
    assert run(command, tmp_path, watching).code == 0
    seen = report(recording)
    (found,) = (it for it in seen["findings"]["found"] if it["kind"] == "data-bound")
    lines = found["evidence"]
    assert any(line.startswith(work if workers else f"the training thread makes the batches: {work}") for line in lines)
    # On a busy machine it may take longer to get batches from the workers than to make them.
    assert any("stacks sampled in data wait: " in line and f" in {place}" in line for line in lines), lines
    # More workers are not the first thing to try where there are none and one function takes the time.
    if workers == 0:
        assert f"cheaper, above all {place.split(',')[0]}" in found["advice"][0], found
    below = [frames for phase, frames, _ in seen["sampled_stacks"]["stacks"] if phase == "data wait"]
    assert any("loader worker" in frames for frames in below) == (workers > 0), below


def test_one_slow_rank_is_named(tmp_path: Path) -> None:
    ran, recording = recorded([*TORCHRUN, str(HERE / "mistakes" / "slow_rank.py")], tmp_path)
    assert ran.code == 0, ran.err.decode()
    seen = report(recording)
    (found,) = (finding for finding in seen["findings"]["found"] if finding["kind"] == "straggler")
    assert found["summary"].startswith("rank 1 is a straggler")
    assert "longer in forward" in found["summary"]
    slowest = {rank["rank"]: rank["slowest_share"] for rank in seen["run"]["ranks"]}
    assert slowest[1] > 0.9


@pytest.mark.parametrize(
    ("mistake", "kind", "words"),
    [
        ("whole_set", "work-not-conserved", "each of 2 copies goes through the whole training set"),
        ("reduces", "repeated-reduce", "micro-batches that are not the last of their step"),
    ],
)
def test_a_mistake_of_ranks_is_named(mistake: str, kind: str, words: str, tmp_path: Path) -> None:
    ran, recording = recorded([*TORCHRUN, str(HERE / "mistakes" / f"{mistake}.py")], tmp_path)
    assert ran.code == 0, ran.err.decode()
    found = [finding for finding in report(recording)["findings"]["found"] if finding["kind"] == kind]
    assert [words in finding["summary"] for finding in found] == [True], found


def test_ranks_that_share_the_data_conserve_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARES", "1")
    ran, recording = recorded([*TORCHRUN, str(HERE / "mistakes" / "whole_set.py")], tmp_path)
    assert ran.code == 0, ran.err.decode()
    assert not any(it["kind"] == "work-not-conserved" for it in report(recording)["findings"]["found"])
