"""The configuration of a Predictive Vision Model: its fields, validated on construction; read and written as JSON."""

from __future__ import annotations

import dataclasses
import difflib
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np

from .. import check

CHOICES = {
    "wiring": ("cuda", "classic"),
    "unit": ("simple", "change", "complex", "residual", "complex_residual"),
    "activation": ("logistic", "rational", "tanh"),
    "publish": ("raw", "minmax"),
    "init": ("cuda", "classic"),
}
FEATURES = ("signal", "derivative", "integral", "error", "past")
READOUTS = ("tile", "unit")
MOST_STREAMS = 16
LONGEST_NAME = 200  # characters; it appears in pictures and reports
MOST_LAYERS = 1000  # each is context to others: wiring takes quadratic time
SCHEDULED = ("rate", "rates", "lr", "learning_rate", "momentum")  # other names for the content of `schedule`
Event = tuple[int, int | None, float, float | None]
Rates = tuple[np.ndarray, np.ndarray]
T = TypeVar("T", "Config", "Readout")


@dataclass(frozen=True)
class Readout:
    """Small MLPs that map hidden vectors to a heatmap; their error does not reach the units. All fields are in docs/pvm.md.

    That of a "tile" sees all units with its patch in their receptive field; that of a "unit" has twice its unit's hidden width.
    """

    kind: str = "tile"
    hidden: tuple[int, ...] = (100,)
    block: tuple[tuple[int, int], ...] = ()
    enabled: tuple[bool, ...] = ()
    schedule: tuple[tuple[int, float], ...] = ((0, 0.01),)
    start: int = 0
    momentum: float = 0.1

    def __post_init__(self) -> None:
        _normalised(self, hidden=_row, block=_pairs, enabled=_row, schedule=_rows)
        check.choice("readout.kind", self.kind, READOUTS)
        if len(self.hidden) != 1:
            raise ValueError(f"readout.hidden: found {len(self.hidden)} sizes, expected one")
        check.whole("readout.hidden", self.hidden[0], 1)
        for at, pair in enumerate(self.block):
            _sizes(f"readout.block[{at}]", pair)
        for at, flag in enumerate(self.enabled):
            _flag(f"readout.enabled[{at}]", flag)
        check.whole("readout.start", self.start, 0)
        _fraction("readout.momentum", self.momentum)
        events: tuple[Any, ...] = self.schedule
        for at, event in enumerate(events):
            name = f"readout.schedule[{at}]"
            if not isinstance(event, tuple) or len(event) != 2:
                raise ValueError(f"{name}: found {event!r}, expected (step, rate)")
            check.whole(f"{name} step", event[0], 0)
            check.number(f"{name} rate", event[1], 0)

    def rate(self, step: int, before: float | None = None) -> float:
        """Returns the rate in force at `step`.

        before  the rate of the previous step, which may have been set manually; None: the schedule's own
        """
        in_force = before or 0.0
        for at, rate in sorted(self.schedule, key=lambda event: event[0]):
            if at == step or (before is None and at < step):
                in_force = rate
        return in_force


@dataclass(frozen=True)
class Config:
    """A model and its training. All fields are in docs/pvm.md; the defaults are those of the CUDA implementation.

    unit           "complex": a net of 4 layers; "residual", "complex_residual": two nets, of which the second predicts the
                   error of the first, which sees the context alone; "change": simple, predicts the change
    wiring         the rule of an original. "cuda": the output of two frames ago is compared with [this frame, the previous
                   one], each feature covers the whole signal; "classic": the output is compared with [the next frame (, the
                   one after)], each block of the signal is followed by its features
    features       of a signal: "signal", "derivative", "integral" (i <- tau i + (1 - tau) s), "error" of its prediction, "past"
                   (one frame ago)
    activation     "logistic", "rational" (s / (2 (|s| + 1)) + 1/2) or "tanh"
    schedule       (step, layer or None for all, rate, momentum or None for no change); a later entry overrides
    """

    name: str = "custom"
    grids: tuple[tuple[int, int], ...] = ((12, 12), (8, 8), (6, 6), (4, 4), (2, 2), (1, 1))
    block: tuple[int, int] = (5, 5)
    channels: int = 3
    hidden: tuple[int, ...] = (49,)
    unit: str = "simple"
    wiring: str = "cuda"
    fan_in: int = 2
    fan_in_radius: float = 2.0
    lateral_radius: float = 2.0
    self_context: bool = True
    two_layers_back: bool = True
    top_to_all: bool = True
    context_to_output: bool = False
    features: tuple[str, ...] = ("signal", "past")
    tau: float = 0.98
    predict_steps: int = 2
    activation: str = "rational"
    publish: str = "raw"
    squeeze: bool = True
    lateral_at: int | None = 0
    feedback_at: int | None = 0
    init: str = "cuda"
    schedule: tuple[Event, ...] = ((0, None, 0.002, 0.1), (1_000_000, None, 0.001, None))
    steps: int | None = None
    streams: int = 1
    sign_of_error: bool = False
    readout: Readout | None = field(default_factory=Readout)

    def __post_init__(self) -> None:
        readout: Any = self.readout  # in its file form
        if isinstance(readout, Mapping):
            object.__setattr__(self, "readout", _known(Readout, readout, "readout."))
        elif readout is False:  # TOML has no null
            object.__setattr__(self, "readout", None)
        elif not isinstance(readout, Readout | None):
            raise ValueError(f"readout: found {readout!r}, expected a Readout, its fields, or None")
        _normalised(self, grids=_pairs, block=_pair, hidden=_row, features=_row, schedule=_events)
        if len(self.hidden) == 1:
            object.__setattr__(self, "hidden", self.hidden * len(self.grids))
        config(self)

    @property
    def frame(self) -> tuple[int, int, int]:
        """The rows, columns and channels of the frame, which layer 0 covers."""
        (rows, columns), (high, wide) = self.grids[0], self.block
        return rows * high, columns * wide, self.channels

    @property
    def moves(self) -> bool:
        """True if the schedule has any momentum: the model then has velocities."""
        return any(momentum for *_, momentum in self.schedule)

    def stretched(self, steps: int) -> Config:
        """Returns the configuration with its schedule rescaled to `steps`; unchanged if it is None."""
        if self.steps in (None, steps):
            return self
        events = tuple((round(at * steps / self.steps), layer, rate, also) for at, layer, rate, also in self.schedule)
        return dataclasses.replace(self, schedule=events, steps=steps)

    def rates(self, step: int) -> Rates:
        """Returns rate and momentum of each layer in force at `step`: float64, read-only, the same arrays until they change."""
        starts, rates = self._stages
        return rates[bisect_right(starts, step)]

    def rates_after(self, before: Rates, step: int) -> Rates:
        """Returns the same as new arrays.

        before  those of the previous step, which may have been set manually
        """
        rate, momentum = (np.array(one, np.float64) for one in before)
        for _, layer, new, also in self._events.get(step, ()):
            chosen = slice(None) if layer is None else layer
            rate[chosen] = new
            if also is not None:
                momentum[chosen] = also
        return rate, momentum

    @cached_property
    def _events(self) -> dict[int, list[Event]]:
        found: dict[int, list[Event]] = {}
        for event in self.schedule:
            found.setdefault(event[0], []).append(event)
        return found

    @cached_property
    def _stages(self) -> tuple[list[int], list[Rates]]:
        """The steps at which the schedule changes, and the rates before the first and from each on."""
        starts = sorted(self._events)
        nothing = np.zeros(len(self.grids))
        rates = list(accumulate(starts, self.rates_after, initial=(nothing, nothing)))
        for one in chain.from_iterable(rates):
            one.flags.writeable = False
        return starts, rates

    def factors(self, step: int) -> tuple[float, float]:
        """Returns the multipliers of lateral context and feedback at `step`: 0 or 1."""
        lateral, feedback = (at is not None and step >= at for at in (self.lateral_at, self.feedback_at))
        return float(lateral), float(feedback)

    def to_json(self) -> str:
        """Returns JSON with one field a line, from which `from_fields` makes an equal configuration."""
        fields = dataclasses.asdict(self)
        lines = (f'  "{name}": {json.dumps(value, default=np.generic.item)}' for name, value in fields.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_fields(cls, fields: Any) -> Config:
        """Returns the configuration of the fields of a file; missing ones have their defaults.

        Raises ValueError for an unknown name, with the closest valid one, and for invalid values.
        """
        return _known(cls, fields)


def _known(cls: type[T], fields: Mapping[str, Any], prefix: str = "") -> T:
    if not isinstance(fields, Mapping):
        raise ValueError(f"{prefix.rstrip('.') or 'configuration'}: found {fields!r}, expected names with values")
    known = [one.name for one in dataclasses.fields(cls)]
    for name in fields:
        if name not in known:
            hint = _hint(known, name, prefix)
            raise ValueError(f"{prefix}{name}: found an unknown name, expected a field of {cls.__name__}; {hint}")
    return cls(**fields)


def _hint(known: list[str], name: str, prefix: str) -> str:
    if name in SCHEDULED:
        of_all = "[[0,null,0.01,0.1]], from step 0 on, of all layers, rate 0.01 and momentum 0.1"
        event = "[[0,0.01]], from step 0 on 0.01" if prefix else of_all
        return f"rates are in the schedule: {prefix}schedule={event}"
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return f"did you mean {prefix}{near[0]}?" if near else f"one of {', '.join(known)}"


def _normalised(self: Config | Readout, **how: Callable[[Any], Any]) -> None:
    """Converts the lists of files to tuples; invalid values are left for the checks to reject."""
    for name, change in how.items():
        object.__setattr__(self, name, change(getattr(self, name)))


def _row(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _rows(value: Any) -> tuple[Any, ...]:
    return tuple(tuple(one) if isinstance(one, list) else one for one in _row(value))


def _pair(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


def _pairs(value: Any) -> tuple[Any, ...]:
    return tuple(_pair(one) for one in _row(value))


def _events(value: Any) -> tuple[Any, ...]:
    """Returns events of 4 entries; "all" stands for None, which TOML lacks, and the momentum may be omitted."""
    events = _rows(value)
    if any(not isinstance(event, tuple) or len(event) not in (3, 4) for event in events):
        return events
    filled = (event if len(event) == 4 else (*event, None) for event in events)
    return tuple((step, None if layer == "all" else layer, rate, momentum) for step, layer, rate, momentum in filled)


# Checks of a configuration: a ValueError states the invalid field, its value, and the expected one.


def config(new: Config) -> None:
    """Raises ValueError for the first field that is invalid, alone or together with others."""
    name: Any = new.name
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(f"name: found {name!r:.60}, expected a name of at most {LONGEST_NAME} printable characters")
    for field_name, among in CHOICES.items():
        check.choice(field_name, getattr(new, field_name), among)
    for one in dataclasses.fields(new):
        if isinstance(one.default, bool):
            _flag(one.name, getattr(new, one.name))
    _shape(new)
    _inputs(new)
    for field_name, least in (("steps", 1), ("lateral_at", 0), ("feedback_at", 0)):
        if getattr(new, field_name) is not None:
            check.whole(field_name, getattr(new, field_name), least)
    check.whole("streams", new.streams, 1, MOST_STREAMS)
    events: tuple[Any, ...] = new.schedule
    for at, event in enumerate(events):
        what = f"schedule[{at}]"
        if not isinstance(event, tuple) or len(event) != 4:
            raise ValueError(f"{what}: found {event!r}, expected (step, layer or None for all, rate, momentum or None)")
        step, layer, rate, momentum = event
        check.whole(f"{what} step", step, 0)
        if layer is not None:
            check.whole(f"{what} layer", layer, 0, len(new.grids) - 1)
        check.number(f"{what} rate", rate, 0)
        if momentum is not None:
            _fraction(f"{what} momentum", momentum)
    _readout_fits(new)


def _shape(new: Config) -> None:
    layers = len(new.grids)
    if not layers:
        raise ValueError("grids: found none, expected (rows, columns) of at least one layer")
    if layers > MOST_LAYERS:
        raise ValueError(f"grids: found {layers:,} layers, expected at most {MOST_LAYERS:,}")
    for at, pair in enumerate(new.grids):
        _sizes(f"grids[{at}]", pair)
    _sizes("block", new.block)
    check.whole("channels", new.channels, 1)
    if len(new.hidden) != layers:
        raise ValueError(f"hidden: found {len(new.hidden)} sizes, expected {layers}, one per layer, or one for all")
    for at, size in enumerate(new.hidden):
        check.whole(f"hidden[{at}]", size, 1)
    check.whole("fan_in", new.fan_in, 1)
    check.number("fan_in_radius", new.fan_in_radius, 0)
    check.number("lateral_radius", new.lateral_radius, 0)
    nearest = 0.5**0.5 if new.fan_in % 2 == 0 else 0
    if layers > 1 and new.fan_in_radius < nearest:
        raise ValueError(
            f"fan_in_radius: found {new.fan_in_radius}, which leaves no unit of a block of {new.fan_in} x {new.fan_in}, "
            f"expected at least {nearest:.3f}"
        )


def _inputs(new: Config) -> None:
    for at, name in enumerate(new.features):
        check.choice(f"features[{at}]", name, FEATURES)
    ordered = tuple(name for name in FEATURES if name in new.features) or FEATURES[:1]
    if new.features != ordered:
        raise ValueError(f"features: found {new.features}, expected {ordered}: each once, in this order")
    check.whole("predict_steps", new.predict_steps, 1, 2)
    _fraction("tau", new.tau, closed=True)
    two_frames = new.features == ("signal", "past") and new.predict_steps == 2
    if new.wiring == "cuda" and not two_frames:
        raise ValueError(
            f"features: found {new.features} and predict_steps {new.predict_steps} with wiring 'cuda', expected "
            "('signal', 'past') and 2, the only ones it has; wiring 'classic' takes any"
        )
    if new.unit == "change" and (new.features[0] != "signal" or new.predict_steps != 1):
        raise ValueError(
            f"unit: found 'change' with features {new.features} and predict_steps {new.predict_steps}, expected wiring "
            "'classic', predict_steps 1 and 'signal' first, which the change is added to"
        )
    if "residual" in new.unit:
        if not two_frames:
            raise ValueError(
                f"unit: found {new.unit!r} with features {new.features} and predict_steps {new.predict_steps}, "
                "expected ('signal', 'past') and 2"
            )
        if new.context_to_output:
            raise ValueError(f"context_to_output: found True with unit {new.unit!r}, expected 'simple' or 'complex'")


def _readout_fits(new: Config) -> None:
    if new.readout is None:
        return
    kind, layers = new.readout.kind, len(new.grids)
    blocks, flags = len(new.readout.block), len(new.readout.enabled)
    expected = 1 if kind == "tile" else layers
    if blocks not in (0, expected):
        which = "of all tiles" if expected == 1 else "one per layer"
        raise ValueError(f"readout.block: found {blocks}, expected {expected}, {which}, or () for the default")
    if flags not in (0, layers) or (kind == "tile" and flags):
        wanted = f"{layers} with 'unit', one per layer, or ()"
        raise ValueError(f"readout.enabled: found {flags} with kind {kind!r}, expected {wanted}")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: found {value!r}, expected true or false")


def _sizes(name: str, pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ValueError(f"{name}: found {pair!r}, expected a number or (rows, columns)")
    check.whole(f"{name} rows", pair[0], 1)
    check.whole(f"{name} columns", pair[1], 1)


def _fraction(name: str, value: Any, closed: bool = False) -> None:
    """Raises ValueError unless `value` is in [0, 1) or, if closed, [0, 1]."""
    check.number(name, value, 0)
    if value > 1 or (value == 1 and not closed):
        raise ValueError(f"{name}: found {value!r}, expected from 0 to {'1' if closed else 'below 1'}")
