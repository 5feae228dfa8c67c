"""What a recommender sees of a history: the options, the feed that they make, and what the engine needs for it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from .. import trees
from ..feeds.histories import HistoryFeed
from ..feeds.interactions import Histories
from ..feeds.orders import BAG, CONCATENATED, DECAY, ORDERS, SEQUENCE, Order
from ..feeds.sequences import SequenceFeed
from ..feeds.transitions import turned, vectors
from ..readout.tree import CLUSTERED
from ..settings import option, positive

STARTS = ("drawn", "counts")
WINDOWS = 128  # of a batch of sequences, where the user does not say how many examples it has
# Of sequences, where the user does not say otherwise: the best of those tried on Amazon's Beauty, see docs/ratings.md.
SEQUENCES = {"start": "counts", "tree": CLUSTERED, "tails": "softmax", "epochs": 12, "width": 128, "readout_width": 128}
SEQUENCES |= {"dropout": 0.5, "rows_optimiser": "adagrad", "readout_optimiser": "adagrad"}
ADAGRAD_RATE = 0.03


@dataclasses.dataclass(frozen=True)
class HistoryOptions:
    """Of a model that learns from histories."""

    history: int = option(
        5, "most items of a user's history", type=positive, by=("order", {DECAY: 10, CONCATENATED: 3, SEQUENCE: 20})
    )
    order: str = option(
        BAG,
        "how they are read: the mean of their rows, a mean weighted by age, row beside row, or as a sequence of which every"
        " place learns, by --trunk attention or torch",
        choices=ORDERS,
    )
    start: str = option(
        "drawn",
        "input rows, and classes where the readout is as wide, begin as drawn, or alike where items come soon after the same"
        " ones, which share nodes by --tree clustered",
        choices=STARTS,
    )
    tied: bool = option(False, "the rows of a full or sampled readout are the input rows: one table")


def order_of(options: Mapping[str, Any]) -> Order:
    """The order that options name; a run of before there were any has bags."""
    return Order(options.get("order") or BAG, options["history"], 0.8)


def feed(options: Mapping[str, Any], train: Histories) -> HistoryFeed | SequenceFeed:
    """What is learned from; a sequence's padding has no target where the readout is on the CPU, which then leaves it out."""
    order, sizes = order_of(options), {"epochs": options["epochs"], "seed": options["seed"]}
    if order.kind != SEQUENCE:
        form: dict[str, Any] = {"length": order.length, "order": order.kind, "decay": order.decay}
        return HistoryFeed(train, batch=options["batch"], **form, **sizes)
    here = (options.get("readout_device") or "cpu") == "cpu"
    windows = options["batch"] // order.length
    return SequenceFeed(train, length=order.length, windows=windows, start=False, unlabelled=here, **sizes)


def begin(options: Mapping[str, Any], train: Histories, engine: Any) -> None:
    """Give rows of an untrained engine the values they begin with, and classes the same where the readout is as wide."""
    if options.get("start") != "counts":
        return
    embedding, readout = engine.embedding, engine.readout
    rows = embedding.parameters()["table"][: len(train.items)]
    rows[:] = turned(rows, vectors(train, embedding.width, options["seed"]))
    embedding.send()
    if options.get("tree") == CLUSTERED:
        readout.regrow(trees.clustered(rows, readout.counts), counts=readout.counts)
    if readout.width == embedding.width and not engine.tied and hasattr(readout, "begin_with"):
        readout.begin_with(rows)


def form(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of make_engine."""
    return order_of(options).embedding | ({"tied": True} if options.get("tied") else {})


def complete(chosen: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Options that follow from others; ValueError for those that contradict each other."""
    if chosen["order"] == SEQUENCE:
        chosen = _complete_sequence(chosen, said)
    return _complete_tied(chosen, said) if chosen["tied"] else chosen


def _complete_sequence(chosen: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    if chosen["trunk"] == "mlp":
        raise ValueError("--order sequence: needs a trunk that reads sequences, --trunk attention or torch, found mlp")
    chosen |= {name: value for name, value in SEQUENCES.items() if name in chosen and said.get(name) is None}
    for rate, optimiser in (("rows_rate", "rows_optimiser"), ("rate", "readout_optimiser")):
        if said.get(rate) is None and chosen[optimiser] == "adagrad":
            chosen[rate] = ADAGRAD_RATE
    if said.get("batch") is None:
        return chosen | {"batch": WINDOWS * chosen["history"]}
    if chosen["batch"] < chosen["history"]:
        raise ValueError(
            f"--batch: found {chosen['batch']}, expected at least {chosen['history']}, the places of a sequence (--history)"
        )
    return chosen


def _complete_tied(chosen: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    if chosen["readout"] not in ("full", "sampled"):
        raise ValueError(f"--tied: not used by --readout {chosen['readout']}, expected full or sampled; leave it out")
    for name, only in (("micro_batches", 1), ("delay", 0), ("readout_width", chosen["width"])):
        if said.get(name) not in (None, only):
            raise ValueError(f"--{name.replace('_', '-')}: found {said[name]}, expected {only} with --tied")
    return chosen | {"micro_batches": 1, "readout_width": chosen["width"]}
