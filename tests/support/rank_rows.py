"""Ranks that share a table: rank 0 says in which cases rows, inputs or squares are not those of one process, to the bit."""

import sys

import numba
import numpy as np

from hybrid.engine.embedding import Embedding
from hybrid.ranks.group import Group
from hybrid.sharded.embedding import ShardedEmbedding
from hybrid.sharded.routes import Shard
from tests.support.drawn_ids import bags, zipf

ROWS, WIDTH, TICKS = 101, 13, 5
RULES = (
    {},
    {"optimiser": "row-adagrad"},
    {"optimiser": "adagrad"},
)
WHO = ("all", "some", "one")  # every rank has all examples; each has some, perhaps none; one has all
SHAPES = (
    {},
    {"per_example": 3},
    {"mean": True},
    {"mean": True, "undivided": True},
    {"mean": True, "weighted": True},
)


def main() -> None:
    numba.set_num_threads(1)
    group, wrong = Group(), []
    for rule in RULES:
        for shape in SHAPES:
            for who in WHO:
                numbers = np.array([not alike(group, who, rule | shape)], np.int64)
                group.most(numbers)
                if numbers[0]:
                    wrong.append((rule, shape, who))
    print(f"wrong: {wrong}" if wrong else "right")
    sys.exit(0)


def alike(group: Group, who: str, settings: dict) -> bool:
    """Whether all that this rank sees in some ticks is what one process has.

    who  has the examples of a batch, see `shares`
    """
    whole = Embedding(ROWS, WIDTH, rate=0.3, seed=7, **settings)
    shared = ShardedEmbedding(group, ROWS, WIDTH, rate=0.3, seed=7, **settings)
    rng, right = np.random.default_rng(3), True
    for tick in range(TICKS):
        bag_at, ids, values, examples = batch(rng, shared)
        own, example_at = shares(group, rng, who, examples)
        x, grad = np.zeros((2, examples, whole.outputs), np.float32)
        whole.forward(x, bag_at, ids, values)
        mine = np.full_like(x[own], np.nan)
        shared.forward(mine, bag_at, ids, values, example_at)
        right &= mine.tobytes() == x[own].tobytes()
        grad[:] = rng.normal(size=grad.shape)
        own_grad = grad[own].copy()
        whole.backward(bag_at, ids, grad, 1 - 0.1 * tick, values)
        shared.backward(bag_at, ids, own_grad, 1 - 0.1 * tick, values, example_at)
    for name, array in whole.parameters().items():
        right &= shared.parameters()[name].tobytes() == array[group.rank :: group.size].tobytes()
    return bool(right)


def shares(group: Group, rng: np.random.Generator, who: str, examples: int) -> tuple[slice, np.ndarray | None]:
    """This rank's examples, and where those of each rank begin."""
    if who == "one":
        return Shard(group.rank, group.size).whose(int(rng.integers(group.size)), examples)
    if who == "all":
        return slice(None), None
    example_at = np.r_[0, np.sort(rng.integers(0, examples + 1, group.size - 1)), examples]
    return Shard(group.rank, group.size).own(example_at), example_at


def batch(rng: np.random.Generator, table: Embedding) -> tuple:
    """Places of bags, ids, their values and how many examples there are; few batches are of one length."""
    examples = int(rng.integers(20, 40))
    bag_at = bags(rng, 5, examples) if table.mean else None
    ids = zipf(rng, ROWS, examples * table.per_example if bag_at is None else int(bag_at[-1]))
    values = rng.normal(size=ids.size).astype(np.float32) if table.weighted else None
    return bag_at, ids, values, examples


if __name__ == "__main__":
    main()
