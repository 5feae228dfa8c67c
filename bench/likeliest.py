"""The ten likeliest of a million classes: exactly by a search in a tree, beside a full softmax.

How much of a tree an exact search visits depends on how peaked the distributions are. So one tree has learned: CONTEXTS
contexts, whose hidden vectors learn too, meet a class of their own LIKELY ones half of the time, and one by Zipf's law else.
The other has not: there only the shape of the tree, which follows from the counts, tells likely classes from others.
"""

import numpy as np

from bench.measure import Work, append, measure, show
from hybrid.readout import FullReadout, TreeReadout

CLASSES, WIDTH, BATCH, K, ROWS = 1_000_000, 128, 512, 10, 256
CONTEXTS, LIKELY, STEPS, RATE = 2000, 20, 8000, 0.1


def run(arguments) -> None:
    """Searches in a tree that has learned and in one that has not."""
    classes, steps = (20_000, 300) if arguments.quick else (CLASSES, STEPS)
    counts = np.maximum(1e9 / np.arange(1, classes + 1), 1)
    full, ways = _full(classes)
    for learned in (True, False):
        tree, hidden = _learned(counts, steps if learned else 0)
        works = [_search(tree, hidden, learned, arguments.threads)]
        works += [_rival(who, find, full, hidden, works[0].params, arguments.threads) for who, find in ways]
        records = measure(works, arguments.repeat)
        show(records)
        append(arguments.json, records)


def _learned(counts: np.ndarray, steps: int) -> tuple[TreeReadout, np.ndarray]:
    """A tree after so many batches, and the hidden vectors of ROWS contexts, which learned with it."""
    rng = np.random.default_rng(0)
    tree = TreeReadout(counts, WIDTH, batch=BATCH, rate=RATE)
    hidden = rng.standard_normal((CONTEXTS, WIDTH), np.float32)
    chance = np.cumsum(counts) / counts.sum()
    own = rng.integers(0, len(counts), (CONTEXTS, LIKELY))
    grad, losses = np.empty((BATCH, WIDTH), np.float32), []
    for _ in range(steps):
        at = rng.choice(CONTEXTS, BATCH, replace=False)
        drawn = np.minimum(np.searchsorted(chance, rng.random(BATCH)), len(counts) - 1)
        likely = own[at, np.minimum(rng.geometric(0.2, BATCH) - 1, LIKELY - 1)]
        target = np.where(rng.random(BATCH) < 0.5, likely, drawn).astype(np.int32)
        losses.append(tree.step(grad, np.ascontiguousarray(hidden[at]), target))
        hidden[at] -= RATE * grad
    if steps:
        print(f"{steps * BATCH:,} examples: {np.mean(losses[:50]):.2f} -> {np.mean(losses[-50:]):.2f} nats", flush=True)
    return tree, np.ascontiguousarray(hidden[:ROWS])


def _full(classes: int):
    """A full softmax, and its two ways to its ten best: ours, and NumPy's product and partition."""
    full = FullReadout(classes, WIDTH, batch=ROWS)
    full.weights[:] = np.random.default_rng(1).standard_normal(full.weights.shape, np.float32) / 8
    return full, (("full softmax", lambda hidden: full.best(hidden, K)[0]), ("full softmax, numpy", _by_numpy(full)))


def _by_numpy(full: FullReadout):
    def find(hidden):
        found = []
        for first in range(0, len(hidden), 32):  # 128 MB of products
            dots = hidden[first : first + 32] @ full.weights.T
            some = np.argpartition(dots, -K, axis=1)[:, -K:]
            order = np.argsort(-np.take_along_axis(dots, some, 1), axis=1)
            found.append(np.take_along_axis(some, order, 1))
        return np.concatenate(found)

    return find


def _search(tree: TreeReadout, hidden: np.ndarray, learned: bool, threads: int) -> Work:
    """Exact search, held to the log-probabilities of the classes that it finds, and of others."""
    params = {"classes": tree.classes, "width": WIDTH, "k": K, "tree": "trained" if learned else "untrained"}

    def check():
        ids, log_probs = tree.best(hidden[:2], K)
        for row, found, expected in zip(hidden[:2], ids, log_probs, strict=True):
            every = tree.scores(row[None])[0]
            np.testing.assert_allclose(np.sort(every)[::-1][:K], expected, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(every[found], expected, rtol=1e-3, atol=1e-4)

    run = lambda: tree.best(hidden, K)  # noqa: E731
    return Work("likeliest.exact", "ours", params, len(hidden), "rows/s", run, check, threads=threads)


def _rival(who: str, find, full: FullReadout, hidden: np.ndarray, params: dict, threads: int) -> Work:
    rows = hidden[:64]

    def check():
        dots = rows[:2] @ full.weights.T
        for found, row in zip(find(rows[:2]), dots, strict=True):
            np.testing.assert_allclose(row[found], np.sort(row)[::-1][:K], rtol=1e-3, atol=1e-4)

    return Work("likeliest.exact", who, params, len(rows), "rows/s", lambda: find(rows), check, threads=threads)
