"""Records as `python -m bench crossover` writes them, of steps whose seconds follow planted constants."""

from bench.crossover_points import Size, amounts

ROW = [Size(count, 128, 1024) for count in (1_000, 10_000, 100_000, 1_000_000)]
SIZES = [
    *ROW,
    *(Size(count, 128, 64) for count in (1_000, 100_000)),
    *(Size(count, 512, 1024) for count in (1_000, 100_000)),
]
DENSE = {"operations": 1e-11, "logits": 1e-9, "weights": 2e-10, "batches": 1e-4}
TREE = {"nodes": 2e-8, "numbers": 1e-10, "missed numbers": 0.0, "batches": 1e-4}
PLANTED = {"full": DENSE, "torch full": {name: 2 * value for name, value in DENSE.items()}, "tree": TREE}


def record(contender, size, seconds, work="output", threads=2, device="cpu"):
    """One line of the file."""
    value = size.batch / seconds
    return {
        "bench": "crossover",
        "work": f"crossover.{work}",
        "who": "torch 2" if contender.startswith("torch") else "ours",
        "contender": contender,
        "params": size._asdict(),
        "unit": "examples/s",
        "value": value,
        "interval": [0.9 * value, 1.1 * value],
        "threads": threads,
        "device": device,
    }


def planted(constants=PLANTED, sizes=SIZES, work="output", **place):
    """Every contender at every size."""
    made = []
    for contender, each in constants.items():
        for size in sizes:
            parts = amounts(contender, work, size)
            made.append(
                record(
                    contender, size, sum(each.get(name, 0.0) * amount for name, amount in parts.items()), work, **place
                )
            )
    return made
