"""The choice between overlapped stages and stages in turn follows what was measured."""

import pytest

from cpu.device import Device
from hybrid.pace import MEASURED, SKIPPED, Pace
from hybrid.trace import Trace


class Schedule:
    """As much of a schedule as Pace sees."""

    def __init__(self):
        self.trace, self.seconds, self.queues, self.waited = Trace(), 0.0, None, 0

    def wait(self):
        self.waited += 1


def measured(in_turn, overlapped):
    pace, schedule = Pace(Device(), Device(), 2, None), Schedule()
    for seconds in (in_turn, overlapped):
        for tick in range(SKIPPED + MEASURED):
            assert pace.measuring
            schedule.seconds = 100.0 if tick < SKIPPED else seconds  # the first ticks of a way must not count
            pace.note(schedule)
    pace.close()
    return pace, schedule


@pytest.mark.parametrize("in_turn, overlapped", [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_is_kept(in_turn, overlapped):
    pace, schedule = measured(in_turn, overlapped)
    assert pace.overlapped == (overlapped < in_turn)
    assert schedule.queues is pace.queues and schedule.waited == 2 and not pace.measuring
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
    pace = Pace(Device(), Device(), 3, True)
    import numba

    assert [pace.queues[name].run(numba.get_num_threads).wait() for name in ("dense", "sparse")] == [1, 2]
    pace.close()
