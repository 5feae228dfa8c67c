"""Ctrl-C at a moment that a test chooses."""

import os
import signal
import sys
import threading
import time

import cpu.device
import hybrid.pvm.pipeline
from tests.support.imports import ROOT


class Kills:
    """SIGINT by os.kill, from a thread, just before a piece of work that any CPU queue does."""

    def __init__(self, monkeypatch):
        self.countdown, self.times, self.sent, self.caught = -1, 1, 0, 0
        timed = cpu.device._timed

        def killing(*arguments):
            self.countdown -= 1
            if self.countdown == 0:
                self.send()
            return timed(*arguments)

        for module in (cpu.device, hybrid.pvm.pipeline):  # the latter beside a GPU
            monkeypatch.setattr(module, "_timed", killing)

    def send(self):
        for _ in range(self.times):
            seen = signals_seen()
            thread = threading.Thread(target=self._kill)
            thread.start()
            thread.join()
            self.sent += 1
            for _ in range(100):  # two signals that come at once would be one
                if threading.current_thread() is threading.main_thread() or signals_seen() != seen:
                    break
                time.sleep(1e-3)

    def _kill(self):
        """By os.kill any thread may be the one that gets it, and one that sleeps in a lock is not woken: so two go to main."""
        if self.times == 1:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def during(self, work, after):
        """Do the work, with a signal before its piece number `after`; whether it was interrupted."""
        before, self.countdown = self.sent, after
        try:
            work()
            if self.sent > before:
                time.sleep(60)  # until the signal comes
        except KeyboardInterrupt:
            self.caught += 1
            return True
        finally:
            self.countdown = -1
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return False


def signals_seen():
    """How many signals wait, where they do."""
    handler = signal.getsignal(signal.SIGINT)
    return getattr(getattr(handler, "__self__", None), "_waiting", None)


def drained(ticks):
    return lambda: [None for _ in ticks]


class Lines:
    """Counts the lines of the package that this thread executes within the context; before the lines `at` there is a Ctrl-C."""

    packages = (f"{ROOT}/hybrid/", f"{ROOT}/cpu/")

    def __init__(self, *at: int):
        self.count, self._at = 0, at

    def __enter__(self):
        sys.settrace(self._called)
        return self

    def __exit__(self, *exception: object):
        sys.settrace(None)

    def _called(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(self.packages) else None

    def _line(self, frame, event, argument):
        if event == "line":
            self.count += 1
            if self.count in self._at:
                signal.raise_signal(signal.SIGINT)
        return self._line
