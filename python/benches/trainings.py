"""The trainings that scripts/python-cost.py measures: the first argument says which.

Each of them is an endless iterator that takes one step at a time. With $TURNS set it takes them when the script says so:
``TURNS.go`` gives numbers of steps, ``TURNS.done`` gets what they took. So several processes that all train can take turns.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic_ns, perf_counter_ns, sleep
from typing import Any


def take_turns(training: Iterator[None]) -> None:
    """Takes as many steps as each line says, and answers with their times in nanoseconds and the memory of the process."""
    turns = os.environ["TURNS"]
    with open(f"{turns}.go") as go, open(f"{turns}.done", "w") as done:
        for line in go:
            print(json.dumps({"times_ns": take(training, int(line)), "rss_kib": rss_kib()}), file=done, flush=True)


def take(training: Iterator[None], steps: int) -> list[int]:
    """Takes so many steps; gives their times in nanoseconds."""
    times, last = [], perf_counter_ns()
    for _ in range(steps):
        next(training)
        now = perf_counter_ns()
        times.append(now - last)
        last = now
    return times


def toggled(rounds: int = 100, settling: int = 50, steps: int = 250) -> None:
    """One process that gnntop joins and leaves in turn; writes the steps of each turn after it has settled.

    Two processes differ by chance in where their memory lies, by more than the hooks cost. Here nothing differs but them.
    """
    from gnntop import _joining

    training = mlp()
    take(training, steps)
    ways = {"gnntop run": _joining.join, "alone": _joining.leave}
    found: dict[str, list[list[int]]] = {way: [] for way in ways}
    order = list(ways)
    for _ in range(rounds):
        for way in order:
            ways[way]()
            take(training, settling)
            found[way].append(take(training, steps))
        order.reverse()
    Path(os.environ["RESULT"]).write_text(json.dumps(found))


def parts(rounds: int = 150, settling: int = 30, steps: int = 100) -> None:
    """One process that gnntop has joined, in which one kind of hook at a time is taken away and put back.

    Writes the median steps with and without each, in neighbouring turns. An optimizer's hooks end steps: without them
    nothing is published, so they have the cost of that, too.
    """
    import gc

    from torch.optim import optimizer

    from gnntop import _joining
    from gnntop.hooks import patching

    replaced: list[tuple[Any, str, Any]] = []
    replace = patching._set

    def noted(owner: Any, attribute: str, hooked: Any) -> None:
        replaced.append((owner, attribute, vars(owner).get(attribute)))
        replace(owner, attribute, hooked)

    training = mlp()
    take(training, settling)
    # `gnntop run` has hooked torch as it was imported: it is hooked again, to note what is replaced.
    _joining.leave()
    patching._set = noted
    _joining.join()
    take(training, 3 * steps)
    dictionaries = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
    ways = {"optimizer": [_Switch(hooks.update, hooks.clear, dict(hooks)) for hooks in dictionaries]}
    ways["collector"] = [_Switch(gc.callbacks.extend, gc.callbacks.clear, list(gc.callbacks))]
    called = {"backward", "zero_grad", "_call_impl", "__next__"}
    for owner, attribute, real in replaced:
        if attribute in called and real is not None:
            hooked = vars(owner)[attribute]
            put = partial(setattr, owner, attribute)
            ways.setdefault(attribute, []).append(_Switch(put, partial(put, real), hooked))
    ways["all of them"] = [switch for way in ways.values() for switch in way]
    ways["none"] = []
    found: dict[str, dict[str, list[float]]] = {way: {"without": [], "with": []} for way in ways}
    for turn in range(rounds):
        for way, switches in ways.items():
            for side in ("without", "with") if turn % 2 else ("with", "without"):
                for switch in switches:
                    switch.turn(on=side == "with")
                take(training, settling)
                found[way][side].append(median(take(training, steps)))
            for switch in switches:
                switch.turn(on=True)
    Path(os.environ["RESULT"]).write_text(json.dumps(found))


@dataclass
class _Switch:
    """How hooks are put in place, and taken away."""

    put: Callable[[Any], Any]
    remove: Callable[[], Any]
    hooks: Any

    def turn(self, on: bool) -> None:
        """Both may be called again and again."""
        self.remove()
        if on:
            self.put(self.hooks)


def traced(rounds: int = 10, between: int = 250, steps: int = 20) -> None:
    """One training that `gnntop trace` traces again and again; writes what steps take without, and with its parts.

    A traced step is one before which torch.profiler ran, and after which it still runs.
    """
    from gnntop import _native
    from gnntop.hooks import deep_trace

    training = mlp()
    take(training, 2 * between)
    command = [
        os.environ["PROGRAM"],
        "trace",
        _native.directory(),
        "--steps",
        str(steps),
        "--force",
        "-o",
        "trace.json",
    ]
    found: dict[str, list[int]] = {"alone": [], "first": [], "traced": [], "last": [], "asked": []}
    for _ in range(rounds):
        found["alone"] += take(training, between)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as asking:
            while asking.poll() is None:
                was_on = deep_trace._trace is not None
                [time_ns] = take(training, 1)
                if was_on:
                    found["last" if deep_trace._trace is None else "traced"].append(time_ns)
                elif deep_trace._trace is not None:
                    found["first"].append(time_ns)
        if asking.returncode:
            sys.exit("gnntop trace has failed")
    calls, begin = 1_000_000, perf_counter_ns()
    for _ in range(calls):
        _native.asked()
    found["asked"] = [(perf_counter_ns() - begin) // calls]
    Path(os.environ["RESULT"]).write_text(json.dumps(found))


def stalled(stalls: int = 50, between: int = 250, seconds: float = 0.2) -> None:
    """A training that stalls between two steps, again and again; writes when each stall began, by the monotonic clock."""
    training = mlp()
    began = []
    for _ in range(stalls):
        take(training, between)
        began.append(monotonic_ns())
        sleep(seconds)
    take(training, 1)
    Path(os.environ["RESULT"]).write_text(json.dumps(began))


def rss_kib() -> int:
    """What of this process lies in memory."""
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])


def perceptron(width: int, batch: int) -> tuple[Any, Any, Any, Any]:
    """Five layers, their optimizer, the loss and a loader of 500 batches."""
    import torch
    from torch import nn
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(batch * 500, 32), torch.randn(batch * 500, 1))
    # A batch is one look at the tensors: to collate 64 samples takes several times the step.
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), batch, False))
    layers: list[nn.Module] = [nn.Linear(32, width), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 1))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3), nn.MSELoss(), loader


def mlp(trace: Any = None) -> Iterator[None]:
    """Five layers of 64 on batches of 64."""
    model, optimizer, loss_of, loader = perceptron(64, 64)
    while True:
        for x, y in loader:
            with trace(model) if trace else nullcontext():
                optimizer.zero_grad()
                loss_of(model(x), y).backward()
                optimizer.step()
            yield


def mlp_threaded() -> Iterator[None]:
    """The same in a process with a second thread, which waits: the C library locks more where there are several."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return mlp()


def mlp_traceml() -> Iterator[None]:
    """The same with the two lines that TraceML needs in a plain loop."""
    import traceml_ai as traceml

    getattr(traceml, "init", lambda: None)()
    return mlp(traceml.trace_step)


def pna() -> Iterator[None]:
    """64 layers of PyG's PNA on batches of 128 small graphs."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import global_max_pool
    from torch_geometric.nn.models import PNA

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    graphs = [
        Data(x=torch.randn(n, 9), edge_index=torch.randint(n, (2, 2 * n)), y=torch.randn(1))
        for n in torch.randint(10, 20, (128 * 4,)).tolist()
    ]
    model = PNA(
        9,
        16,
        64,
        1,
        aggregators=["mean", "min", "max", "std"],
        scalers=["identity", "amplification", "attenuation"],
        deg=torch.tensor([0, 10, 20, 10]),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    while True:
        for batch in DataLoader(graphs, batch_size=128):
            optimizer.zero_grad()
            out = global_max_pool(model(batch.x, batch.edge_index), batch.batch)
            torch.nn.functional.l1_loss(out.view(-1), batch.y).backward()
            optimizer.step()
            yield


def gcn(compiled: bool = False) -> Iterator[None]:
    """PyG's GCN on one graph with the numbers of Cora."""
    import torch
    from torch_geometric.nn.models import GCN

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = (torch.rand(2708, 1433) < 0.0127).float()
    edges, y = torch.randint(2708, (2, 10556)), torch.randint(7, (2708,))
    model = GCN(1433, 16, 2, 7)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    while True:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(run(x, edges)[:140], y[:140]).backward()
        optimizer.step()
        yield


def profiled(is_stamped: bool = False, steps: int = 150) -> None:
    """Steps of some milliseconds under torch.profiler; writes the times of its records of each phase.

    Data wait, `step` and `zero_grad` torch labels itself. Loss is, as in gnntop, what lies between forward and backward.
    Forward and backward are records of the kind that torch makes in C++: a `record_function` takes tens of microseconds
    of its own while it is profiled. With `is_stamped`, also what a clock shows that is read where gnntop's hooks are.
    """
    from torch._C._profiler import _RecordFunctionFast as Record
    from torch.profiler import ProfilerActivity, profile

    model, optimizer, loss_of, loader = perceptron(384, 256)
    stamps = stamp_where_hooks_are(model) if is_stamped else {}
    batches = iter(loader)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            x, y = next(batches)
            optimizer.zero_grad()
            with Record("forward"):
                out = model(x)
            loss = loss_of(out, y)
            with Record("backward"):
                loss.backward()
            optimizer.step()
    labels = {
        "data wait": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "zero_grad": "Optimizer.zero_grad#SGD.zero_grad",
        "forward": "forward",
        "backward": "backward",
        "optimizer": "Optimizer.step#SGD.step",
    }
    records = {
        phase: sorted((e.time_range.start, e.time_range.end) for e in profiler.events() if e.name == label)
        for phase, label in labels.items()
    }
    found = {"records": lengths(records), "stamps": lengths(stamps) if is_stamped else {}}
    Path(os.environ["RESULT"]).write_text(json.dumps(found))


def lengths(intervals: dict[str, list[tuple[float, float]]]) -> dict[str, list[float]]:
    """How long the intervals of each phase are, and those between forward and backward."""
    found = {phase: [end - begin for begin, end in of_phase] for phase, of_phase in intervals.items()}
    pairs = zip(intervals["forward"], intervals["backward"], strict=True)
    return {**found, "loss": [begin - end for (_, end), (begin, _) in pairs]}


def stamp_where_hooks_are(model: Any) -> dict[str, list[tuple[float, float]]]:
    """Has a clock read in the places of gnntop's hooks, without gnntop; gives the intervals, in microseconds."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    stamps: dict[str, list[tuple[float, float]]] = {"optimizer": []}
    begun: list[float] = []

    def stamped(phase: str, real: Callable[..., Any]) -> Callable[..., Any]:
        intervals = stamps.setdefault(phase, [])

        def hooked(*args: Any, **kwargs: Any) -> Any:
            begin = perf_counter_ns()
            try:
                return real(*args, **kwargs)
            finally:
                intervals.append((begin / 1000, perf_counter_ns() / 1000))

        return hooked

    _BaseDataLoaderIter.__next__ = stamped("data wait", _BaseDataLoaderIter.__next__)
    torch.optim.Optimizer.zero_grad = stamped("zero_grad", torch.optim.Optimizer.zero_grad)
    torch.autograd.backward = stamped("backward", torch.autograd.backward)
    vars(model)["_compiled_call_impl"] = stamped("forward", model._call_impl)
    register_optimizer_step_pre_hook(lambda *_: begun.append(perf_counter_ns() / 1000))
    register_optimizer_step_post_hook(lambda *_: stamps["optimizer"].append((begun.pop(), perf_counter_ns() / 1000)))
    return stamps


def span() -> Iterator[None]:
    """A thousand empty spans a step, in a program that publishes; alone, the same block without them."""
    try:
        import gnntop
    except ImportError:
        made: Callable[[str], Any] = lambda _: nullcontext()  # noqa: E731
    else:
        gnntop.start("span")
        made = gnntop.span
    while True:
        for _ in range(1000):
            with made("nothing"):
                pass
        yield


TRAININGS = {
    "mlp": mlp,
    "mlp-threaded": mlp_threaded,
    "mlp-traceml": mlp_traceml,
    "pna": pna,
    "gcn": gcn,
    "gcn-compiled": lambda: gcn(compiled=True),
    "span": span,
}

if __name__ == "__main__":
    if sys.argv[1].startswith("profiled"):
        profiled(is_stamped=sys.argv[1] == "profiled-stamped")
    elif sys.argv[1] == "toggled":
        toggled()
    elif sys.argv[1] == "parts":
        parts()
    elif sys.argv[1] == "traced":
        traced()
    elif sys.argv[1] == "stalled":
        stalled()
    elif "TURNS" in os.environ:
        take_turns(TRAININGS[sys.argv[1]]())
    else:
        for _ in itertools.islice(TRAININGS[sys.argv[1]](), 1000):
            pass
