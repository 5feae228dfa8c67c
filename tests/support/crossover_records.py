"""Records as `python -m bench crossover` writes them, of steps whose seconds are planted."""

import math

from bench.report.sections.crossover import Size

ROW = [Size(count, 128, 1024) for count in (1_000, 10_000, 100_000, 1_000_000)]
SIZES = [*ROW, *(Size(count, width, batch) for count in (1_000, 100_000) for width, batch in ((128, 64), (512, 1024)))]
SECONDS = {
    "full": lambda size: 1e-9 * size.classes * size.batch,
    "torch full": lambda size: 2e-9 * size.classes * size.batch,
    "tree": lambda size: 1e-8 * math.log2(size.classes) * size.batch,
}


def record(contender, size, work="output", threads=2, device="cpu"):
    """One line of the file."""
    value = size.batch / SECONDS[contender](size)
    who = "torch 2" if contender.startswith("torch") else "ours"
    found = {"bench": "crossover", "work": f"crossover.{work}", "who": who, "contender": contender}
    found |= {"params": size._asdict(), "threads": threads, "device": device}
    return found | {"unit": "examples/s", "value": value, "interval": [0.9 * value, 1.1 * value]}


def planted():
    """Every contender at every size."""
    return [record(contender, size) for contender in SECONDS for size in SIZES]
