"""Top-k classes of a trained softmax, exact or at a chosen recall, without reading all weights."""

from typing import Any, NamedTuple

import numpy as np

from . import check


class Worth(NamedTuple):
    """Measured quality of a FastHead on hidden vectors.

    recall     fraction of the true k largest logits in the result
    agreement  fraction of hidden vectors whose first id is correct
    read       fraction of the int8 rows that were read
    """

    k: int
    recall: float
    agreement: float
    read: float

    def line(self) -> str:
        """Returns it as one printed line."""
        return f"recall@{self.k} {self.recall:.4f}, agreement@1 {self.agreement:.4f}, {self.read:.1%} of the rows read"


class FastHead:
    """Search for the largest logits w . h + b of constant weights (V, D), such as an output layer or an item table.

    weights  (V, D) float32, C-contiguous: not copied, must not be modified. The index takes V (D + 16) further bytes
    bias     (V,) float32; None: 0
    recall   1: exact. Below 1: the target fraction of the k largest, calibrated on half of `hidden`
    k        default number of results of `best`
    hidden   (N, D) sample queries. Below recall 1, one half calibrates the search and `worth` is measured on the other half;
             at recall 1, `worth` is measured on all
    seed     of the clusters

    worth    Worth, or None without `hidden`
    read     fraction of rows that the last call read. Concurrent calls are safe

    Raises ValueError for arrays of another type or shape, non-finite numbers, and a recall below 1 without two hidden vectors.
    """

    def __init__(
        self, weights: Any, bias: Any = None, *, recall: float = 1.0, k: int = 10, hidden: Any = None, seed: int = 0
    ):
        from cpu.search import codes

        if not isinstance(weights, np.ndarray) or weights.ndim != 2 or not weights.size or weights.dtype != np.float32:
            kind = f"{type(weights).__name__} {getattr(weights, 'dtype', '')} {getattr(weights, 'shape', '')}".rstrip()
            raise ValueError(f"weights: found {kind}, expected an array (V, D) of float32")
        check.finite("weights", weights)
        self.weights = np.ascontiguousarray(weights)
        self.classes, self.width = weights.shape
        self.k, self.share = check.whole("k", k, 1, self.classes), 1.0
        self.recall = _recall(recall, hidden)
        self._codes = codes.encode(self.weights, self._bias(bias), seed=seed)
        self.read, self.worth = 0.0, None
        if hidden is not None:
            some = self._checked(hidden)
            if self.recall < 1:
                truth, _ = self.best(some[::2])
                needed = codes.shares(self._codes, some[::2], truth)
                self.share = float(np.quantile(needed, self.recall, method="higher"))
                some = some[1::2]
            self.worth = self.measure(some)

    def _bias(self, bias: Any) -> Any:
        if bias is None:
            return None
        bias = np.asarray(bias, np.float32)
        if bias.shape != (self.classes,):
            raise ValueError(f"bias: found {bias.shape}, expected ({self.classes},), one number per row of weights")
        check.finite("bias", bias)
        return np.ascontiguousarray(bias)

    def _checked(self, hidden: Any) -> np.ndarray:
        rows: np.ndarray = np.ascontiguousarray(hidden, np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ValueError(f"hidden: found {rows.shape}, expected (any, {self.width})")
        check.finite("hidden", rows)
        return rows

    def best(self, hidden: Any, k: int | None = None, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k largest logits of each hidden vector (B, D): ids (B, k) int32, logits (B, k) float32, largest first.

        exclude  as in Readout.best: if fewer than k are left, ids end with -1 and logits with -inf

        Logits are summed in float64; ties are ordered by ascending id.
        """
        return self._best(self._checked(hidden), k, exclude, self.share)

    def _best(self, hidden: np.ndarray, k: Any, exclude: Any, share: float) -> tuple[np.ndarray, np.ndarray]:
        from cpu.search import codes

        k = self.k if k is None else check.whole("k", k, 1, self.classes)
        ids, logits = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        left_out = None if exclude is None else check.excluded(exclude, len(hidden), self.classes)
        read = codes.search(ids, logits, self._codes, hidden, share, left_out)
        self.read = float(read.mean()) / self.classes if len(read) else 0.0
        return ids, logits

    def measure(self, hidden: Any, k: int | None = None) -> Worth:
        """Measures `best` against exact search on hidden vectors (B, D)."""
        hidden = self._checked(hidden)
        if not len(hidden):
            raise ValueError("hidden: found no row, expected at least one hidden vector to measure on")
        truth, _ = self._best(hidden, k, None, 1.0)
        ids, _ = self._best(hidden, k, None, self.share)
        recall = float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, ids, strict=True)]))
        return Worth(ids.shape[1], recall, float((truth[:, 0] == ids[:, 0]).mean()), self.read)


def _recall(recall: Any, hidden: Any) -> float:
    if not 0 < check.number("recall", recall, 0) <= 1:
        raise ValueError(f"recall: found {recall}, expected a share above 0 and up to 1")
    if recall < 1 and (hidden is None or len(hidden) < 2):
        some = "none" if hidden is None else len(hidden)
        raise ValueError(
            f"hidden: found {some}, expected at least two hidden vectors: a recall of {recall} is reached by a measurement on "
            "some that the model makes; a recall of 1 needs none"
        )
    return float(recall)
