"""What was tried, and what went wrong."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

# Inputs that led to a failure are kept there.
KEPT = Path(__file__).resolve().parents[2] / "target/torture"
MOST_SHOWN = 5


@dataclass
class Tally:
    """One row of the table."""

    attack: str
    expects: str
    tries: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: str = ""
    note: str = ""

    def count(self, wrong: str | None, *inputs: Path) -> None:
        """Counts a try; `wrong` says what failed, and the inputs are kept for debugging."""
        self.tries += 1
        if wrong:
            kept = [str(self._keep(path)) for path in inputs]
            self.failures.append(" ".join([wrong, *kept]))

    def _keep(self, path: Path) -> Path:
        KEPT.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(path, KEPT / f"{len(self.failures)}-{path.name}"))


def print_table(tallies: list[Tally]) -> None:
    """The table in Markdown, then the failures."""
    print("\n| attack | expected | tries | failed |\n|---|---|---|---|")
    for tally in tallies:
        tries = f"skipped: {tally.skipped}" if tally.skipped else f"{tally.tries:,}"
        expects = f"{tally.expects}; {tally.note}" if tally.note else tally.expects
        print(f"| {tally.attack} | {expects} | {tries} | {len(tally.failures)} |")
    for tally in tallies:
        for failure in tally.failures[:MOST_SHOWN]:
            print(f"\nFAILED {tally.attack}: {failure}")
