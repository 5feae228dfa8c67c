"""One thread at a time: who comes second is refused by name, and who is inside goes on undisturbed."""

import copy
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hybrid.schedule.guards import Alone
from tests.support.readouts import MAKE

REFUSED = "found a call while another thread's is under way, expected one thread at a time; "


def in_another_thread(work):
    """What the work raised there, None for nothing."""
    with ThreadPoolExecutor(1) as another:
        return another.submit(work).exception()


def enter(alone):
    with alone:
        pass


def test_a_second_thread_is_refused_and_the_first_may_come_again():
    alone = Alone("lamp", "take another")
    with alone:
        failure = in_another_thread(lambda: enter(alone))
        assert isinstance(failure, RuntimeError) and str(failure) == f"lamp: {REFUSED}take another"
        enter(alone)
        assert in_another_thread(lambda: enter(alone))
    assert in_another_thread(lambda: enter(alone)) is None


KINDS = "huffman", "full", "sampled", "neighbours"
HIDDEN, TARGET = np.ones((4, 6), np.float32), np.arange(4, dtype=np.int32)
CALLS = {
    "step": lambda readout: readout.step(np.empty_like(HIDDEN), HIDDEN, TARGET),
    "log_prob": lambda readout: readout.log_prob(HIDDEN, TARGET),
    "scores": lambda readout: readout.scores(HIDDEN),
    "best": lambda readout: readout.best(HIDDEN, 3),
    "copy": copy.deepcopy,
}


@pytest.mark.parametrize("kind, call", sorted({(kind, "step") for kind in KINDS} | {("full", call) for call in CALLS}))
def test_no_call_of_a_readout_enters_while_another_thread_is_inside(kind, call):
    readout = MAKE[kind]()
    CALLS["step"](readout)
    before = [array.copy() for array in readout.parameters().values()]
    with getattr(readout, "readout", readout).alone:
        failure = in_another_thread(lambda: CALLS[call](readout))
    assert isinstance(failure, RuntimeError)
    assert str(failure).endswith(f"readout: {REFUSED}give every thread a readout of its own: copy.deepcopy makes one")
    for array, expected in zip(readout.parameters().values(), before, strict=True):
        np.testing.assert_array_equal(array, expected)
    CALLS[call](readout)


def in_a_process(script, *arguments, layer):
    """What it said, on this layer of Numba's."""
    command, environment = [sys.executable, "-c", script, *arguments], os.environ | {"NUMBA_THREADING_LAYER": layer}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if "No threading layer could be loaded" in done.stderr:
        pytest.skip(f"no {layer} here")
    return done


FORK = """
import os, numpy as np, hybrid
readout = hybrid.FullReadout(40, 6)
given = np.empty((4, 6), np.float32), np.ones((4, 6), np.float32), np.arange(4, dtype=np.int32)
readout.step(*given)
child = os.fork()
if child:
    raise SystemExit(os.waitpid(child, 0)[1])
try:
    readout.step(*given)
    print("stepped")
except RuntimeError as failure:
    print(failure)
"""


WITHIN = """
import os
from tests.support.small_engine import Feed, engine
made = engine(overlap=True)
run = made.run(Feed(9))
next(run)
child = os.fork()
if child:
    code = os.waitpid(child, 0)[1]
    print(len(list(run)), flush=True)
    raise SystemExit(code)
try:
    next(run)
except RuntimeError as failure:
    print(failure)
if not made.torn:
    print(len(list(made.run(Feed(5)))), flush=True)
"""


def test_a_child_does_not_go_on_with_its_parents_run():
    """Its threads are the parent's: it would wait for ever. A run of its own it may begin: nothing was in flight."""
    done = in_a_process(WITHIN, layer="tbb")
    said, *others = [line for line in done.stdout.splitlines() if line and "Unable to join" not in line]  # as TBB says
    assert "run: found a process that was forked within the run, expected" in said, done.stderr
    assert done.returncode == 0 and others == ["4", "8"]


WORKQUEUE = """
from tests.support.small_engine import Feed, engine
print(len(list((made := engine(overlap=None)).run(Feed(9)))), made.cores.line())
next(engine(overlap=True).run(Feed(9)))
"""


def test_stages_overlap_on_no_layer_that_two_threads_must_not_enter():
    done = in_a_process(WORKQUEUE, layer="workqueue")
    assert done.stdout.startswith("9 stages in turn on all threads: found Numba's layer workqueue, which ends")
    assert done.stderr.splitlines()[-1].startswith("ValueError: overlap: found Numba's layer workqueue")


@pytest.mark.parametrize("layer, said", [("omp", "full readout: found a process that was forked"), ("tbb", "stepped")])
def test_a_process_that_was_forked_after_a_step_steps_or_is_refused_and_never_ended(layer, said):
    done = in_a_process(FORK, layer=layer)
    assert done.returncode == 0 and done.stdout.startswith(said), done.stderr
