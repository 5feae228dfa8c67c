"""The schedule is a floor under engine, readouts and PVM: it knows none of them."""

from tests.support.imports import graph


def test_the_schedule_stands_on_nothing_that_stands_on_it():
    edges = graph("hybrid", within_functions=True)
    below = {target for name, targets in edges.items() if name.startswith("hybrid.schedule") for target in targets}
    above = {name for name in below if not name.startswith("hybrid.schedule.")}
    assert above == {"hybrid.check", "hybrid.storage.files"}  # of options; in which a trace is written
    engine = {target for name, targets in edges.items() if name.startswith("hybrid.engine") for target in targets}
    assert not [name for name in engine if name.startswith("hybrid.mpi")]
