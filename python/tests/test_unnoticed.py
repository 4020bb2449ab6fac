"""What a program could notice of the hooks other than by time: its own code called, exceptions of its signals lost,
less room for recursion, functions that are others. Each program says what it sees, with and without gnntop.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import GNNTOP, REACH, environment

pytest.importorskip("torch")

TRAINS = """
import code, gc, inspect, os, pickle, signal, sys, threading, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader

def train(model, batches, inputs=lambda batch: torch.ones(1, 2)):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(inputs(batch)).sum().backward()
        optimizer.step()
"""

# Classes of the program's, as batches and in them: none of their code may run.
BATCHES = """
from collections import UserDict
from torch.overrides import TorchFunctionMode
from torch_geometric.data import Data

class Ran:
    def __getattribute__(self, name):
        print("ran", name)
        return super().__getattribute__(name)
class Lazy(Ran, dict):
    def values(self):
        print("values")
        while True:
            yield 1
    __iter__ = items = keys = __getitem__ = get = values
class Shaped(Ran):
    shape = property(lambda self: print("shape"))
    def dim(self): print("dim")
class List(list):
    def __getitem__(self, place): print("item")
    def __len__(self): print("len")
class Heard(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("heard", function)
        return super().__torch_function__(function, types, args, kwargs or {})
class Graph(Data):
    def __getattribute__(self, name):
        print("graph", name)
        return super().__getattribute__(name)
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print("mode", function)
        return function(*args, **(kwargs or {}))
class Meta(type):
    def __hash__(self): print("hash"); return 1
    def __eq__(self, other): print("eq"); return self is other
    def __instancecheck__(self, other): print("instance"); return False
class Typed(metaclass=Meta):
    pass

x = torch.ones(5, 2)
kinds = [Lazy(a=x), Shaped(), List([x]), x.as_subclass(Heard), Graph(x=x), UserDict(a=x), Typed(), [Lazy(a=Shaped())]]
sys.stdout.flush()
train(nn.Linear(2, 1), DataLoader(kinds, batch_size=None, collate_fn=lambda batch: batch))
plain = iter(DataLoader([x], batch_size=None, collate_fn=lambda batch: batch))
with Mode():
    next(plain)
print("end")
"""

# What puts a batch together is hooked only while it is called for.
FETCHERS = """
def collate(batch):
    return torch.stack(batch)
loader = DataLoader([torch.ones(2)] * 8, batch_size=2, collate_fn=collate)
train(nn.Linear(2, 1), loader)
batches = iter(loader)
next(batches)
fetcher = batches._dataset_fetcher
print(fetcher.collate_fn is collate, sorted(vars(fetcher)), pickle.loads(pickle.dumps(fetcher)).collate_fn is collate)
def fails(batch):
    raise ValueError("no batch")
fetcher.collate_fn = fails
try:
    next(batches)
except ValueError as error:
    print(error, fetcher.collate_fn is fails)
def replaces(batch):
    fetcher.collate_fn = len
    return batch
fetcher.collate_fn = replaces
print(next(batches), next(batches), fetcher.collate_fn)
"""

# Classes of classes: nobody asks them for more than torch does.
CLASSES = """
class Meta(type):
    def __getattribute__(kind, name): asked.append(name); return super().__getattribute__(name)
    def __eq__(kind, other): asked.append("=="); return kind is other
    __hash__ = type.__hash__
asked = []
class Linear(nn.Linear, metaclass=Meta): pass
class SGD(torch.optim.SGD, metaclass=Meta): pass
model = Linear(2, 1)
optimizer = SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print(asked)
"""

SIGNALS = """
class Late(Exception):
    pass
def handler(*_):
    raise Late
signal.signal(signal.SIGALRM, handler)
train(nn.Linear(2, 1), range(3))
lost = 0
for number in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0004 + number % 100 * 1e-6)
        for _ in range(60):
            kept = [[] for _ in range(800)]
        while signal.getitimer(signal.ITIMER_REAL)[0]:
            pass
        for _ in range(1000):
            pass
        lost += 1
    except Late:
        pass
print(lost)
"""

RECURSION = """
class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
    def forward(self, x, depth):
        deepest[0] = max(deepest[0], depth)
        return self.layer(x) if depth == limit else self(x, depth + 1)
deepest, limit, model = [0], 10, Tree()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for limit in (10, 10, 100_000):
    optimizer.zero_grad()
    try:
        model(torch.ones(1, 1), 0).sum().backward()
    except RecursionError:
        print(deepest)
"""

ENDS = """
print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__)
class Console(code.InteractiveConsole):
    text = ""
    def write(self, text):
        self.text += text
console = Console()
console.push("1/0")
print(console.text.splitlines()[-1])
class Fails(nn.Linear):
    def forward(self, x):
        if sys.argv[1:]:
            return super().forward(x)
        raise ValueError("own")
sys.argv[1:] = ["works"]
model = Fails(2, 1)
train(model, range(2))
sys.argv[1:] = []
import logging
try:
    model(torch.ones(1, 2))
except ValueError:
    logging.exception("as it is")
class Unsaved:
    def __reduce__(self):
        raise KeyError("own")
try:
    torch.save(Unsaved(), os.devnull)
except KeyError:
    logging.exception("as it is")
torch.nn.utils.clip_grad_norm_(5, 1)
"""

FUNCTIONS = """
train(nn.Linear(2, 1), range(2))
model = nn.Linear(2, 1)
train(model, range(2))
model._call_impl = lambda x: torch.tensor([77.0])
print(model(torch.ones(1, 2)))
del model._call_impl
print(vars(model).keys(), type(nn.Module._call_impl), nn.Linear._call_impl.__qualname__)
for function in (torch.save, torch.autograd.backward, torch.autograd.grad, torch.optim.Optimizer.zero_grad):
    print(inspect.isfunction(function), inspect.getsourcefile(function), inspect.signature(function))
    print(sorted(vars(function)), function.__module__, function.__defaults__)
for function in (nn.Module.zero_grad, nn.utils.clip_grad_norm_, torch.amp.GradScaler.unscale_):
    print(function.__defaults__, function.__kwdefaults__, inspect.signature(function))
for end in (os._exit, os.execv, os.execve):
    print(pickle.loads(pickle.dumps(end)) is end, end.__module__, end, end.__self__)
    print(end.__doc__, inspect.signature(end))
    print(type("Ending", (), {"end": end})().end is end, end in os.supports_fd)
"""

# What a library says of its caller is said of the program's line, by which filters know it.
WARNED = """
import logging
warnings.simplefilter("error")
warnings.filterwarnings("always", module="__main__")
logging.basicConfig(format="%(filename)s:%(lineno)d %(message)s")
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
    torch.nn.utils.clip_grad_norm_((one for one in model.parameters() if one.grad is None), 1)
    optimizer.step()
"""

# What compiles and traces modules finds the same in a root, and makes as many graphs with as many operations.
COMPILED = """
warnings.simplefilter("ignore")
torch.manual_seed(0)
from torch._dynamo.testing import CompileCounter

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.layer = nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), nn.Linear(2, 1)
    def forward(self, x):
        return self.layer(self.inner(x))
class Calls(Model):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)
x = torch.ones(3, 2)
def compiled(function, fullgraph=True):
    torch._dynamo.reset()
    counter = CompileCounter()
    function = torch.compile(function, backend=counter, fullgraph=fullgraph)
    print(function(x).sum().item(), function(x).sum().item(), counter.frame_count, counter.op_count)
for kind in (Model, Calls):
    model = kind()
    train(model, range(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss
    for function in (model, lambda x: model(x), lambda x: model._call_impl(x), model._call_impl):
        compiled(function)
    compiled(lambda x: torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0))
    compiled(step, False)
    compiled(lambda x: torch.autograd.grad(model(x).sum(), list(model.parameters()))[0], False)
    model.compile(backend="eager", fullgraph=True)
    train(model, range(3))
    print(model(x).sum().item())
    model._compiled_call_impl = None
    print(torch.jit.trace(model, x).graph, torch.fx.symbolic_trace(model).code, torch.export.export(model, (x,)).graph)
"""


# The lists of an optimizer's groups are the program's, and so is its thread's arithmetic: it may look at the flags of
# inexact results, or be ended by one, while its gradients are looked at.
OPTIMIZER = """
import ctypes, ctypes.util

class Groups(list):
    def __iter__(self): print("iterated"); return super().__iter__()
class Group(dict):
    def __getitem__(self, key): print("asked for", key); return super().__getitem__(key)
    get = __getitem__
class Nothing(torch.optim.Optimizer):
    def step(self, closure=None): pass

libm = ctypes.CDLL(ctypes.util.find_library("m"))
INEXACT = {"x86_64": 0x20}.get(os.uname().machine, 0)
tiny = nn.Parameter(torch.zeros(600))
tiny.grad = torch.full((600,), 1e-40)
idle = Nothing([tiny], {})
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.param_groups = Groups(Group(group) for group in optimizer.param_groups)
for _ in range(5):
    model(torch.ones(1, 2)).sum().backward()
    libm.feclearexcept(0x3F), libm.feenableexcept(INEXACT)
    idle.step()
    libm.fedisableexcept(INEXACT)
    print("flags", libm.fetestexcept(0x3F))
print("steps")
optimizer.step()
"""


def outcome(program: str, directory: Path, **variables: str) -> tuple[int, str, str]:
    directory.mkdir(parents=True, exist_ok=True)
    (directory.parent / "program.py").write_text(TRAINS + program)
    known = environment(directory / "sessions") | variables
    command = [sys.executable, directory.parent / "program.py"]
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=200)
    said = re.sub(r"(?m)^([VIWE]\d{4}) [\d:.]+ \d+ ", r"\1 ", done.stderr)  # torch's own log lines have the time
    return done.returncode, done.stdout, said


CASES = {
    "optimizer": OPTIMIZER,
    "batches": BATCHES,
    "fetchers": FETCHERS,
    "classes": CLASSES,
    "signals": SIGNALS,
    "recursion": RECURSION,
    "ends": ENDS,
    "functions": FUNCTIONS,
    "warned": WARNED,
    "compiled": COMPILED,
}


@pytest.mark.parametrize("case", CASES)
def test_a_program_sees_the_same_with_and_without_hooks(case: str, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    watched = outcome(CASES[case], tmp_path / "watched", **REACH, GNNTOP_ANSWERS=str(answers))
    assert watched == outcome(CASES[case], tmp_path / "alone")
    assert list((tmp_path / "watched/sessions").iterdir()), "not hooked: this shows nothing"


SIZES = """
from collections import OrderedDict, namedtuple
from torch_geometric.data import Batch, Data
Pair = namedtuple("Pair", "x y")
x = torch.ones(7, 2)
graph = Batch.from_data_list([Data(x=torch.ones(3, 2), edge_index=torch.ones(2, 4, dtype=torch.long))] * 2)
batches = {{
    "tensor": x,
    "parameter": nn.Parameter(x),
    "named": Pair([{{"none": None, "x": x}}], 1),
    "dict": OrderedDict(text="a", x=(x, x)),
    "graph": [graph],
    "mode": x,
    "text": {{"input_ids": torch.ones(7, 5, dtype=torch.long), "mask": torch.ones(7, 5)}},
    "mask": torch.ones(7, 5, dtype=torch.bool),
}}
batch = batches["{kind}"]
if "{kind}" == "mode":
    torch.set_default_device("cpu")
train(nn.Linear(2, 1), DataLoader([batch] * 3, batch_size=None, collate_fn=lambda batch: batch))
"""


@pytest.mark.parametrize("kind", ["tensor", "parameter", "named", "dict", "graph", "mode", "text", "mask"])
def test_sizes_of_ordinary_batches_are_known(kind: str, tmp_path: Path) -> None:
    code, _, said = outcome(SIZES.format(kind=kind), tmp_path / "watched", **REACH)
    assert code == 0, said
    (session,) = (tmp_path / "watched/sessions").iterdir()
    done = subprocess.run([GNNTOP, "report", "--json", session], capture_output=True, check=True)
    report = json.loads(done.stdout)
    rates = report["throughput"]
    if kind == "graph":
        found = [round(rates[f"{what}_per_s"] / rates["steps_per_s"]) for what in ("graphs", "nodes", "edges")]
        assert found == [2, 6, 8]
    else:
        expected = {"samples": 7, "tokens": 35} if kind == "text" else {"samples": 7}
        assert {one["name"]: one["last"] for one in report["counters"]} == expected


# An optimizer in every step, as where a model learns how to learn, and a heap that takes 20 ms to look through.
MANY_OPTIMIZERS = """
import time
look, looks = gc.get_objects, []
def slow(*args):
    looks.append(time.sleep(0.02))
    return look(*args)
gc.get_objects = slow
model = nn.Linear(2, 1)
for _ in range(150):
    train(model, [1])
print(len(looks))
"""


def test_programs_that_make_many_optimizers_do_not_wait_for_searches(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    code, out, error = outcome(MANY_OPTIMIZERS, tmp_path / "watched", **REACH, GNNTOP_ANSWERS=str(answers))
    assert (code, error) == (0, "")
    assert 1 <= int(out) < 75
