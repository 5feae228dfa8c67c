"""How high the held-out items rank: recall@k and nDCG@k, and popularity as the figure to beat."""

from collections.abc import Callable

import numpy as np

from .feeds.ratings import HeldOut, Histories

Scores = Callable[[np.ndarray], np.ndarray]  # user ids (n,) -> scores (n, V), higher is better


def ranks(scores: Scores, train: Histories, held: HeldOut, block: int = 256) -> np.ndarray:
    """The rank of every held-out item, (n,) int64: 1 + how many items that its user has not had score strictly higher.

    scores  asked for `block` users at a time; what it returns is not written to

    Raises ValueError for scores of another shape or that are NaN.
    """
    found = np.empty(len(held.user), np.int64)
    for first in range(0, len(found), block):
        users, target = held.user[first : first + block], held.item[first : first + block]
        table = np.array(scores(users))
        expected = (len(users), len(train.items))
        if table.shape != expected:
            raise ValueError(f"scores: found shape {table.shape}, expected {expected}: (users, items)")
        if np.isnan(table).any():
            user = train.users[users[np.isnan(table).any(axis=1).argmax()]]
            raise ValueError(f"scores: NaN for user {user}; expected numbers")
        wanted = table[np.arange(len(users)), target]
        higher = table > wanted[:, None]
        for row, user in enumerate(users):
            higher[row, train.item[train.at[user] : train.at[user + 1]]] = False
        found[first : first + block] = 1 + higher.sum(axis=1)
    return found


def measures(found: np.ndarray, k: int = 10) -> dict[str, float]:
    """recall@k: the share of ranks up to k; ndcg@k: the mean of 1 / log2(rank + 1), 0 for ranks beyond k."""
    if not len(found):
        raise ValueError("ranking: no user has a held-out item; expected users with at least 2 ratings")
    near = found <= k
    gain = near / np.log2(found + 1)
    return {f"recall@{k}": float(near.mean()), f"ndcg@{k}": float(gain.mean())}


def popularity(train: Histories) -> Scores:
    """Scores every item by its count in the training histories, for all users alike."""
    counts = np.bincount(train.item, minlength=len(train.items))
    return lambda users: np.broadcast_to(counts, (len(users), len(counts)))
