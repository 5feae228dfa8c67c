"""What a user takes next: the mean of his last items' rows -> MLP -> a distribution over items.

The last item of every user tests, the one before it validates (users with at least 3 items), the rest is learned from.
During training only validation is measured, on at most VALIDATING users, evenly taken; the test is measured once, at the
end and by `hybrid eval`, on all, with the validation item among what the user has had.
"""

import json
from pathlib import Path

import numpy as np

from ..engine import Engine
from ..feeds.histories import HistoryFeed, whole
from ..feeds.ratings import HeldOut, Histories, Split, histories, load, split
from ..judge import ranking
from ..train.loop import Job
from ..train.store import write_json
from ._engine import make_engine

NAMES = "items.json"
USERS = "users.json"
VALIDATING = 10_000  # users measured during training, so that on large data it does not take longer than to learn


def prepare(options: dict) -> Job:
    """Ratings -> histories without every user's last two items, and an engine; validated on the first of the two."""
    every = histories(load(options["ratings"], options.get("columns")))
    parts = split(every)
    _check(options["ratings"], parts)
    length = options["history"]
    feed = HistoryFeed(
        parts.train, length=length, batch=options["batch"], epochs=options["epochs"], seed=options["seed"]
    )

    new = ranking.unseen(parts.train, parts.valid)
    repeats = len(parts.valid.user) - len(new.user)
    new = HeldOut(*(ids[:: -(-len(ids) // VALIDATING)] for ids in new))
    counted = {"valid users": len(new.user), "valid repeats": repeats}

    def valid(engine: Engine) -> dict:
        found = ranking.measures(ranking.ranks(scores(engine, parts.train, length), parts.train, new))
        return {f"valid {name}": value for name, value in found.items()}

    def final(engine: Engine) -> dict:
        return counted | _test(engine, parts, length)

    def make() -> Engine:
        return make_engine(options, feed, mean=True)

    return Job(feed, make, valid, evaluations=1, final=final, data=every.sha256)


def scores(engine: Engine, seen: Histories, length: int) -> ranking.Scores:
    """Users -> log probability of every item as their next."""

    def score(users):
        batch = whole(seen, users, np.zeros(len(users), np.int32), length)
        return engine.scores(batch.ids, batch.bag_at)

    return score


def keep(job: Job, folder: Path) -> None:
    """Write the names of items and users."""
    train: Histories = job.feed.histories  # type: ignore[attr-defined]
    write_json(folder / NAMES, train.items)
    write_json(folder / USERS, train.users)


def evaluate(folder: Path, options: dict, engine: Engine, given: dict) -> dict:
    """recall@K and nDCG@K of every user's last item, beside those of popularity."""
    path = given["ratings"] or options["ratings"]
    try:
        every = histories(load(path, given["columns"] or options.get("columns")))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: not there, and {folder} was trained on it; where it was moved, hybrid eval {folder} --ratings FILE"
        ) from None
    found, expected = every.sha256[:12], (options.get("data") or "none kept")[:12]
    if found != expected:
        raise ValueError(
            f"{path}: not the ratings that {folder} was trained on (digest {found}, expected {expected}): give them as "
            "they were, --ratings FILE, or train a new run"
        )
    return _test(engine, split(every), options["history"], given["at"])


def vectors(folder: Path, engine: Engine) -> tuple[list[str], np.ndarray]:
    """The items and their input rows."""
    return json.loads((folder / NAMES).read_text()), engine.embedding.parameters()["table"]


def _test(engine: Engine, parts: Split, length: int, k: int = 10) -> dict:
    """Figures on the users' last items, beside popularity, which as the model knows only what was learned from."""
    ours = ranking.figures(scores(engine, parts.seen, length), parts.seen, parts.test, k)
    popular = ranking.figures(ranking.popularity(parts.train), parts.seen, parts.test, k)
    beside = {f"test {name} of popularity": popular[name] for name in (f"recall@{k}", f"ndcg@{k}")}
    return {f"test {name}": value for name, value in ours.items()} | beside


def _check(path: str, parts: Split) -> None:
    """ValueError for ratings that leave nothing to validate or to test with."""
    if not len(parts.test.user):
        users = len(parts.train.users)
        raise ValueError(
            f"{path}: none of {users} users has 3 items; expected some: the last tests, the one before validates"
        )
    for does, seen, held in (("validates", parts.train, parts.valid), ("tests", parts.seen, parts.test)):
        if not len(ranking.unseen(seen, held).user):
            raise ValueError(
                f"{path}: every item that {does} is one that its user had before; expected new ones, which can be ranked"
            )
