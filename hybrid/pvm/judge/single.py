"""A model with one stream that stands where the first stream of another stands."""

import dataclasses

from ..model import PVM


def single(model: PVM, *, readouts: bool) -> PVM:
    """A new model of the same graph, on the same device, with one stream; with the other's readouts, or with none.

    Ranks that share the other's units share its own in the same way.
    """
    return PVM(
        model.config if readouts else dataclasses.replace(model.config, readout=None),
        wiring=model.wiring,
        device=model.backend.name,
        threads=model.threads,
        seed=model.seed,
        dtype=model.dtype,
        ranks=model.ranks,
        cut=model.cut,
    )


def follow(one: PVM, model: PVM) -> None:
    """Copy to a model that `single` made what the other has learned, and the state of its first stream."""
    first = {name: len(array) for name, array in one.fetch().items()}  # weights have no axis of streams
    one.put({name: array[: first[name]] for name, array in model.fetch().items() if name in first})
    one.step_number = model.step_number
