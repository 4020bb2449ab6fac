#!/usr/bin/env python3
"""Makes the moving picture of the README from a recording: one SVG that moves by CSS, without scripts or other files.

    cargo build --release --no-default-features --example screenshot
    scripts/tour.py recordings/demo/loader.gnntop -o docs/screens/tour.svg

Each frame is a screen as `screenshot` draws it: the recording played up to a share of its time, then some keys. Parts
that several frames share are in the file once. A reader who prefers reduced motion sees the first frame.
"""

import argparse
import pathlib
import subprocess
import tempfile

SIZE = "100x30"
# Percent of the recording, keys, seconds on the screen.
FRAMES = [
    (100, "", 4.0),
    (85, "", 0.7),
    (88, "", 0.7),
    (91, "", 0.7),
    (94, "", 0.7),
    (97, "", 0.7),
    (100, "2 [", 4.0),
    (100, "8", 4.0),
    (100, "3", 3.0),
    (100, "7", 3.0),
]


def drawn(program: pathlib.Path, recording: pathlib.Path, percent: float, keys: str) -> list[str]:
    """The lines of one frame's SVG."""
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "frame.svg"
        options = ["--size", SIZE, "--at", str(percent), "--keys", keys]
        subprocess.run([program, recording, "-o", picture, *options], check=True)
        return picture.read_text().splitlines()


def runs(frames: frozenset[int]) -> list[tuple[int, int]]:
    """The frames as ranges from one to before another."""
    found: list[tuple[int, int]] = []
    for frame in sorted(frames):
        if found and found[-1][1] == frame:
            found[-1] = (found[-1][0], frame + 1)
        else:
            found.append((frame, frame + 1))
    return found


def keyframes(name: str, frames: frozenset[int], starts: list[float]) -> str:
    """A CSS animation that shows something only in these frames. `starts` are percents, with 100 at the end."""
    shown = [(starts[begin], starts[end]) for begin, end in runs(frames)]
    stops = [] if shown[0][0] == 0 else [(0.0, "hidden")]
    for begin, end in shown:
        stops.append((begin, "visible"))
        stops.append((end, "hidden"))
    if shown[-1][1] == 100:
        stops[-1] = (100.0, "visible")
    return f"@keyframes {name}{{" + "".join(f"{at:.4g}%{{visibility:{to}}}" for at, to in stops) + "}"


def moving(frames: list[list[str]], seconds: list[float]) -> str:
    """One SVG of several."""
    head, tail = frames[0][:3], ["</g>", "</svg>"]
    # Elements keep the order in which the first frame that has them draws them: shapes below text.
    places: dict[str, set[int]] = {}
    for number, lines in enumerate(frames):
        for line in lines[3:-2]:
            places.setdefault(line, set()).add(number)
    groups: dict[tuple[bool, frozenset[int]], list[str]] = {}
    for line, where in places.items():
        groups.setdefault((line.startswith("<text"), frozenset(where)), []).append(line)
    total = sum(seconds)
    starts = [100 * sum(seconds[:number]) / total for number in range(len(frames))] + [100.0]
    names = {where: f"f{number}" for number, where in enumerate({where for _, where in sorted(groups, key=repr)})}
    everywhere = frozenset(range(len(frames)))
    style = [f"g[class]{{animation:{total:g}s step-end infinite;visibility:hidden}}"]
    for where, name in sorted(names.items(), key=lambda pair: pair[1]):
        if where != everywhere:
            style.append(keyframes(name, where, starts))
            style.append(f"g.{name}{{animation-name:{name}}}")
    first = ",".join(f"g.{name}" for where, name in names.items() if 0 in where and where != everywhere)
    style.append(f"@media (prefers-reduced-motion){{g[class]{{animation:none}}{first}{{visibility:visible}}}}")
    body = []
    for (_, where), lines in sorted(groups.items(), key=lambda group: group[0][0]):
        name = "" if where == everywhere else f' class="{names[where]}"'
        body += [f"<g{name}>", *lines, "</g>"]
    return "\n".join([*head, "<style>" + "".join(style) + "</style>", *body, *tail]) + "\n"


def main() -> None:
    """Reads the arguments, draws the frames, writes the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/screens/tour.svg"))
    parser.add_argument("--screenshot", type=pathlib.Path, default=pathlib.Path("target/release/examples/screenshot"))
    arguments = parser.parse_args()
    frames = [drawn(arguments.screenshot, arguments.recording, percent, keys) for percent, keys, _ in FRAMES]
    picture = moving(frames, [seconds for _, _, seconds in FRAMES])
    arguments.output.write_text(picture)
    print(f"{arguments.output}: {len(picture) // 1024} KiB, {len(frames)} frames")


if __name__ == "__main__":
    main()
