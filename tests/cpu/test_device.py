import threading

import numpy as np
import pytest

from cpu.device import Device


@pytest.fixture
def queues():
    device = Device()
    made = [device.queue("first", 1), device.queue("second", 2)]
    yield made
    for queue in made:
        queue.close()


def test_a_queue_works_in_order_in_one_thread_of_its_own(queues):
    seen = []

    def note(number):
        seen.append((number, threading.current_thread().name))

    events = [queues[0].run(note, number) for number in range(50)]
    for event in events:
        event.wait()
    assert [number for number, _ in seen] == list(range(50))
    assert {name for _, name in seen} == {"first_0"}


def test_work_waits_for_events_of_another_queue(queues):
    gate, seen = threading.Event(), []
    first = queues[0].run(lambda: (gate.wait(10), seen.append("first")))
    second = queues[1].run(lambda: seen.append("second"), after=[first])
    assert seen == []
    gate.set()
    second.wait()
    assert seen == ["first", "second"]


def test_a_failed_queue_does_no_more_work_and_fails_those_who_wait(queues):
    seen = []

    def fail():
        raise FloatingPointError("row 3")

    failed = queues[0].run(fail)
    later = queues[0].run(seen.append, "same queue")
    waiting = queues[1].run(seen.append, "other queue", after=[failed])
    for event in (failed, later, waiting):
        with pytest.raises(FloatingPointError, match="row 3"):
            event.wait()
    assert seen == []


def test_copy_moves_between_two_arrays_and_leaves_one_array_alone(queues):
    source, target = np.arange(3), np.zeros(3, int)
    queues[0].run(Device().copy, target, source).wait()
    assert target.tolist() == [0, 1, 2]
    queues[0].run(Device().copy, source, source).wait()
    assert source.tolist() == [0, 1, 2]


@pytest.mark.parametrize("threads", [0, -1, 10_000])
def test_threads_out_of_range_are_refused(threads):
    with pytest.raises(ValueError, match=f"threads: found {threads}, expected 1 to"):
        Device().queue("q", threads)
