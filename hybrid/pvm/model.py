"""The Predictive Vision Model: units that predict what they see, frame by frame.

    pvm = PVM.from_config("quick")
    for frame in video:
        out = pvm.step(frame)           # out.prediction, out.error, out.hidden[layer], out.heatmap

After Piekniewski et al., Unsupervised learning from continuous video in a scalable predictive recurrent network
(arXiv:1607.06854), and the CUDA implementation piekniewski/PVM_cuda.
"""

from pathlib import Path
from typing import Any

import numpy as np

from .. import backend, check
from ..processors import available
from ..ranks.group import Group
from ..storage import checkpoint
from . import fields, parts, saved
from .config import Config
from .layout import taken, weights_at
from .pipeline import Pipeline
from .presets import load, named
from .rules import wire
from .saved import Saved
from .shared import SharedPipeline, Traffic
from .sizes import refuse_too_large, told_too_large
from .stepper import Stepper
from .validate import MOST_STREAMS
from .wiring import Wiring


class PVM(Stepper):
    """A model and its state.

    config   a Config, see there
    wiring   another graph than that of the configuration, see `wiring.custom`; its layers must be as many
    device   "cpu", "cuda:0" or None: a GPU when one can be used
    streams  how many videos it sees at once, 1 to 16; they share the weights, whose changes are summed
    threads  CPU threads (None: all cores)
    seed     of the weights
    dtype    float32; float64 on the CPU
    ranks    all processes that share the units; None: this one has them all. Each makes the same calls with the same arguments
             in the same order, gets the same results, bit for bit those of one process, and has the arrays of its own units
    cut      which rank has which units: "blocks" of the frame and of all layers above it, of equal cost, or "cost", ranges
             of the units' numbers

    frozen    while True nothing learns
    tick      ticks so far; `step_number` is another name for it
    torn      why the parameters are no longer those of a finished tick; None while they are
    trace     of the last run, see hybrid/engine/trace.py
    pipeline  the arrays, and the stages that a frame goes through

    Raises ValueError for settings that do not fit together, MemoryError where the model does not fit the device.
    """

    def __init__(
        self,
        config: Config,
        *,
        wiring: Wiring | None = None,
        device: str | None = None,
        streams: int = 1,
        threads: int | None = None,
        seed: int = 0,
        dtype: Any = np.float32,
        ranks: Group | None = None,
        cut: str = "blocks",
    ):
        check.whole("streams", streams, 1, MOST_STREAMS)
        dtype = np.dtype(dtype)
        if wiring is None:
            refuse_too_large(config, 1 + config.moves, dtype.itemsize, ranks.size if ranks else 1)
        graph = wire(config) if wiring is None else wiring
        if len(graph.grids) != len(config.grids):
            raise ValueError(
                f"wiring: found {len(graph.grids)} layers, expected {len(config.grids)} as config.grids has"
            )
        chosen = backend.choose(device)
        settings: dict[str, Any] = {"streams": streams, "threads": threads or available(), "seed": seed}
        settings["dtype"] = _dtype(dtype, chosen)
        self.ranks, self.cut = ranks, cut
        self._shared: SharedPipeline | None = None
        with told_too_large():
            if ranks and ranks.size > 1:
                self._shared = SharedPipeline(config, graph, chosen, ranks=ranks, cut=cut, **settings)
            pipeline = self._shared or Pipeline(config, graph, chosen, **settings)
        super().__init__(config, pipeline)
        self.seed, self._own_wiring = seed, wiring is not None
        self.wiring, self.backend, self.layout = graph, chosen, self.pipeline.layout
        self.streams, self.threads, self.dtype = streams, self.pipeline.threads, self.pipeline.dtype
        self.readouts = self.pipeline.readouts
        self.weights, self.velocity = self.pipeline.weights, self.pipeline.velocity

    @classmethod
    def from_config(cls, source: str | Path | Config, **settings: Any) -> "PVM":
        """The model of a Config, of a named configuration ("quick", "small", ...) or of a file; see `presets.load`.

        settings  those of PVM
        """
        if isinstance(source, Config):
            return cls(source, **settings)
        config = load(source)[0]
        with named(source):
            return cls(config, **settings)

    @property
    def step_number(self) -> int:
        """Ticks so far: another name for `tick`."""
        return self.tick

    @step_number.setter
    def step_number(self, tick: int) -> None:
        self.tick = tick

    def prediction(self) -> np.ndarray:
        """The `StepResult.prediction` of the last tick, (B, rows, columns, channels); of a loaded model, too."""
        self.settle()
        prediction = self.pipeline.prediction
        return prediction.shown(self.pipeline.predicted(self.tick - 1, prediction.index))

    @property
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rate and momentum of each layer, (L,), in force at the next tick."""
        return self.config.rates(self.tick)

    def set_rate(self, rate: float, layer: int | None = None, momentum: float | None = None) -> None:
        """Set the rate from the next tick on. It becomes an event of the configuration's schedule, which drops events that no
        longer matter.

        layer     None: all layers
        momentum  None: as it is. ValueError for one other than 0 in a model that began without momentum
        """
        if momentum and self.velocity is None:
            raise ValueError(
                f"momentum: found {momentum} for a model without momentum, expected None or 0; put one into its first schedule"
            )
        event = (self._next_step(), layer, float(rate), momentum)
        self.config = self.config.with_rate(event, self.tick - 1)

    # What was learned

    def weights_of(self, unit: int) -> dict[str, np.ndarray]:
        """Copies of a unit's matrices (outputs, inputs) and biases (outputs,), and where there is momentum of their
        velocities; by name, see `fields.matrices`.

        unit  its number among all, as errors name it and `wiring` counts
        """
        check.whole("unit", unit, 0, len(self.wiring.hidden) - 1)
        self.settle()
        layout, flat = taken(self.pipeline.whole, np.array([unit])), self.pipeline.weights_of(unit)
        own = fields.matrices(layout, self.config, 0, flat["weights"])
        if "velocity" not in flat:
            return own
        velocity = fields.matrices(layout, self.config, 0, flat["velocity"])
        return own | {f"{name} velocity": array for name, array in velocity.items()}

    def receptive_field(self, layer: int, unit: int) -> fields.Field:
        """The receptive fields of a unit's hidden numbers in the frame, see `fields.Projection`.

        unit  its number within the layer, as in `StepResult.hidden[layer]`
        """
        return self.projection().field(fields.unit_of(self.wiring, layer, unit))

    def projection(self) -> fields.Projection:
        """The back-projection of `receptive_field`, for many units of the model as it stands.

        Raises ValueError where ranks share the units.
        """
        if self._shared:
            raise ValueError(
                f"projection: found units that {self._shared.group.size} ranks share, expected all in one process; save the "
                "model, and load it in a process without ranks"
            )
        self.settle()
        arrays = {name: array for name, array in self.arrays().items() if name in ("weights", "low", "high")}
        arrays["tape"] = self.pipeline.tape(self.tick - 1)
        host = {name: self.backend.device.to_host(array) for name, array in arrays.items()}
        return fields.Projection(self.wiring, self.layout, self.config, host)

    # Keeping

    def arrays(self) -> dict[str, Any]:
        """Weights, velocity and state by name, where they are computed; those of the device are read by `fetch`."""
        return self.pipeline.arrays()

    def fetch(self) -> dict[str, np.ndarray]:
        """The same as NumPy arrays; live ones on the CPU."""
        return self.pipeline.fetch()

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays, named as `arrays` names them, to where they are computed."""
        self.pipeline.put(arrays)

    @property
    def size(self) -> tuple[int, int]:
        """Parameters of the units, and of the readouts."""
        units = int(weights_at(self.pipeline.whole)[-1])
        return units, self.readouts.weights.size if self.readouts else 0

    @property
    def traffic(self) -> Traffic:
        """Numbers that a tick moves between ranks; none without ranks."""
        if self._shared:
            return self._shared.traffic
        return Traffic(0, 0, self.streams * int(self.layout.hidden.sum()))

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Write a checkpoint, from which `load` goes on with the same numbers, on this device or another.

        facts  of the caller, which `load` returns; JSON-able

        Raises ValueError for a torn model, and for numbers that are not finite, which may not show in an error before a
        later tick; then the checkpoint before stays. See hybrid/storage/checkpoint.py for what else it raises. Of ranks all
        save, rank 0 writes what one process would, and what one raises all raise.
        """
        told = self._told(facts)
        if self._shared:
            with self._shared.group.together():
                self._check_finite()
            parts.Kept(self._shared).save(folder, told)
        else:
            self._check_finite()
            checkpoint.save(folder, self.fetch(), told)

    def _told(self, facts: dict[str, Any] | None) -> dict[str, Any]:
        """What a checkpoint tells beside its arrays, of a model that stands between two ticks."""
        self._check_whole()
        if self.under_way:
            raise ValueError(
                f"save: {self.under_way} ticks are under way; of a run with `ahead`, save after a complete tick"
            )
        self.settle()
        wiring = self.wiring if self._own_wiring else None
        own = Saved(self.config, wiring, self.streams, self.seed, self.dtype.name, self.tick, self.frozen)
        return {"pvm": own.facts(), "facts": facts or {}}

    def _check_finite(self) -> None:
        for name, array in self.fetch().items():
            check.finite(f"pvm, before tick {self.tick}: {name}", array)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | None = None,
        threads: int | None = None,
        ranks: Group | None = None,
        cut: str = "blocks",
    ) -> tuple["PVM", dict[str, Any]]:
        """The model of a checkpoint, or of a run's latest, and the facts saved with it.

        device, threads, ranks, cut  as of PVM, wherever it was before, and on however many ranks

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another kind.
        """
        own, facts = saved.read(folder)
        with checkpoint.told(folder):
            model = cls(
                own.config,
                wiring=own.wiring,
                device=device,
                streams=own.streams,
                threads=threads,
                seed=own.seed,
                dtype=own.dtype,
                ranks=ranks,
                cut=cut,
            )
            model.restore(folder)
            model.tick, model.frozen = own.step, own.frozen
        return model, facts

    def restore(self, folder: str | Path) -> None:
        """Take the arrays of a checkpoint of the same model."""
        if self._shared:
            parts.Kept(self._shared).load(folder)
            return
        arrays = self.fetch()
        checkpoint.load_into(folder, arrays)
        self.put(arrays)


def _dtype(dtype: np.dtype, device: backend.Backend) -> np.dtype:
    """The dtype itself; ValueError where the device does not compute in it."""
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype: found {dtype}, expected float32 or float64")
    if dtype == np.float64 and not device.device.float64:
        raise ValueError(f"dtype: found float64 on {device.name}, expected float32; float64 is computed on the CPU")
    return dtype
