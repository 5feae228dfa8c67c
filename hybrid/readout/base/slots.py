"""Which slot of a head a class has: of H slots one alone, of K others one together with its cluster."""

from typing import Any

import numpy as np

from ... import check


def shape(
    counts: np.ndarray, head: int | None, clusters: Any, share: float, tails: str, vectors: Any, seed: int
) -> tuple[np.ndarray, int, int]:
    """The slot of each class, (V,) int32, H and K; arguments as of HeadReadout.

    The H most frequent classes have the slots 0 to H - 1, in rising order; of equally frequent ones the lower come first.
    """
    if clusters is not None and not isinstance(clusters, int | np.integer):
        return _given(counts.size, head, clusters, vectors)
    head, clusters = _sizes(counts, head, clusters, share, tails)
    by_count = np.argsort(-counts, kind="stable")
    slot = np.empty(counts.size, np.int32)
    slot[np.sort(by_count[:head])] = np.arange(head)
    slot[by_count[head:]] = head + _parts(by_count[head:], clusters, vectors, counts.size, seed)
    return slot, head, clusters


def regrouped(slot: np.ndarray, head: int, clusters: int, vectors: Any, seed: int) -> np.ndarray:
    """The slots of the same classes alone, and of clusters of what is alike."""
    below = np.flatnonzero(slot >= head)
    found = slot.copy()
    found[below] = head + _parts(below, clusters, vectors, slot.size, seed)
    return found


def _sizes(counts: np.ndarray, head: Any, clusters: Any, share: float, tails: str) -> tuple[int, int]:
    from cpu import head_sizes

    if not 0 < check.number("share", share, 0) <= 1:
        raise ValueError(f"share: found {share}, expected a share of a full softmax's time, above 0 and up to 1")
    classes = counts.size
    if head is not None:
        check.whole("head", head, 0, classes)
    if clusters is not None:
        most = classes - (head or 0)
        check.whole("clusters", clusters, min(most, 1) if head is not None else 0, most)
    return head_sizes.choose(counts, share, tails, head, clusters)


def _parts(classes: np.ndarray, clusters: int, vectors: Any, every: int, seed: int) -> np.ndarray:
    """The cluster of each of these classes, in clusters of equal size: of what is alike, or else in this order."""
    if vectors is None or not clusters:
        return np.arange(len(classes)) * clusters // max(len(classes), 1)
    from cpu import clusters as alike

    made = np.asarray(vectors)
    if made.ndim != 2 or len(made) != every or made.dtype.kind not in "iuf":
        raise ValueError(f"vectors: found {made.dtype} {made.shape}, expected ({every}, any): one vector a class")
    check.finite("vectors", made)
    parts: np.ndarray = alike.equal(made[classes].astype(np.float32), clusters, seed=seed)
    return parts


def _given(classes: int, head: Any, clusters: Any, vectors: Any) -> tuple[np.ndarray, int, int]:
    """From the cluster of each class, -1 for a class alone."""
    cluster = check.row("clusters", clusters)
    if head is not None or vectors is not None:
        raise ValueError(
            "clusters: found one for each class, which says what is in the head; leave out head and vectors"
        )
    if len(cluster) != classes or not len(cluster) or cluster.min() < -1:
        raise ValueError(
            f"clusters: found {len(cluster)} numbers from {cluster.min(initial=0)}, expected {classes}, one a class: -1 for "
            "the head"
        )
    alone, many = int((cluster < 0).sum()), int(cluster.max()) + 1
    slot = np.where(cluster < 0, np.cumsum(cluster < 0) - 1, cluster + alone).astype(np.int32)
    if many > classes or (missing := np.setdiff1d(np.arange(many), cluster)).size:
        which = many - 1 if many > classes else missing[0]
        raise ValueError(f"clusters: found none of the number {which}, expected a class in every cluster from 0 on")
    return slot, alone, many


def check_slots(slot: np.ndarray, head: int, clusters: int) -> None:
    """ValueError unless each of the first H slots has one class, those in rising order, and each of K others at least one."""
    fits = slot.min() >= 0 and slot.max() < head + clusters
    met = np.bincount(slot, minlength=head + clusters) if fits else np.zeros(1)
    rising = fits and (np.diff(slot[slot < head]) > 0).all()
    if not (rising and (met[:head] == 1).all() and (met[head:] > 0).all()):
        raise ValueError(
            f"slot: found numbers that are no slots, expected 0 to {head - 1} once each in rising order, and {head} to "
            f"{head + clusters - 1}, no cluster without a class"
        )
