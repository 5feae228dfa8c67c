"""The choice between overlapped stages and stages in turn follows what was measured."""

import threading

import pytest

from cpu.device import Device
from hybrid.schedule.schedule import MEASURED, SKIPPED, TURNS, Cores
from hybrid.schedule.trace import Trace


class Schedule:
    """As much of a schedule as Cores sees."""

    def __init__(self):
        self.trace, self.seconds, self.queues, self.waited = Trace(), 0.0, None, 0

    def wait(self):
        self.waited += 1


def measured(in_turn, overlapped):
    cores, schedule = Cores(Device(), Device(), 2, None), Schedule()
    for way in TURNS:
        seconds = overlapped if way else in_turn
        for tick in range(SKIPPED + MEASURED):
            assert cores.measuring and cores.overlapped == way
            schedule.seconds = 100.0 if tick < SKIPPED else seconds  # the first ticks of a way must not count
            cores.note(schedule)
    cores.close()
    return cores, schedule


@pytest.mark.parametrize("in_turn, overlapped", [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_is_kept(in_turn, overlapped):
    cores, schedule = measured(in_turn, overlapped)
    assert cores.overlapped == (overlapped < in_turn)
    assert schedule.queues is cores.queues and schedule.waited == len(TURNS) and not cores.measuring
    assert f"{1e3 * in_turn:.2f} ms per step in turn, {1e3 * overlapped:.2f} ms overlapped" in cores.line()


def test_one_thread_has_nothing_to_choose():
    cores = Cores(Device(), Device(), 1, None)
    assert not cores.measuring and cores.queues["dense"] is cores.queues["sparse"]
    with pytest.raises(ValueError, match="overlap: needs at least 2 threads, found 1"):
        Cores(Device(), Device(), 1, True)


def test_threads_are_shared_between_the_queues():
    import numba

    for threads, shares in ((2, [1, 1, 1]), (3, [1, 1, 1]), (4, [1, 2, 1])):  # of 2, the feed's is the caller's own
        cores = Cores(Device(), Device(), threads, True)
        names = ("dense", "sparse", "feed")
        assert [cores.queues[name].run(numba.get_num_threads).wait() for name in names] == shares
        cores.close()


def test_a_spare_thread_makes_the_batches_of_stages_in_turn():
    lines = {1: "one thread learns", 2: "one thread learns, one makes the next batch"}
    for threads, spare in ((1, False), (2, True)):
        cores = Cores(Device(), Device(), threads, False, spare=True)
        assert (cores.queues["feed"] is not cores.queues["sparse"]) == spare and cores.line() == lines[threads]
        assert cores.queues["sparse"].run(threading.get_ident).wait() == threading.get_ident()
        assert (cores.queues["feed"].run(threading.get_ident).wait() != threading.get_ident()) == spare
        cores.close()
