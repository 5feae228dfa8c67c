"""One small file a release of what was measured, and the curve of speed over releases: python -m bench history FILE...

The curve is chained: from one release to the next goes the median ratio of the figures that both have, measured on a
processor of the same name. So benchmarks may come and go, and machines change. Peers stand beside ours: where they moved from
one release to the next, the machine did, or they did.
"""

import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from bench import report
from bench.compare import changes
from bench.report import Record

HERE = Path(__file__).parent / "history"
DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = Path("history.md"), Path("images") / "history.png"  # in docs
KEPT = ("work", "params", "who", "threads", "device", "unit", "samples", "run", "data", "commit")  # and the processor
DIGITS = 4  # of a sample
INTRODUCTION = """# Speed over releases

`bench/history` has a file a release: the timed figures of `python -m bench`, ours and those of peers. From a release to the
next goes the median ratio of the figures that both have, measured on a processor of the same name; 1 is the first release that
has the benchmark. Peers were measured in the same runs: where they moved, the machine did, or their version.
`python -m bench compare A B` shows any two of the files figure by figure.

![Speed over releases, by benchmark, and of peers](images/history.png)

"""
COMMAND = (
    "This page is written by `python -m bench history FILE... --release NAME`, of the `.jsonl` files of a release.\n"
)


class Point(NamedTuple):
    """How fast a benchmark is in a release: so many times as fast as in its first; `figures` are those that say so."""

    work: str
    release: str
    ours: float
    figures: int
    peers: float | None


def keep(release: str, records: Sequence[Record], folder: Path) -> Path:
    """Write RELEASE.jsonl: records as `report` reads them, without what no comparison asks for; returns where.

    Raises ValueError for a name that is no version (PEP 440), and where nothing was timed; nothing is written then.
    """
    try:
        Version(release)
    except InvalidVersion:
        raise ValueError(f"--release: found {release!r}, expected a version, as 0.2.0") from None
    timed = [one for one in records if one.get("samples") and "unit" in one]
    if not timed:
        raise ValueError(f"release {release}: none of {len(records)} records has samples of a clock")
    path = folder / f"{release}.jsonl"
    path.write_text("".join(f"{json.dumps(_short(one))}\n" for one in timed))
    return path


def _short(record: Record) -> Record:
    samples = [float(f"{value:.{DIGITS}g}") for value in record["samples"]]
    return {name: record[name] for name in KEPT if name in record} | {
        "samples": samples,
        "env": {"cpu": record["env"].get("cpu")},
    }


def releases(folder: Path) -> dict[str, list[Record]]:
    """What each release has, the oldest first; of peers without their versions, so that they can be compared too."""
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: Version(path.stem))
    return {path.stem: [_unversioned(one) for one in report.read([str(path)])] for path in paths}


def _unversioned(record: Record) -> Record:
    return record | {"who": re.sub(r" \d+\.[\w.+]+", "", record["who"])}


def curve(found: dict[str, list[Record]]) -> list[Point]:
    """By benchmark, and then by release."""
    points: dict[str, list[Point]] = {}
    for name in found:
        for work in dict.fromkeys(one["work"] for one in found[name]):
            before = points.setdefault(work, [])
            if not before:
                before.append(Point(work, name, 1.0, 0, 1.0))
                continue
            last = before[-1]
            moved = changes(*([one for one in found[of] if one["work"] == work] for of in (last.release, name)))
            ours, peers = ([one.ratio for one in moved if one.ours is own] for own in (True, False))
            if not ours:
                continue
            beside = last.peers * statistics.median(peers) if peers and last.peers else None
            before.append(Point(work, name, last.ours * statistics.median(ours), len(ours), beside))
    return [point for work in sorted(points) for point in points[work]]


def page(points: Sequence[Point]) -> str:
    """docs/history.md: benchmarks that more than one release has, and how many have one so far."""
    compared = [point for point in points if point.figures]
    rows = [
        "| benchmark | release | times as fast as at first | figures | peers |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for one in compared:
        peers = "-" if one.peers is None else f"{one.peers:.2f}"
        rows.append(f"| {one.work} | {one.release} | {one.ours:.2f} | {one.figures} | {peers} |")
    alone = len({point.work for point in points} - {point.work for point in compared})
    more = f"In one release alone, or on processors of different names: {alone} other benchmarks, which begin at 1.\n\n"
    return INTRODUCTION + "\n".join(rows) + "\n\n" + more + COMMAND


def draw(points: Sequence[Point], file: Path) -> None:
    """A line a benchmark that more than one release has; dashed: its peers."""
    from matplotlib.figure import Figure

    figure = Figure((8, 3.6), layout="constrained")
    axes = figure.subplots()
    names = sorted({point.release for point in points}, key=Version)
    works = sorted({point.work for point in points if point.figures})
    for number, work in enumerate(works):
        mine = [point for point in points if point.work == work]
        where = [names.index(point.release) for point in mine]
        axes.plot(where, [point.ours for point in mine], "o-", color=f"C{number}", label=work)
        theirs = [float("nan") if point.peers is None else point.peers for point in mine]
        axes.plot(where, theirs, "x--", color=f"C{number}", linewidth=1, label=f"{work}: peers")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("times as fast as at first")
    axes.set_ylim(0)
    axes.spines[["top", "right"]].set_visible(False)
    if works:
        figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    figure.savefig(file, dpi=110)


def write(docs: Path, folder: Path) -> list[Path]:
    """The page and its picture, of all files in `folder`; returns where they are."""
    points = curve(releases(folder))
    (docs / PAGE).write_text(page(points))
    draw(points, docs / PICTURE)
    return [docs / PAGE, docs / PICTURE]
