"""The recordings of recordings/corpus against their labels: what is named today stays named (docs/findings.md)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import GNNTOP, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts"))
import corpus

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")


@pytest.fixture(scope="module")
def scored() -> list[corpus.Scored]:
    return [corpus.score(label, corpus.RECORDINGS, GNNTOP) for label in corpus.labels(corpus.RECORDINGS)]


def test_every_label_has_a_recording_and_every_recording_a_label() -> None:
    recordings, labels = ({path.stem for path in corpus.RECORDINGS.glob(it)} for it in ("*.gnntop", "*.label"))
    assert recordings == labels
    assert len([name for name in labels if name.startswith("clean-")]) >= 30


def test_a_label_is_in_the_lot_that_was_drawn() -> None:
    assert [(it.name, it.one("lot")) for it in corpus.labels(corpus.RECORDINGS)] == [
        (it.name, corpus.lot(it.name)) for it in corpus.labels(corpus.RECORDINGS)
    ]
