"""Operations per byte of every stage, counted, and its share of the roof: the peak of a BLAS, or the bandwidth."""

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.harness.measure import Work, append, measure
from bench.oracles.tree import path
from bench.step import softmax, tree
from bench.step.units import Problem, bandwidth, equal, gemm, ours

WIDTH, BATCH, BAG, RATE = 128, 1024, 8, 0.02
FLOAT = 4


class Sizes(NamedTuple):
    """Units of a collection, width of a dense layer, classes of each readout, rows of a table, name of a vision model."""

    units: int = 14_161
    dense: int = 512
    few: int = 20_000
    many: int = 1_000_000
    rows: int = 1_000_000
    video: str = "small"


QUICK = Sizes(144, 64, 500, 5000, 5000, "tiny")


class Stage(NamedTuple):
    """A stage. sizes: in words; operations and bytes moved: per run; check raises if the first `run` gave a wrong result."""

    name: str
    sizes: str
    operations: float
    moved: float
    run: Callable[[], Any]
    check: Callable[[], Any]


def stages(sizes: Sizes, threads: int) -> Iterator[Stage]:
    """Yields the stages one by one, so that only one is in memory."""
    for batch in (1, 16):
        yield _units(sizes, batch, threads)
    yield _video(sizes, threads)
    yield from _dense(sizes)
    yield _softmax("full softmax", sizes.few, threads)
    yield _softmax("sampled softmax", sizes.many, threads)
    yield _tree(sizes.many, threads)
    yield from _rows(sizes)


def _units(sizes: Sizes, batch: int, threads: int) -> Stage:
    problem = Problem(equal(sizes.units), batch, 0.0)
    work = ours(problem, threads)
    size = f"{sizes.units:,} units of 150-49-150, batch {batch}"
    return Stage(f"units step ({batch})", size, problem.operations, problem.moved, work.run, work.check)


def _video(sizes: Sizes, threads: int) -> Stage:
    from bench.step.pvm import Case, Ours

    model = Ours(Case(sizes.video, momentum=0.0), "cpu", threads)
    size = f"{model.parameters:,} parameters"
    # a lower bound: each weight is multiplied and updated; back-propagation adds to it
    return Stage("pvm frame", size, 4 * model.parameters, model.moved, lambda: model.learn(1), model.check)


def _dense(sizes: Sizes) -> Iterator[Stage]:
    from cpu.mlp import product

    rng, width = np.random.default_rng(0), sizes.dense
    x, grad = (rng.standard_normal((BATCH, width), np.float32) for _ in range(2))
    matrix = rng.standard_normal((width, width), np.float32) / np.float32(math.sqrt(width))
    out, x_grad, matrix_grad = np.empty_like(x), np.empty_like(x), np.empty_like(matrix)
    size = f"{width} to {width}, batch {BATCH:,}"

    def back():
        product(x_grad, grad, matrix, 0)
        product(matrix_grad, grad.T, x, 0)

    def close(found, a, b):
        np.testing.assert_allclose(found[:9], a[:9].astype(float) @ b, rtol=1e-4, atol=1e-3)

    def check_back():
        close(x_grad, grad, matrix)
        close(matrix_grad, grad.T, x)

    many, vectors, numbers = 2 * BATCH * width**2, BATCH * width, width**2
    yield Stage(
        "dense forward",
        size,
        many,
        FLOAT * (2 * vectors + numbers),
        lambda: product(out, x, matrix.T, 0),
        lambda: close(out, x, matrix.T),
    )
    yield Stage("dense backward", size, 2 * many, FLOAT * (3 * vectors + 2 * numbers), back, check_back)


def _readout(pairs: int, rows: int) -> tuple[int, int]:
    """Returns operations and bytes if each pair of an example and a row gives a score and two gradient terms."""
    return 6 * pairs * WIDTH, FLOAT * 2 * (rows + BATCH) * WIDTH


def _softmax(name: str, classes: int, threads: int) -> Stage:
    """Returns a step of the full or the sampled softmax of bench/step/softmax.py."""
    task, full = softmax.Task(classes, BATCH, threads), name == "full softmax"
    work = task.work("", name, {}, task.full() if full else task.sampled())
    size = f"{classes:,} classes, {WIDTH} wide, batch {BATCH:,}"
    if full:
        return Stage(name, size, *_readout(BATCH * classes, classes), work.run, work.check)
    share = np.log1p(1 / np.arange(1, classes + 1)) / math.log(classes + 1)
    negatives = round(-float(np.expm1(softmax.NEGATIVES * np.log1p(-share)).sum()))  # expected number of distinct ones
    count = _readout(BATCH * (negatives + 1), negatives + len(np.unique(task.targets[0])))
    return Stage(name, f"{size}, {softmax.NEGATIVES:,} negatives", *count, work.run, work.check)


def _tree(classes: int, threads: int) -> Stage:
    """Returns steps of bench/step/tree.py, one on each of its batches."""
    task = tree.Task(classes, threads)
    work = tree.ours(task)
    lists = [[node for leaf in targets for node, _ in path(task.tree, leaf)] for targets in task.targets]
    counts = [_readout(len(nodes), len(set(nodes))) for nodes in lists]
    size = f"{classes:,} classes, {task.length():.1f} nodes a path, {WIDTH} wide, batch {BATCH:,}"
    operations, moved = (sum(parts) for parts in zip(*counts, strict=True))
    return Stage("tree step", size, operations, moved, work.run, work.check)


def _rows(sizes: Sizes) -> Iterator[Stage]:
    from cpu import rows
    from hybrid.contract import Learned

    rng = np.random.default_rng(0)
    table = np.resize(rng.standard_normal((1000, WIDTH), np.float32), (sizes.rows, WIDTH))
    ids, bags = rng.integers(0, sizes.rows, BATCH * BAG, np.int32), np.arange(BATCH + 1) * BAG
    out, grad = np.empty((BATCH, WIDTH), np.float32), rng.standard_normal((BATCH, WIDTH), np.float32)
    met = np.unique(ids)
    size = f"{BATCH:,} bags of {BAG} of {sizes.rows:,} rows, {WIDTH} wide"

    def check_gather():
        np.testing.assert_allclose(
            out, table[ids].astype(float).reshape(BATCH, BAG, WIDTH).mean(1), rtol=1e-4, atol=1e-6
        )

    before = table[met].astype(float)

    def check_scatter():
        np.subtract.at(before, np.searchsorted(met, ids), np.repeat(RATE / BAG * grad.astype(float), BAG, 0))
        np.testing.assert_allclose(table[met], before, rtol=1e-4, atol=1e-5)

    many, moved = ids.size * WIDTH, FLOAT * (met.size + BATCH) * WIDTH
    yield Stage("rows gather", size, many, moved, lambda: rows.gather_mean(out, table, bags, ids, None), check_gather)
    learned = Learned(table)
    move = lambda: rows.scatter_mean(learned, bags, ids, None, grad, RATE)  # noqa: E731
    yield Stage("rows scatter", size, 2 * many, moved + FLOAT * met.size * WIDTH, move, check_scatter)


BLOCK = 256  # examples per product of the peak measurement


def run(arguments) -> None:
    """Measures each stage in turns with both ceilings."""
    import numba

    numba.set_num_threads(arguments.threads)
    sizes = QUICK if arguments.quick else Sizes()
    passing, peak = bandwidth(64 if arguments.quick else 512, arguments.threads), gemm(BLOCK, arguments.threads)
    print("stage               operations a byte    GFLOP/s   of the roof")
    for stage in stages(sizes, arguments.threads):
        params = {"stage": stage.name, "sizes": stage.sizes}
        what = ("intensity.stage", "ours", params, stage.operations, "FLOP/s", stage.run, stage.check)
        work = Work(*what, moved=stage.moved, threads=arguments.threads)
        passing.samples, peak.samples = [], []
        *_, found = measure([passing, peak, work], arguments.repeat)
        reached, most = (one.amount / statistics.median(one.samples) for one in (passing, peak))
        intensity = stage.operations / stage.moved
        roof = min(most, intensity * reached)
        found |= {"operations": stage.operations, "moved": stage.moved, "intensity": intensity}
        found |= {"bandwidth": reached, "peak": most, "roof": roof, "roof_share": found["value"] / roof}
        by, share = "memory" if roof < most else "arithmetic", found["roof_share"]
        print(
            f"{stage.name:<20} {intensity:>16.3g} {found['value'] / 1e9:>10.3g} {share:>13.0%} ({by})   {stage.sizes}",
            flush=True,
        )
        append(arguments.json, [found])
