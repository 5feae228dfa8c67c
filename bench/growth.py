"""Growth: the time of an example under a tree, against the number of classes, from a thousand to a hundred million."""

import gc
from pathlib import Path

import numpy as np

from bench.measure import append, measure, show
from bench.tree import Task, ours

WIDTH = 32  # so that 100 M classes fit into 13 GB
CLASSES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
PICTURE = "tree_growth.png"


def run(arguments) -> None:
    """Zipf(1) targets on their Huffman trees: nanoseconds an example, and how far they are from a straight line."""
    records = []
    for classes in CLASSES[:3] if arguments.quick else CLASSES:
        task = Task(classes, arguments.threads, WIDTH)
        work = ours(task)
        work.more = {"path": task.length()}
        records += measure([work], arguments.repeat)
        show(records[-1:])
        append(arguments.json, records[-1:])
        del task, work
        gc.collect()  # the nodes, before the next are made
    powers = np.log10([record["params"]["classes"] for record in records])
    times = np.array([1e9 / record["value"] for record in records])
    nodes = times / [record["path"] for record in records]
    a, b, far = fit(powers, times)
    print(f"  {a:.0f} + {b:.0f} log10 V ns an example: at most {far:.0%} from what was measured")
    print(f"  a node of a path: {', '.join(f'{found:.1f}' for found in nodes)} ns")
    if arguments.out:
        _draw(Path(arguments.out) / PICTURE, powers, times, nodes)


def fit(along: np.ndarray, times: np.ndarray) -> tuple[float, float, float]:
    """a and b of a + b along, by least squares, and the largest share of a time by which this misses it."""
    b, a = np.polyfit(along, times, 1)
    return float(a), float(b), float(np.abs((a + b * along) / times - 1).max())


def _draw(file: Path, powers: np.ndarray, times: np.ndarray, nodes: np.ndarray) -> None:
    """The time of an example, with its line, and that of a node of its path, against the classes."""
    from matplotlib.figure import Figure

    figure = Figure((8, 3.2), layout="constrained")
    whole, each = figure.subplots(1, 2)
    a, b, far = fit(powers, times)
    whole.plot(powers, a + b * powers, color="0.7", label=f"a + b log V, at most {far:.0%} off")
    whole.legend(frameon=False, loc="upper left")
    for side, found, label in (
        (whole, times, "time of an example (ns)"),
        (each, nodes, "time of a node of its path (ns)"),
    ):
        side.plot(powers, found, "o-", color="C0", linewidth=1)
        side.set_xticks(powers, [f"$10^{{{round(power)}}}$" for power in powers])
        side.set_xlabel("classes")
        side.set_ylabel(label)
        side.set_ylim(0)
        side.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
