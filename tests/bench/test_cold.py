"""The time to the first tick is taken in a process of its own, and told kernel by kernel."""

import types

from bench import cold


def event(name):
    def function():
        pass

    function.__module__, function.__name__ = "cpu.rows", name
    return types.SimpleNamespace(data={"dispatcher": types.SimpleNamespace(py_func=function)})


def test_seconds_of_a_function_are_without_those_it_calls(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(cold.time, "perf_counter", lambda: now[0])
    clock = cold._clock(object)
    clock.on_start(event("outer"))
    for _ in range(2):
        now[0] += 1
        clock.on_start(event("inner"))
        now[0] += 5
        clock.on_end(event("inner"))
    clock.on_end(event("outer"))
    assert clock.seconds == {"cpu.rows.outer": 2, "cpu.rows.inner": 10}
    assert clock.counts == {"cpu.rows.outer": 1, "cpu.rows.inner": 2}


def test_the_table_shows_both_starts_and_the_kernels_of_the_first(capsys):
    one = {
        "seconds": 9.0,
        "processor_seconds": 9.5,
        "compiling": 8.0,
        "functions": 3,
        "kernels": [("cpu.rows._add", 2, 1.5)],
    }
    cold._show("language", [one], [one | {"seconds": 1.0, "functions": 0, "compiling": 0.0}])
    shown = capsys.readouterr().out
    assert "language   cold: first tick after  9.00 s" in shown and "language   warm: first tick after  1.00 s" in shown
    assert shown.count("cpu.rows._add") == 1 and "  1.50 s  2 x" in shown
