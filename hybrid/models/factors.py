"""What a user takes next: the mean of his last items' rows -> MLP -> a distribution over items."""

import json
from pathlib import Path

import numpy as np

from .. import ranking
from ..engine import Engine
from ..feeds.histories import HistoryFeed, whole
from ..feeds.ratings import Histories, leave_last_out, load
from ..training import Job, write_json
from . import make_engine

NAMES = "items.json"
USERS = 64  # scored at a time: USERS x V log probabilities


def prepare(options: dict) -> Job:
    """Ratings -> histories without every user's last item, and an engine; measured on those last items."""
    train, held = leave_last_out(load(options["ratings"]))
    feed = HistoryFeed(
        train, length=options["history"], batch=options["batch"], epochs=options["epochs"], seed=options["seed"]
    )

    def figures(engine: Engine) -> dict[str, float]:
        return ranking.measures(ranking.ranks(scores(engine, train, options["history"]), train, held, USERS))

    return Job(feed, lambda: make_engine(options, feed, mean=True), figures, evaluations=1)


def scores(engine: Engine, train: Histories, length: int) -> ranking.Scores:
    """Users -> log probability of every item as their next."""
    classes = len(train.items)

    def score(users):
        batch = whole(train, users, np.zeros(len(users), np.int32), length)
        hidden = np.repeat(engine.hidden(batch.ids, batch.bag_at), classes, axis=0)
        every = np.tile(np.arange(classes, dtype=np.int32), len(users))
        return engine.readout.log_prob(hidden, every).reshape(len(users), classes)

    return score


def keep(job: Job, folder: Path) -> None:
    """Write the items' names."""
    write_json(folder / NAMES, job.feed.histories.items)  # type: ignore[attr-defined]


def evaluate(folder: Path, options: dict, engine: Engine, given: dict) -> dict:
    """recall@K and nDCG@K of every user's last item, beside those of popularity."""
    train, held = leave_last_out(load(options["ratings"]))
    k = given["at"]
    ours = ranking.measures(ranking.ranks(scores(engine, train, options["history"]), train, held, USERS), k)
    popular = ranking.measures(ranking.ranks(ranking.popularity(train), train, held), k)
    return {"users": len(held.user), **ours} | {f"{name} of popularity": value for name, value in popular.items()}


def vectors(folder: Path, engine: Engine) -> tuple[list[str], np.ndarray]:
    """The items and their input rows."""
    return json.loads((folder / NAMES).read_text()), engine.embedding.parameters()["table"]
