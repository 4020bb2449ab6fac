"""What programs ask of functions that are hooked, other than to call them: they see what they see alone."""

from __future__ import annotations

import random
import subprocess

from pythons import watched
from tally import Tally
from under_test import NO_TORCH, Gnntop

TRIES = 12
MOST_ASKED = 30
FUNCTIONS = (
    *(
        "torch.save",
        "torch.Tensor.backward",
        "torch.autograd.backward",
        "torch.autograd.grad",
        "torch.nn.Module.__call__",
    ),
    *("torch.optim.SGD", "torch.optim.SGD.step", "torch.optim.Optimizer.zero_grad", "torch.nn.utils.clip_grad_norm_"),
    *("torch.utils.data.DataLoader.__iter__", "torch.utils.data.dataloader._BaseDataLoaderIter.__next__"),
    *("os._exit", "os.execv"),
)
QUESTIONS = (
    "pydoc.render_doc({0}, renderer=pydoc.plaintext)",
    "inspect.signature({0})",
    "inspect.getdoc({0})",
    "typing.get_type_hints({0})",
    "{0}.__name__, {0}.__qualname__, {0}.__module__",
    "pickle.dumps({0})",
    "copy.deepcopy({0}) is {0}",
    "weakref.ref({0})() is {0}",
    "inspect.isroutine({0}), callable({0})",
)
PROGRAM = """
import copy, inspect, os, pickle, pydoc, re, torch, torch.utils.data, typing, weakref
layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters())
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
for question in {questions!r}:
    try:
        answer = repr(eval(question))
    except Exception as error:
        answer = repr(error)
    print(question, re.sub("0x[0-9a-f]+", "0x", answer))
"""


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Documentation, signatures, type hints, names, pickles and copies of what is hooked."""
    tally = Tally("questions to functions that are hooked", "the answers that the program gets alone")
    python = gnntop.torch_python()
    if python is None:
        tally.skipped = NO_TORCH
        return [tally]
    both = ((question, function) for question in QUESTIONS for function in FUNCTIONS)
    # pydoc says whether a function is built in, which those that end a program are not.
    asked = [(question, f) for question, f in both if not (f.startswith("os.") and question.startswith("pydoc"))]
    every = [question.format(function) for question, function in asked]
    for _ in range(max(1, int(TRIES * share))):
        program = PROGRAM.format(questions=chance.sample(every, MOST_ASKED))
        alone = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True, timeout=120)
        tally.count(watched(gnntop, program, alone.stdout, python=python, steps=None, timeout_s=120))
    return [tally]
