"""How high the held-out items rank among those new to their users: recall@k, nDCG@k, and popularity as the figure to beat."""

from collections.abc import Callable

import numpy as np

from .. import console
from ..feeds.ratings import HeldOut, Histories

Scores = Callable[[np.ndarray], np.ndarray]  # user ids (n,) -> scores (n, V), higher is better
NUMBERS = 2**23  # scores asked for at a time


def figures(scores: Scores, seen: Histories, held: HeldOut, k: int = 10) -> dict[str, float]:
    """recall@k and ndcg@k over `users`, who have held-out items that are new to them; `repeats`: items left out, which their
    users had before.

    What a user has had is left out of the ranking; a target among it would stand alone at rank 1.

    Raises ValueError as `ranks` does, and where no held-out item is new to its user.
    """
    new = unseen(seen, held)
    repeats = len(held.user) - len(new.user)
    found = measures(ranks(scores, seen, new), k, new.user)
    return {**found, "users": len(np.unique(new.user)), "repeats": repeats}


def unseen(seen: Histories, held: HeldOut) -> HeldOut:
    """Those of the held-out items that their users have not had before, each once."""
    classes = len(seen.items)
    had = np.repeat(np.arange(len(seen.users)), np.diff(seen.at)) * classes + seen.item
    pair = held.user.astype(np.int64) * classes + held.item
    first = np.zeros(len(pair), bool)
    first[np.unique(pair, return_index=True)[1]] = True
    new = first & ~np.isin(pair, had)
    return HeldOut(held.user[new], held.item[new])


def ranks(scores: Scores, seen: Histories, held: HeldOut, block: int | None = None) -> np.ndarray:
    """The rank of every held-out item, (n,) int64: 1 + how many items that its user has not had score strictly higher.

    scores  asked for `block` users at a time (None: as many as bound memory), shows its progress where it takes long;
            what it returns is not written to
    held    items new to their users, see `unseen`

    Raises ValueError for scores of another shape or that are NaN.
    """
    found = np.empty(len(held.user), np.int64)
    block = block or max(NUMBERS // len(seen.items), 1)
    begins = range(0, len(found), block)
    for first in console.bar(len(begins), "evaluating", "blocks", items=begins, passing=True):
        users, target = held.user[first : first + block], held.item[first : first + block]
        table = _scored(scores, seen, users)
        higher = table > table[np.arange(len(users)), target][:, None]
        for row, user in enumerate(users):
            higher[row, seen.item[seen.at[user] : seen.at[user + 1]]] = False
        found[first : first + block] = 1 + higher.sum(axis=1)
    return found


def _scored(scores: Scores, seen: Histories, users: np.ndarray) -> np.ndarray:
    """The scores for some users, one of whom may stand there several times, and is asked for once."""
    different, back = np.unique(users, return_inverse=True)
    if len(different) == len(users):  # in the order given
        different, back = users, np.arange(len(users))
    table = np.asarray(scores(different))
    _check(table, seen, different)
    return table if different is users else table[back]


def _check(table: np.ndarray, seen: Histories, users: np.ndarray) -> None:
    expected = (len(users), len(seen.items))
    if table.shape != expected:
        raise ValueError(f"scores: found shape {table.shape}, expected {expected}: (users, items)")
    bad = np.isnan(table).any(axis=1)
    if bad.any():
        raise ValueError(f"scores: NaN for user {seen.users[users[bad.argmax()]]}; expected numbers")


def measures(found: np.ndarray, k: int = 10, user: np.ndarray | None = None) -> dict[str, float]:
    """recall@k and ndcg@k of ranks.

    user  (n,) whose item each is; None: all of different users

    recall@k is the mean over users of the share of their items with a rank up to k. ndcg@k is that of the sum of
    1 / log2(rank + 1) over these, by what it would be if all were ranked first. Of a user with one item these are 0 or 1, and
    1 / log2(rank + 1).
    """
    if not len(found):
        raise ValueError(
            "ranking: found no held-out item that is new to its user; expected users with at least 3 different items"
        )
    near: np.ndarray = found <= k
    gain = near / np.log2(found + 1)
    if user is not None and len(of := np.unique(user, return_inverse=True)[1]) > of.max() + 1:
        many = np.bincount(of)
        ideal = np.cumsum(1 / np.log2(np.arange(2, k + 2)))[np.minimum(many, k) - 1]
        near, gain = np.bincount(of, near) / many, np.bincount(of, gain) / ideal
    return {f"recall@{k}": float(near.mean()), f"ndcg@{k}": float(gain.mean())}


def popularity(train: Histories) -> Scores:
    """Scores every item by its count in the training histories, for all users alike."""
    counts = np.bincount(train.item, minlength=len(train.items))
    return lambda users: np.broadcast_to(counts, (len(users), len(counts)))
