"""The choice between overlapped stages and stages in turn follows what was measured."""

import os

import pytest

from cpu.device import Device
from hybrid.pace import MEASURED, SKIPPED, TURNS, Pace
from hybrid.trace import Trace


class Schedule:
    """As much of a schedule as Pace sees."""

    def __init__(self):
        self.trace, self.seconds, self.queues, self.waited = Trace(), 0.0, None, 0

    def wait(self):
        self.waited += 1


def measured(in_turn, overlapped):
    pace, schedule = Pace(Device(), Device(), 2, None), Schedule()
    for way in TURNS:
        seconds = overlapped if way else in_turn
        for tick in range(SKIPPED + MEASURED):
            assert pace.measuring and pace.overlapped == way
            schedule.seconds = 100.0 if tick < SKIPPED else seconds  # the first ticks of a way must not count
            pace.note(schedule)
    pace.close()
    return pace, schedule


@pytest.mark.parametrize("in_turn, overlapped", [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_is_kept(in_turn, overlapped):
    pace, schedule = measured(in_turn, overlapped)
    assert pace.overlapped == (overlapped < in_turn)
    assert schedule.queues is pace.queues and schedule.waited == len(TURNS) and not pace.measuring
    assert f"{1e3 * in_turn:.2f} ms a tick in turn, {1e3 * overlapped:.2f} ms overlapped" in pace.line()


def test_a_choice_that_was_made_is_not_measured():
    for overlap in (True, False):
        pace = Pace(Device(), Device(), 2, overlap)
        assert not pace.measuring and pace.overlapped == overlap
        pace.close()


def test_one_thread_has_nothing_to_choose():
    pace = Pace(Device(), Device(), 1, None)
    assert not pace.measuring and pace.queues["dense"] is pace.queues["sparse"]
    with pytest.raises(ValueError, match="overlap: needs at least 2 threads, found 1"):
        Pace(Device(), Device(), 1, True)


def test_threads_are_shared_between_the_queues():
    import numba

    for threads, shares in ((2, [1, 1, 1]), (3, [1, 1, 1]), (4, [1, 2, 1])):  # of 2, the feed's is the caller's own
        pace = Pace(Device(), Device(), threads, True)
        names = ("dense", "sparse", "feed")
        assert [pace.queues[name].run(numba.get_num_threads).wait() for name in names] == shares
        pace.close()


def test_pinned_queues_keep_to_cores_of_their_own():
    cores = os.sched_getaffinity(0)
    pace = Pace(Device(), Device(), 2, True, pin=True)
    found = [pace.queues[name].run(os.sched_getaffinity, 0).wait() for name in ("dense", "sparse")]
    pace.close()
    if len(cores) > 1:
        assert len(found[0]) == len(found[1]) == 1 and not found[0] & found[1]
    assert os.sched_getaffinity(0) == cores  # the caller's own are as they were
