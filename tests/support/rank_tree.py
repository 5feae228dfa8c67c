"""Ranks that share a tree: rank 0 says in which cases losses, gradients, nodes or answers are not those of one process."""

import sys

import numba
import numpy as np
from scipy import sparse

from hybrid.ranks.group import Group
from hybrid.readout import TreeReadout
from hybrid.sharded.tree import ShardedTree
from tests.support.rank_rows import WHO, shares

CLASSES, WIDTH, BATCH, TICKS = 301, 21, 48, 4
COUNTS = 10**5 // np.arange(1, CLASSES + 1)
CASES = (
    {"owners": 4},
    {"owners": 8, "biases": True, "weighted": True},
    {"owners": 4, "optimiser": "row-adagrad"},
    {"owners": 8, "optimiser": "adagrad", "biases": True, "weighted": True},
    {"owners": 16, "tree": "balanced"},
)


def main() -> None:
    numba.set_num_threads(1)
    group, wrong = Group(), []
    for case in CASES:
        for who in WHO:
            numbers = np.array([bool(differs(group, who, case))], np.int64)
            group.most(numbers)
            if numbers[0]:
                wrong.append((case, who))
    print(f"wrong: {wrong}" if wrong else "right")
    sys.exit(0)


def differs(group: Group, who: str, case: dict) -> list[str]:
    """What of all that this rank sees is not what one process has; who: has the examples of a batch, see `shares`."""
    settings = dict(case)
    weighted = settings.pop("weighted", False)
    whole = TreeReadout(COUNTS, WIDTH, rate=0.3, batch=BATCH, **settings)
    shared = ShardedTree(group, COUNTS, WIDTH, rate=0.3, batch=BATCH, **settings)
    rng, wrong = np.random.default_rng(4), []

    def compare(what: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        if ours.tobytes() != theirs.tobytes():
            wrong.append(what)

    for _ in range(TICKS):
        examples = int(rng.integers(BATCH // 2, BATCH + 1))
        hidden = rng.normal(size=(examples, WIDTH)).astype(np.float32)
        target = np.minimum(rng.zipf(1.3, examples) - 1, CLASSES - 1).astype(np.int32)
        weight = rng.random(examples, np.float32) if weighted else None
        own, at = shares(group, rng, who, examples)
        compare("log_prob", shared.log_prob(hidden[own], target, at), whole.log_prob(hidden, target))
        grad = np.empty_like(hidden)
        mine = np.full_like(grad[own], np.nan)
        losses = whole.step(grad, hidden, target, weight), shared.step(mine, hidden[own], target, weight, at)
        compare("loss", *map(np.array, losses))
        compare("grad", mine, grad[own])
        answers(compare, whole, shared, hidden)
    for name, array in whole.parameters().items():
        ours = shared.parameters()[name]
        compare(name, ours, array if name == "counts" else array[shared.part.nodes])
    return wrong


def answers(compare, whole: TreeReadout, shared: ShardedTree, hidden: np.ndarray) -> None:
    """The likeliest classes, with and without some, and the probabilities of all, which are those of log_prob."""
    places = np.arange(len(hidden) * CLASSES).reshape(len(hidden), CLASSES)
    left_out = sparse.csr_array((places % 3 == 0).astype(np.int8))
    for exclude in (None, left_out):
        for ours, theirs in zip(shared.best(hidden, 5, exclude), whole.best(hidden, 5, exclude), strict=True):
            compare("best", ours, theirs)
    close = np.allclose(shared.scores(hidden), whole.scores(hidden), rtol=0, atol=1e-5)
    compare("scores", np.array(close), np.array(True))


if __name__ == "__main__":
    main()
