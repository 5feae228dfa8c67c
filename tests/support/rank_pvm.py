"""Ranks that share a model, each beside the same model in one process; arguments: what to do, a folder, a device, and more.

What does not hold is raised, which ends all ranks.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hybrid.mpi.group import Group
from hybrid.mpi.pvm import Ranks
from hybrid.pvm.evaluate import follow, single
from hybrid.pvm.model import PVM
from tests.support.small_pvm import BLIND, TINY, Scene, assert_same, bytes_of, walk

CLASSIC = {"wiring": "classic", "features": ("signal", "derivative", "integral", "error"), "predict_steps": 1}
TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}
STREAMS = {"streams": 2}
OF_UNITS = dataclasses.replace(TINY.readout, kind="unit", hidden=(4,))
STILL = ((0, None, 0.05, 0.0),)
RESTS = ((0, None, 0.05, 0.3), (4, 1, 0.0, None), (5, 0, 0.0, None), (8, None, 0.04, None))

# Changes of TINY, and settings of PVM
CASES = {
    "readouts": ({}, {}),
    "readouts of units, two streams": ({"readout": OF_UNITS, **TWO}, STREAMS),
    "two streams": ({"readout": None}, STREAMS),
    "residual, two streams, two threads": ({"readout": None, "unit": "residual"}, {"streams": 2, "threads": 2}),
    "complex residual": ({"readout": None, "unit": "complex_residual", **TWO}, {}),
    "classic, one step, two streams, without momentum": ({"readout": None, "schedule": STILL, **CLASSIC}, STREAMS),
    "by range, context to the output": (
        {"readout": None, "publish": "minmax", "context_to_output": True, **TWO},
        STREAMS,
    ),
    "after a rest": ({"readout": None, "schedule": RESTS, **TWO}, STREAMS),
    "signs of errors": ({"readout": None, "sign_of_error": True}, {}),
    "in float64": ({"readout": None, "lateral_radius": 0, "top_to_all": False}, {"dtype": np.float64}),
}


def main() -> None:
    what, folder, device, *words = sys.argv[1:]
    works = equal, goes_on, diverges, full
    work = next(one for one in works if one.__name__ == what)
    if device == "cpu":
        work(Path(folder), device, *words)
    else:
        _simulated(lambda: work(Path(folder), device, *words))


def _simulated(work: Callable[[], None]) -> None:
    """Do it on a simulated device, which sees no problem."""
    from gpu import pvm as pvm_plan
    from gpu.runtime import blas
    from tests import cudasim
    from tests.cudasim import cublas

    cublas.use()
    blas.Handle._room = lambda handle: 1 << 16
    pvm_plan.FEW = 10  # TINY has more units, most ranks have fewer: the order of sums must not depend on that
    cudasim.seed(Group().rank)
    work()
    assert cudasim.problems() == []


def made(case: str, device: str, ranks: Group | None) -> PVM:
    changes, settings = CASES[case]
    settings = {"threads": 1, "seed": 3, "device": device, **settings}
    return PVM(dataclasses.replace(TINY, **changes), **settings, ranks=ranks and Ranks(ranks))


def equal(folder: Path, device: str, *cases: str) -> None:
    """Steps, runs and what can be asked are those of one process; so is the checkpoint."""
    group = Group()
    steps = 4 if device == "cpu" else 16  # a GPU's come again as graphs
    for number, case in enumerate(cases):
        shared, alone = made(case, device, group), made(case, device, None)
        feed = Scene(steps + 7, shared.streams)
        found, expected = walk(shared, feed, steps), walk(alone, feed, steps)
        found += shared.run(feed, every=3, ahead=2)
        expected += alone.run(feed, every=3, ahead=2)
        assert [one.error.tolist() for one in found] == [one.error.tolist() for one in expected], case
        whole = [one.prediction is not None for one in expected]
        assert [one.prediction is not None for one in found] == whole
        assert_same(_where(found, whole), _where(expected, whole))
        assert shared.prediction().tobytes() == alone.prediction().tobytes(), case
        assert shared.size == alone.size
        assert _followed(shared).prediction().tobytes() == _followed(alone).prediction().tobytes(), case
        _only_its_share(shared, alone, group)
        _same_file(shared, alone, folder / str(number), group)


def _followed(model: PVM) -> PVM:
    """A model with one stream that stands where this one's first stream stands."""
    one = single(model, readouts=False)
    follow(one, model)
    return one


def _where(seen: list, flags: list) -> list:
    return [one for one, flag in zip(seen, flags, strict=True) if flag]


def _only_its_share(shared: PVM, alone: PVM, group: Group) -> None:
    """A rank holds the parameters, tapes and signals of its own units, and nothing of the others' but the world."""
    whole = alone.arrays()
    own = {name: array.size for name, array in shared.arrays().items() if not name.startswith(("world", "readout"))}
    rest = {"low", "high"} & own.keys()  # as large as the world
    sums = np.zeros((group.size, len(own)), np.int64)
    sums[group.rank] = list(own.values())
    group.join(sums.reshape(-1), [len(own)] * group.size)
    for name, size in zip(own, sums.sum(axis=0), strict=True):
        assert size == whole[name].size * (group.size if name in rest else 1), name


def _same_file(shared: PVM, alone: PVM, folder: Path, group: Group) -> None:
    shared.save(folder / "shared", {"of": "both"})
    alone.save(folder / f"alone {group.rank}", {"of": "both"})
    for path in (folder / f"alone {group.rank}").iterdir():
        assert (folder / "shared" / path.name).read_bytes() == path.read_bytes(), path.name


def goes_on(folder: Path, device: str, case: str, until: str) -> None:
    """A checkpoint goes on on these ranks, whoever wrote it, to the tick `until`; at the start there may be none."""
    group = Group()
    if not folder.exists() or not any(folder.iterdir()):
        group.greatest(0)  # waits for all ranks
        model = made(case, device, group)
    else:
        model, facts = PVM.load(folder, device=device, threads=1, ranks=Ranks(group))
        assert facts == {"ranks": "any"}
    walk(model, Scene(int(until), model.streams))
    model.save(folder, {"ranks": "any"})


def diverges(folder: Path, device: str) -> None:
    """All ranks say the same of the same tick, and neither step nor save any more."""
    group = Group()
    said, wild = [], dataclasses.replace(BLIND, schedule=((0, None, 1e30, 0.3),))
    for ranks in (Ranks(group), None):
        model = PVM(wild, device=device, threads=1, ranks=ranks)
        try:
            walk(model, Scene(20))
        except FloatingPointError as failure:
            said.append((str(failure), model.torn, model.tick))
        for call, given in ((model.step, Scene(1)[0].image[0]), (model.save, folder)):
            try:
                call(given)
            except ValueError as failure:
                assert "load the last checkpoint" in str(failure)
            else:
                raise AssertionError("a torn model went on")
    assert len(said) == 2 and said[0] == said[1], said


def full(folder: Path, device: str) -> None:
    """No room on the disk of rank 0: all say so, no model has changed, and the checkpoint before is there."""
    import errno
    import os

    from hybrid.mpi import pvm
    from hybrid.storage import safetensors

    group = Group()
    model, feed = PVM(BLIND, device=device, threads=1, ranks=Ranks(group)), Scene(8)
    walk(model, feed, 3)
    model.save(folder)
    names = sorted(path.name for path in folder.iterdir())
    pvm.PIECE = 1000  # many pieces: the disk is full in the middle of them
    real = safetensors.pieces

    def short(*arguments):
        for number, piece in enumerate(real(*arguments)):
            if number == 5:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield piece

    safetensors.pieces = short if group.rank == 0 else real
    walk(model, feed, 4)
    before = bytes_of(model)
    try:
        model.save(folder)
    except OSError as failure:
        assert "No space left on device: it needs" in str(failure), failure
    else:
        raise AssertionError("a save without room was none")
    assert bytes_of(model) == before and model.torn is None
    assert sorted(path.name for path in folder.iterdir()) == names
    group.greatest(0)
    safetensors.pieces = real
    walk(model, feed)
    alone = PVM(BLIND, device=device, threads=1)
    walk(alone, feed)
    _same_file(model, alone, folder / "both", group)


if __name__ == "__main__":
    main()
