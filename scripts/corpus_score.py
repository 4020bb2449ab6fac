"""What is found in the recordings of recordings/corpus beside their labels; the form of a label is in corpus.py."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).resolve().parents[1] / "recordings/corpus"
ALWAYS = {"bound", "warm-up"}
MOMENTS = {"spike", "page-faults", "aliasing"}
# The percentage of the time for which processes wait for memory from which on it is true that memory is reclaimed.
RECLAIMED = 1


class Label:
    """The lines of a label, each NAME: VALUE."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.stem
        lines = [line.split(":", 1) for line in path.read_text().splitlines() if line.strip()]
        self.lines = [(name, value.strip()) for name, value in lines]

    def all(self, name: str) -> list[str]:
        """Every value of this name."""
        return [value for key, value in self.lines if key == name and value]

    def one(self, name: str) -> str:
        """The first value of this name, or nothing."""
        return next(iter(self.all(name)), "")

    def words(self, name: str) -> set[str]:
        """The words of the first value of this name."""
        return set(self.one(name).split())

    @property
    def memory(self) -> float:
        """The percentage of the time in which some process of the machine waited for memory."""
        found = re.search(r"waited ([\d.]+) % of the time for memory", self.one("machine"))
        return float(found[1]) if found else 0.0

    def write(self, name: str, value: str) -> None:
        """Puts a line in the label, instead of those of its name."""
        self.lines = [(key, old) for key, old in self.lines if key != name] + [(name, value)]
        self.path.write_text("".join(f"{key}: {line}\n" for key, line in self.lines))


def labels(folder: Path) -> list[Label]:
    """The labels in a folder, by name."""
    return [Label(path) for path in sorted(folder.glob("*.label"))]


def lot(name: str) -> str:
    """In which lot a recording is, by the hash of its family's name."""
    family = name.split("-repaired")[0]
    return "seen" if int(hashlib.sha256(f"39 {family}".encode()).hexdigest(), 16) % 3 else "unseen"


@dataclass
class Scored:
    """What was found in one recording, beside its label."""

    label: Label
    found: list[dict[str, Any]]
    verdict: str
    text: str

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong with the program."""
        return self.label.name.startswith("clean-")

    @property
    def is_repaired(self) -> bool:
        """Whether the program is one that had a mistake."""
        return self.label.name.endswith("-repaired")

    def kinds(self) -> set[str]:
        """The kinds that were found."""
        return {finding["kind"] for finding in self.found}

    def right(self) -> set[str]:
        """What was expected and found."""
        return {it for it in self.label.words("expect") if self.kinds() & set(it.split("|"))}

    def missed(self) -> set[str]:
        """What was expected and not found."""
        return self.label.words("expect") - self.right()

    def false(self) -> list[dict[str, Any]]:
        """What was found and is not true."""
        expected = {kind for it in self.label.words("expect") for kind in it.split("|")}
        named = expected | self.label.words("also") | ALWAYS
        return [finding for finding in self.found if finding["kind"] not in named and not self.is_machine(finding)]

    def is_machine(self, finding: dict[str, Any]) -> bool:
        """Whether a finding is what the machine did, and it did so by the kernel's count."""
        is_moment = finding["kind"] in MOMENTS and finding["severity"] in {"note", "minor"}
        return is_moment or ("reclaim memory" in finding["summary"] and self.label.memory >= RECLAIMED)

    def places(self) -> list[tuple[str, bool]]:
        """Each expected place, and whether it is named."""
        wanted = [place.split(":", 1) for place in self.label.all("place")]
        return [(f"{kind}:{patterns}", self.names(kind, patterns.split(";"))) for kind, patterns in wanted]

    def names(self, kind: str, patterns: list[str]) -> bool:
        """Whether one finding of this kind, or of one of these, has all patterns."""
        found = [sentences(finding) for finding in self.found if finding["kind"] in kind.strip().split("|")]
        return any(all(re.search(pattern.strip(), text) for pattern in patterns) for text in found)

    def first_cause(self) -> bool | None:
        """Whether the verdict begins with the expected cause; `None` where the label names none."""
        pattern = self.label.one("verdict")
        parts = self.verdict.split("; ")
        if "contention" in self.label.words("also") and parts[0].startswith("CPU contention"):
            parts = parts[1:]  # that was so, and is not what the program does
        return bool(re.search(pattern, next(iter(parts), ""))) if pattern else None

    def words(self) -> list[tuple[str, bool]]:
        """What the report must say and must not, and whether it does so."""
        said = [(f"says {it}", bool(re.search(it, self.text))) for it in self.label.all("says")]
        return said + [(f"never {it}", not re.search(it, self.text)) for it in self.label.all("never")]


def sentences(finding: dict[str, Any]) -> str:
    """All that a finding says."""
    places = [place["sentence"] for place in finding["places"]]
    return "\n".join([finding["summary"], *finding["evidence"], *finding["advice"], *places])


def score(label: Label, folder: Path, gnntop: Path) -> Scored:
    """Reports on a recording as JSON, and as text where the label has words for it."""
    path = folder / f"{label.name}.gnntop"
    seen = json.loads(reported(gnntop, path, "--json"))
    text = reported(gnntop, path) if label.all("says") + label.all("never") else ""
    return Scored(label, seen["findings"]["found"], seen["verdict"], " ".join(text.split()))


def reported(gnntop: Path, recording: Path, *form: str) -> str:
    """What `gnntop report` prints."""
    return subprocess.run([gnntop, "report", *form, recording], capture_output=True, check=True, text=True).stdout


def table(scored: list[Scored]) -> str:
    """Precision and recall of each kind, as Markdown."""
    rows = ["| finding | recordings with it | found | missed | false | precision | recall |", "|---" * 7 + "|"]
    totals = [0, 0, 0]
    kinds = {kind for one in scored for kind in one.label.words("expect")}
    kinds |= {finding["kind"] for one in scored for finding in one.false()}
    for kind in sorted(kinds):
        right = sum(kind in one.right() for one in scored)
        missed = sum(kind in one.missed() for one in scored)
        false = sum(any(finding["kind"] == kind for finding in one.false()) for one in scored)
        rows.append(row(kind, right, missed, false))
        totals = [old + new for old, new in zip(totals, (right, missed, false), strict=True)]
    return "\n".join([*rows, row("**all**", *totals)])


def row(kind: str, right: int, missed: int, false: int) -> str:
    """A row of the table."""

    def ratio(part: int, whole: int) -> str:
        return f"{part / whole:.2f}" if whole else "-"

    ratios = (ratio(right, right + false), ratio(right, right + missed))
    return "| " + " | ".join([kind, *map(str, (right + missed, right, missed, false)), *ratios]) + " |"


def summary(scored: list[Scored]) -> str:
    """What the table does not have, in sentences."""
    clean = [one for one in scored if one.is_clean]
    repaired = [one for one in scored if one.is_repaired]
    places = [is_named for one in scored for _, is_named in one.places()]
    firsts = [one.first_cause() for one in scored if one.first_cause() is not None]
    words = [is_right for one in scored for _, is_right in one.words()]
    return (
        f"\n{len(scored)} recordings, {len(clean)} of them clean and {len(repaired)} repaired. With a false finding: "
        f"{sum(bool(one.false()) for one in clean)} clean, {sum(bool(one.false()) for one in repaired)} repaired. "
        f"The verdict's first cause is right in {sum(firsts)} of {len(firsts)}, the place in {sum(places)} of "
        f"{len(places)}, what the report must or must not say in {sum(words)} of {len(words)}."
    )


def print_faults(one: Scored) -> None:
    """Prints what is wrong with the findings of one recording."""
    faults = [f"missed {kind}" for kind in sorted(one.missed())]
    faults += [f"false {it['kind']} ({it['severity']}, {it['confidence']}): {it['summary']}" for it in one.false()]
    faults += [f"place not named: {place}" for place, is_named in one.places() if not is_named]
    faults += [words for words, is_right in one.words() if not is_right]
    if one.first_cause() is False:
        faults.append(f"verdict {one.verdict!r}, expected first: {one.label.one('verdict')}")
    if faults:
        kind = "clean" if one.is_clean else "mistake"
        print(f"\n{one.label.name} ({kind}, {one.label.one('lot')}; {one.label.one('machine')})")
        print("\n".join(f"- {fault}" for fault in faults))
