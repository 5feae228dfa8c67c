"""What readouts share: arguments are checked here, once, and long inputs are cut into calls of `batch` rows."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backend as backends
from ... import check, mirror, sparse
from ...alone import Alone
from ...contract import Learned
from ...interrupt import Held
from .exclude import excluded
from .foreign import Foreign
from .place import place
from .stages import Staged
from .still import Still

if TYPE_CHECKING:  # Numba is imported with a readout's first use
    from cpu.excluded import Excluded

Pairs = list[tuple[np.ndarray, Any]]


class Base(Staged, Still, Foreign):
    """A readout without its arithmetic. A subclass has `kind`, and these methods, which trust their arguments:

        learn, _log_prob, _best   compute with arrays of the device, within the work of a queue
        _best_without, _scores    compute with NumPy's arrays on the host, with the parameters there
        _pairs                    every learned array of the host, and its counterpart on the device: the same one on the CPU

    One whose rows learn by `optimiser` keeps them by `_keep`, and then has `_pairs`, too.

    backend  the modules that compute, from hybrid.backend.choose; None: those of the CPU
    optimiser  how rows move: one of OPTIMISERS of hybrid/sparse.py
    biases   whether every row has a bias

    A subclass that also computes on a GPU says so in `places`.
    """

    kind: str
    _host: Learned
    _there: Learned
    places: tuple[str, ...] = ("cpu",)  # kinds of devices: "cpu", "cuda"
    begin_with: Any  # of kinds whose classes can begin alike
    learn_online: Callable[..., None]  # of those that can, see `online`
    counts: Any  # (V,) float64, None where only the number of classes is known
    mixed = False  # whether it belongs to a mixture, whose readouts have the same classes

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        batch: int,
        rate: float,
        seed: int,
        backend: Any,
        optimiser: str = "sgd",
        biases: bool = False,
    ):
        whole = isinstance(counts, int | np.integer)
        self.counts = None if whole else check.counts(counts)
        self.classes = check.classes(counts if whole else self.counts.size)
        self.width = check.whole("width", width, 1)
        self.batch = check.whole("batch", batch, 1)
        self.rate = rate
        self.seed = check.whole("seed", seed, 0, 2**63 - 1)
        self.optimiser, self.biased = check.choice("optimiser", optimiser, sparse.OPTIMISERS), bool(biases)
        self.backend = backends.given(backend)
        self._check_place()
        self._place = place(self.backend.device)
        self.rate_scale = 1.0
        self._loss = np.empty(self.batch, np.float32)
        self.alone = Alone(f"{self.kind} readout", "give every thread a readout of its own: copy.deepcopy makes one")

    @property
    def rate(self) -> float:
        """Of learning, at least 0; may be set between two calls. ValueError for one that is not finite."""
        return self._rate

    @rate.setter
    def rate(self, value: float) -> None:
        self._set_rate(check.number("rate", value, 0))

    def _set_rate(self, rate: float) -> None:
        self._rate = rate

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learn from a batch and return its mean loss in nats; see Readout."""
        rows = self._check_step(grad, hidden, target, weight)
        if not rows:
            return 0.0
        read = {"hidden": hidden, "target": target} | ({} if weight is None else {"weight": weight})
        with Held(), self.alone:
            loss = self._loss[:rows]
            self._place.call(self.learn, {"grad": grad, "loss": loss}, read)
            return check.loss(loss)

    @property
    def online(self) -> bool:
        """Whether it can learn together with the rows that a batch reads, see hybrid/engine/online.py."""
        return False

    def step_online(
        self, grad: np.ndarray, hidden: np.ndarray, inputs: Any, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Learn from a batch together with the rows that it reads, example by example, and return its mean loss in nats.

        Unchecked: an engine calls it, with an example at least. inputs: see cpu/word2vec.py; grad, hidden (B, D) are written.
        """
        with self.alone:
            loss = self._loss[: len(target)]
            self.learn_online(grad, loss, hidden, inputs, target, weight)
            return check.loss(loss)

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learn from a batch of the device's arrays, within the work of a queue; see Readout."""
        raise NotImplementedError

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The log-probability of each row's target; see Readout."""
        self._check(hidden, target)
        out = np.empty(len(hidden), np.float32)
        with self.alone:
            for part in self._parts(hidden):
                self._score(out[part], hidden[part], target[part])
        return out

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of all classes, (B, V); see Readout. Fetches the parameters of a GPU, once a call."""
        self._check(hidden)
        out = np.empty((len(hidden), self.classes), np.float32)
        with self.alone:
            self.fetch()
            for part in self._parts(hidden):
                self._scores(out[part], hidden[part])
        return out

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row, without those that `exclude` names; see Readout."""
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        if exclude is None:
            return self._each(self._find, hidden, k)
        left_out = excluded(exclude, len(hidden), self.classes)
        with self.alone:
            self.fetch()
            return self._each(self._best_without, hidden, k, left_out)

    def parameters(self) -> dict[str, np.ndarray]:
        """The arrays that a checkpoint keeps, by name; see Readout."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Nothing but the parameters is kept."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Bring the parameters to the device."""
        self.send()

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""
        mirror.fetch(self.backend.device, self._pairs())

    def send(self) -> None:
        """Bring the parameters from the host to the device; nothing to do where the device shares its memory."""
        mirror.send(self.backend.device, self._pairs())

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        names = ("kind", "classes", "width", "batch", "rate", "seed")
        biases = {"biases": True} if self.biased else {}
        return {name: getattr(self, name) for name in names} | sparse.describe(self.optimiser) | biases

    def __reduce__(self) -> tuple[Any, ...]:
        with self.alone:
            return again, (self.describe(), self.backend.name, self.parameters(), self.state(), self.rate_scale)

    def _each(
        self, find: Callable[..., None], hidden: np.ndarray, k: int, left_out: "Excluded | None" = None
    ) -> tuple[np.ndarray, np.ndarray]:
        ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        with self.alone:
            for part in self._parts(hidden):
                more = () if left_out is None else (left_out.of(part),)
                find(ids[part], log_probs[part], hidden[part], *more)
        return ids, log_probs

    def _parts(self, hidden: np.ndarray) -> Iterator[slice]:
        return (slice(at, at + self.batch) for at in range(0, len(hidden), self.batch))

    def _check(self, hidden: np.ndarray, *targets: np.ndarray) -> None:
        check.array("hidden", hidden, (None, self.width), np.float32)
        for target in targets:  # one, or none is asked for
            check.array("target", target, (len(hidden),), np.int32)
            check.ids("target", target, self.classes)
        check.finite("hidden", hidden)

    def _check_vectors(self, vectors: Any) -> None:
        check.array("vectors", vectors, (self.classes, self.width), np.float32)
        check.finite("vectors", vectors)

    def _check_step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> int:
        """The number of rows to learn from."""
        self._check(hidden, target)
        if weight is not None:
            self._check_weight(weight, len(hidden))
        check.array("grad", grad, hidden.shape, np.float32, written=True)
        rows = len(hidden)
        if rows > self.batch:
            raise ValueError(f"hidden: found {rows} rows, expected at most {self.batch}; make it with a larger batch")
        if np.may_share_memory(grad, hidden):
            raise ValueError("grad: found the memory of hidden, expected an array of its own")
        return rows

    def _check_weight(self, weight: np.ndarray, rows: int) -> None:
        check.array("weight", weight, (rows,), np.float32)
        check.finite("weight", weight)
        if rows and weight.min() < 0:
            at = int(weight.argmin())
            raise ValueError(f"weight[{at}]: found {weight[at]}, expected a number of at least 0")

    def _check_place(self) -> None:
        name = self.backend.name
        if name.partition(":")[0] not in self.places:
            raise ValueError(
                f'backend: found "{name}", expected "cpu": a {self.kind} readout computes on the CPU only; leave it out, '
                "or take a tree or full readout"
            )

    def _score(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        """`_log_prob` for NumPy's arrays."""
        self._place.call(self._log_prob, {"loss": out}, {"hidden": hidden, "target": target})

    def _find(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray) -> None:
        """`_best` for NumPy's arrays."""
        self._place.call(self._best, {"ids": ids, "log_probs": log_probs}, {"hidden": hidden})

    def _keep(self, rows: np.ndarray) -> None:
        """Take rows (R, D) that learn: with all that is kept for them as `_host`, and on the device as `_there`."""
        self._host = sparse.kept(rows, self.optimiser, self.biased)
        self._there = sparse.mirrored(self._host, self.backend.device)

    def _beside(self) -> dict[str, np.ndarray]:
        """What is kept beside the rows, by name."""
        return sparse.beside(self._host)

    @property
    def biases(self) -> np.ndarray | None:
        """(R,) those of the rows, on the host; None where there are none."""
        found: np.ndarray | None = self._host.biases
        return found

    @property
    def _step_rate(self) -> float:
        """The rate of this step."""
        return self.rate * self.rate_scale

    def _learns(self, learned: Learned) -> Learned:
        """What of it moves in this step: at a rate of 0 the squares stand still, too."""
        return learned if self.rate_scale else learned._replace(squares=None, bias_squares=None)

    def _pairs(self) -> Pairs:
        return sparse.pairs(self._host, self._there)

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        raise NotImplementedError

    def _best(self, ids: Any, log_probs: Any, hidden: Any) -> None:
        raise NotImplementedError

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded") -> None:
        raise NotImplementedError

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        raise NotImplementedError


def again(
    facts: dict[str, Any],
    device: str,
    parameters: dict[str, np.ndarray],
    state: dict[str, Any],
    rate_scale: float,
) -> Any:
    """A readout as it was pickled or copied, on a device of that name; it owns its arrays, which begin on cache lines.

    Raises ValueError where that device cannot be used here.
    """
    from .. import rebuild

    made = rebuild(facts, backends.again(f"{facts['kind']} readout", device))
    for name, array in made.parameters().items():
        np.copyto(array, parameters[name])
    made.restore(state)
    made.rate_scale = rate_scale
    return made
