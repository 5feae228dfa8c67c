"""Queues of the CPU in one thread: work is put off until somebody waits, and done in a legal order drawn from a seed.

What the simulated driver of tests/cudasim is to streams, this is to the worker threads of cpu/device.py: a stage that waits for
too little runs too early in some order, and the same seed gives the same order again.
"""

import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numba

import cpu.device


class Order:
    """The work of all queues that is not done yet.

    rng    draws what is done next
    eager  how likely a piece of work is done whenever another one is put on a queue
    """

    def __init__(self, rng: random.Random, eager: float):
        self._rng, self._eager = rng, eager
        self._queues: list[Queue] = []

    def queue(self, name: str, threads: int) -> "Queue":
        """Another queue."""
        self._queues = [queue for queue in self._queues if queue.left]
        return Queue(self, name, cpu.device.check_threads(threads))

    def put(self, queue: "Queue") -> None:
        """A queue has got more work; some time passes."""
        if queue not in self._queues:
            self._queues.append(queue)
        while self._rng.random() < self._eager and self.step():
            pass

    def step(self) -> bool:
        """Do one piece of work that waits for no other; False where there is none."""
        ready = [queue for queue in self._queues if queue.ready]
        if ready:
            self._rng.choice(ready).do()
        return bool(ready)


class Event:
    """A point on a queue. Who waits for it lets others go on, too."""

    def __init__(self, order: Order, work: Callable[[], Any], after: list[Any]):
        self._order, self.work, self.after = order, work, after
        self.past, self._result = False, None
        self.failure: BaseException | None = None

    def wait(self) -> Any:
        """Let work be done until this is; its result, or what it raised."""
        while not self.past:
            if not self._order.step():
                raise RuntimeError("queues: work waits for each other")
        if self.failure:
            raise self.failure
        return self._result

    def do(self) -> None:
        """Do the work now."""
        try:
            for event in self.after:
                event.wait()
            self._result = self.work()
        except BaseException as failure:
            self.failure = failure
        self.past = True


class Queue:
    """As cpu.device.Queue: in order, and no more work after a failure."""

    apart = True

    def __init__(self, order: Order, name: str, threads: int):
        self.name, self.left = name, deque[Event]()
        self._order, self._threads = order, threads
        self._failure: BaseException | None = None

    def run(self, work: Any, *arguments: Any, after: Any = (), note: Any = None) -> Event:
        """Put work on the queue."""

        def timed() -> Any:
            if self._failure:
                raise self._failure
            numba.set_num_threads(self._threads)
            return cpu.device._timed(note, work, arguments)

        event = Event(self._order, timed, list(after))
        self.left.append(event)
        self._order.put(self)
        return event

    @property
    def ready(self) -> bool:
        """Whether its next piece of work waits for no other."""
        return bool(self.left) and all(getattr(event, "past", True) for event in self.left[0].after)

    def do(self) -> None:
        """Do the next piece of work."""
        event = self.left.popleft()
        event.do()
        self._failure = self._failure or event.failure

    def close(self) -> None:
        """Do what was put on the queue."""
        while self.left:
            self.left[-1].wait()


@contextlib.contextmanager
def ordered(seed: str) -> Iterator[None]:
    """A context in which the CPU's queues are of an order drawn from a seed: one for each thread that makes some."""
    orders: dict[str, Order] = {}

    def queue(device: Any, name: str, threads: int, cores: Any = None) -> Queue:
        thread = threading.current_thread().name
        if thread not in orders:
            rng = random.Random(f"{seed} {thread}")
            orders[thread] = Order(rng, rng.choice([0.0, 0.1, 0.5, 0.9]))
        return orders[thread].queue(name, threads)

    with mock.patch.object(cpu.device.Device, "queue", queue):
        yield
