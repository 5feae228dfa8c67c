"""Checks of a configuration: a ValueError says which field is wrong, what was found, and what is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import check

if TYPE_CHECKING:
    from .config import Config, Readout

RULES = ("cuda", "classic")
UNITS = ("simple", "change", "complex", "residual", "complex_residual")
FEATURES = ("signal", "derivative", "integral", "error", "past")
ACTIVATIONS = ("logistic", "rational", "tanh")
PUBLISH = ("raw", "minmax")
READOUTS = ("tile", "unit")
MOST_STREAMS = 16
LONGEST_NAME = 200  # characters; it stands in pictures and reports
MOST_LAYERS = 1000  # each is context to others: wiring takes time in proportion to their square
SWITCHES = (
    "self_context",
    "two_layers_back",
    "top_to_all",
    "context_to_output",
    "squeeze",
    "sign_of_error",
    "ignore_depth",
)


def config(new: Config) -> None:
    """ValueError for the first field that is wrong, by itself or together with others."""
    _name(new.name)
    check.choice("wiring", new.wiring, RULES)
    check.choice("unit", new.unit, UNITS)
    check.choice("activation", new.activation, ACTIVATIONS)
    check.choice("publish", new.publish, PUBLISH)
    check.choice("init", new.init, RULES)
    for name in SWITCHES:
        _flag(name, getattr(new, name))
    _shape(new)
    _inputs(new)
    if new.steps is not None:
        check.whole("steps", new.steps, 1)
    check.whole("streams", new.streams, 1, MOST_STREAMS)
    for at, event in enumerate(new.schedule):
        _event(f"schedule[{at}]", event, len(new.grids))
    for name in ("lateral_at", "feedback_at"):
        if getattr(new, name) is not None:
            check.whole(name, getattr(new, name), 0)
    _readout_fits(new)


def readout(new: Readout) -> None:
    """ValueError for the first field of a readout that is wrong by itself."""
    check.choice("readout.kind", new.kind, READOUTS)
    if new.kind == "tile" and len(new.hidden) not in (1, 2):
        raise ValueError(f"readout.hidden: found {len(new.hidden)} sizes, expected one or two")
    for at, size in enumerate(new.hidden):
        check.whole(f"readout.hidden[{at}]", size, 1)
    for at, pair in enumerate(new.block):
        _sizes(f"readout.block[{at}]", pair)
    for at, flag in enumerate(new.enabled):
        _flag(f"readout.enabled[{at}]", flag)
    check.whole("readout.depth", new.depth, 1)
    check.whole("readout.start", new.start, 0)
    _fraction("readout.momentum", new.momentum)
    events: tuple[Any, ...] = new.schedule
    for at, event in enumerate(events):
        name = f"readout.schedule[{at}]"
        if not isinstance(event, tuple) or len(event) != 2:
            raise ValueError(f"{name}: found {event!r}, expected (step, rate)")
        check.whole(f"{name} step", event[0], 0)
        check.number(f"{name} rate", event[1], 0)


def _name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"name: found {name!r}, expected a word")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"name: found {len(name):,} characters, expected at most {LONGEST_NAME}")
    if not name.isprintable():
        raise ValueError(f"name: found {name!r}, expected a word of one line, all of whose characters print")


def _shape(new: Config) -> None:
    if not new.grids:
        raise ValueError("grids: found none, expected (rows, columns) of at least one layer")
    if len(new.grids) > MOST_LAYERS:
        raise ValueError(f"grids: found {len(new.grids):,} layers, expected at most {MOST_LAYERS:,}")
    for at, pair in enumerate(new.grids):
        _sizes(f"grids[{at}]", pair)
    _sizes("block", new.block)
    check.whole("channels", new.channels, 1)
    if len(new.hidden) != len(new.grids):
        raise ValueError(
            f"hidden: found {len(new.hidden)} sizes, expected {len(new.grids)}, one a layer, or one for all"
        )
    for at, size in enumerate(new.hidden):
        check.whole(f"hidden[{at}]", size, 1)
    check.whole("fan_in", new.fan_in, 1)
    check.number("fan_in_radius", new.fan_in_radius, 0)
    check.number("lateral_radius", new.lateral_radius, 0)
    nearest = 0.5**0.5 if new.fan_in % 2 == 0 else 0
    if len(new.grids) > 1 and new.fan_in_radius < nearest:
        raise ValueError(
            f"fan_in_radius: found {new.fan_in_radius}, which leaves no unit of a block of {new.fan_in} x {new.fan_in}, "
            f"expected at least {nearest:.3f}"
        )
    if new.ignore_depth and new.channels != 4:
        raise ValueError(
            f"ignore_depth: found True with channels {new.channels}, expected channels 4, the last one depth"
        )


def _inputs(new: Config) -> None:
    """ValueError for features and steps that the rule or the kind of unit does not have."""
    for at, name in enumerate(new.features):
        check.choice(f"features[{at}]", name, FEATURES)
    ordered = tuple(name for name in FEATURES if name in new.features)
    if new.features != ordered or not ordered:
        raise ValueError(
            f"features: found {new.features}, expected {ordered or FEATURES[:1]}: each once, in this order"
        )
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


def _event(name: str, event: Any, layers: int) -> None:
    if not isinstance(event, tuple) or len(event) != 4:
        raise ValueError(f"{name}: found {event!r}, expected (step, layer or None for all, rate, momentum or None)")
    step, layer, rate, momentum = event
    check.whole(f"{name} step", step, 0)
    if layer is not None:
        check.whole(f"{name} layer", layer, 0, layers - 1)
    check.number(f"{name} rate", rate, 0)
    if momentum is not None:
        _fraction(f"{name} momentum", momentum)


def _readout_fits(new: Config) -> None:
    """ValueError for a readout with another number of layers than the configuration."""
    if new.readout is None:
        return
    expected = 1 if new.readout.kind == "tile" else len(new.grids)
    if len(new.readout.block) not in (0, expected):
        which = "of all tiles" if expected == 1 else "one a layer"
        raise ValueError(
            f"readout.block: found {len(new.readout.block)}, expected {expected}, {which}, or () for the default"
        )
    if len(new.readout.enabled) not in (0, len(new.grids)) or (new.readout.kind == "tile" and new.readout.enabled):
        raise ValueError(
            f"readout.enabled: found {len(new.readout.enabled)} with kind {new.readout.kind!r}, "
            f"expected {len(new.grids)} with 'unit', one a layer, or ()"
        )


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: found {value!r}, expected true or false")


def _sizes(name: str, pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ValueError(f"{name}: found {pair!r}, expected a number or (rows, columns)")
    check.whole(f"{name} rows", pair[0], 1)
    check.whole(f"{name} columns", pair[1], 1)


def _fraction(name: str, value: Any, closed: bool = False) -> None:
    """ValueError unless `value` lies in [0, 1), or [0, 1]."""
    check.number(name, value, 0)
    if value > 1 or (value == 1 and not closed):
        raise ValueError(f"{name}: found {value!r}, expected from 0 to {'1' if closed else 'below 1'}")
