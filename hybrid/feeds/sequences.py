"""Windows of sequences that predict the next id at every position: for recurrent nets and causal transformers.

Also: co-occurrence vectors of items, which can initialise their rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import check
from . import Batch, Epochs, Permuted, check_sizes, shuffled_by
from .histories import Histories
from .text import Corpus

DISTANCES, NEARNESS = (10, 0.8)  # maximum distance of a counted pair of items, and its decay per position
DRAWN = 0.3  # fraction of a drawn row in a row initialised by a vector, so that similar items differ


class SequenceFeed(Epochs):
    """A `Feed` of windows of `length` ids; at each position the input is an id and the target the next one.

    source   a Corpus, whose sentences are the sequences, or Histories: the items of each user in time order
    length   T, positions of a window. A sequence is cut into windows from its end. A shorter first window is padded at its end
             with positions of weight 0; the weights of Histories apply to their targets
    windows  windows per batch, which thus has windows * T examples; the last batch of an epoch may have fewer
    start    True: the first id of a sequence is also a target, after row V; False: it is only an input
    running  True: a whole Corpus is one sequence, and windows cross sentences
    epochs   number of passes over the sequences
    seed     each epoch is a permutation of the windows, drawn from (seed, epoch); None: the order of the source
    unlabelled  True: padding has no target instead of a weight of 0, so a readout on the CPU does not compute it

    It needs an Embedding of `rows` rows, the last of which stands for starts and padding. The trunk must process T examples as
    one sequence, such as TorchTrunk(..., sequence=T). Windows are independent and carry no state. The trunk must be causal:
    position t receives the target of position t - 1.

    Raises ValueError for another source, for sizes below 1, and if no sequence has a target.
    """

    def __init__(
        self,
        source: Corpus | Histories,
        *,
        length: int,
        windows: int = 32,
        start: bool = True,
        running: bool = False,
        epochs: int = 1,
        seed: int | None = 0,
        unlabelled: bool = False,
    ):
        self.seed, self.shuffle = shuffled_by(seed)
        check_sizes(self.seed, length=length, windows=windows, epochs=epochs)
        self.source, self.length, self.windows, self.start = source, length, windows, start
        self.running, self.unlabelled = running, unlabelled
        self._ids, at, self.counts = _taken(source, running)
        self._weight = source.weight if isinstance(source, Histories) else None
        self.classes = len(self.counts)
        self.rows = self.classes + 1
        self.batch = self.most_ids = self.most_targets = windows * length
        self._first, self._last, self._opens = _cut(at, length, start)
        if not len(self._first):
            raise ValueError("source: no sequence has a target; expected some of two ids, or start=True")
        self._order = Permuted(np.arange(len(self._first)), self.seed, self.shuffle)
        super().__init__(epochs, -(-len(self._first) // windows))

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Feed`."""
        names = ("length", "windows", "start", "running", "epochs", "seed", "shuffle")
        facts = self._described("sequences", self.source.sha256, *names)
        return facts | ({"unlabelled": True} if self.unlabelled else {})

    def question(self, sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the inputs of Engine.hidden: the last ids of sequences as windows, and the row of each last hidden vector."""
        ids, rows = np.full((len(sequences), self.length), self.classes, np.int32), np.zeros(len(sequences), np.int64)
        for number, sequence in enumerate(sequences):
            whole = check.indices("sequences", sequence, self.classes)
            if not self.start and not len(whole):
                raise ValueError(f"sequences[{number}]: found no id, expected some")
            opens = self.start and len(whole) < self.length
            kept = whole[-self.length :]
            ids[number, opens : opens + len(kept)] = kept
            rows[number] = number * self.length + opens + len(kept) - 1
        return ids.reshape(-1), rows

    def _cut(self, epoch: int, tick: int) -> Batch:
        some = self._order.part(epoch, tick, self.windows)
        at = self._first[some, None] + np.arange(self.length)
        there = at < self._last[some, None]
        at[~there] = 0
        target = np.where(there, self._ids[at], 0)
        ids = np.where(there, self._ids[at - 1], self.classes)
        ids[self._opens[some], 0] = self.classes
        ids, target = (array.astype(np.int32).reshape(-1) for array in (ids, target))
        weight = self._weights(at, there)
        if not self.unlabelled or there.all():
            return Batch(ids, None, target, weight)
        labelled = there.reshape(-1)
        target_at = np.concatenate([[0], np.cumsum(labelled)])
        return Batch(ids, None, target[labelled], None if self._weight is None else weight, target_at=target_at)

    def _weights(self, at: np.ndarray, there: np.ndarray) -> np.ndarray | None:
        """Returns the weights of targets, (windows T,), 0 for padding; None: all are 1."""
        if self._weight is not None:
            return np.where(there, self._weight[at], 0).astype(np.float32).reshape(-1)
        return None if there.all() else there.astype(np.float32).reshape(-1)


def _taken(source: Corpus | Histories, running: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the ids of all sequences, their offsets, and the class counts."""
    if isinstance(source, Corpus):
        at = np.array([0, len(source)]) if running else source.at
        return source.ids, at, source.vocabulary.counts
    if not isinstance(source, Histories):
        raise ValueError(f"source: found {type(source).__name__}, expected a Corpus or Histories; see Corpus.from_ids")
    if running:
        raise ValueError("running: found True with Histories, expected False: histories are not one running sequence")
    return source.item, source.at, np.bincount(source.item, minlength=len(source.items))


def _cut(at: np.ndarray, length: int, start: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, for each window, its first target, the end of its targets, and whether its first target opens a sequence."""
    begin, end = at[:-1] + (0 if start else 1), at[1:]
    counts = np.maximum(-(-(end - begin) // length), 0)
    sequence = np.repeat(np.arange(len(counts)), counts)
    after = np.cumsum(counts)[sequence] - np.arange(len(sequence)) - 1  # later windows of the same sequence
    last = end[sequence] - after * length
    first = np.maximum(last - length, begin[sequence])
    return first, last, first == at[:-1][sequence]


def transitions(histories: Histories, nearness: float = NEARNESS) -> Any:
    """Returns (V, V) scipy CSR float64 counts of j after i, decayed by `nearness` per position, up to DISTANCES positions."""
    from scipy import sparse

    size, user = len(histories.items), np.repeat(np.arange(len(histories.users)), np.diff(histories.at))
    table = sparse.csr_array((size, size))
    for distance in range(1, min(DISTANCES, len(user) - 1) + 1):
        same = user[distance:] == user[:-distance]
        pairs = histories.item[:-distance][same], histories.item[distance:][same]
        table += sparse.csr_array((np.full(same.sum(), nearness ** (distance - 1)), pairs), (size, size))
    return table


def transition_vectors(histories: Histories, width: int, seed: int = 0) -> np.ndarray:
    """Returns (V, width) float32: singular vectors of log(1 + symmetric transition counts), by descending importance.

    Items with similar neighbours have similar vectors; an item without any has 0. The last bits may differ with the number of
    threads of SciPy's linear algebra.
    """
    from scipy.sparse import linalg

    table = transitions(histories)
    table = (table + table.T).tocsr()
    table.data = np.log1p(table.data)
    start = np.random.default_rng(seed).normal(size=len(histories.items))
    vectors = np.zeros((len(histories.items), width), np.float32)
    most = min(width, len(vectors) - 1)
    left, values, _ = linalg.svds(table, most, v0=start)
    vectors[:, :most] = (left * np.sqrt(values))[:, ::-1]
    return vectors


def turned(rows: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Returns drawn rows (V, D) rotated towards vectors (V, D), with their lengths kept; a zero vector changes nothing."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    mixed = _unit(towards) + DRAWN * _unit(rows)
    return (length * _unit(mixed)).astype(rows.dtype)


def _unit(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > 1e-6, rows / np.maximum(length, 1e-6), 0)
