import errno
import gc
import io
import os
import sys

import pytest

from hybrid import console


class Terminal(io.StringIO):
    def isatty(self):
        return True


def stderr(monkeypatch, kind=io.StringIO):
    """What stands for stderr from here on; pytest puts its own there when a test begins."""
    file = kind()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(console, "quiet", False)
    return file


def work():
    with console.bar(40, "language", "ticks", initial=10) as bar:
        for tick in range(30):
            bar.update()
            if tick == 14:
                bar.set_postfix({"perplexity": "42.5"})


def test_a_log_gets_whole_lines_now_and_then(monkeypatch):
    log = stderr(monkeypatch)
    work()
    lines = log.getvalue().splitlines()
    assert "\r" not in log.getvalue() and len(lines) == 3
    assert lines[0].startswith("language: 25 %, 10 of 40 ticks")
    assert lines[1].startswith("language: 62 %, 25 of 40 ticks") and "perplexity=42.5" in lines[1]
    assert lines[2].startswith("language: 100 %, 40 of 40 ticks")


def test_a_terminal_gets_a_bar_on_one_line(monkeypatch):
    terminal = stderr(monkeypatch, Terminal)
    work()
    assert terminal.getvalue().count("\n") == 1 and "\r" in terminal.getvalue()


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_quiet_is_neither_notes_nor_a_bar(monkeypatch, kind):
    file = stderr(monkeypatch, kind)
    console.note("the device is the CPU")
    assert file.getvalue() == "hybrid: the device is the CPU\n"
    monkeypatch.setattr(console, "quiet", True)
    work()
    console.note("again")
    assert list(console.bar(2, "film", "frames", items="ab")) == ["a", "b"]
    assert file.getvalue().count("\n") == 1


EVIL, HARMLESS = "\x1b]0;title\x07 a\rb\x9b31m\tä\n", "\\x1b]0;title\\x07 a\\x0db\\x9b31m\tä\n"


@pytest.mark.parametrize("tell", [console.note, console.say])
def test_what_controls_a_terminal_is_shown_in_notes(tell, monkeypatch):
    log = stderr(monkeypatch)
    tell(EVIL)
    assert log.getvalue() == f"hybrid: {HARMLESS}\n"


@pytest.mark.parametrize(("kind", "seen"), [(Terminal, HARMLESS), (io.StringIO, EVIL)])
def test_a_terminal_is_shown_what_controls_it_and_a_pipe_gets_every_byte(kind, seen, monkeypatch):
    out = kind()
    monkeypatch.setattr(sys, "stdout", out)
    with console.guarded():
        print(EVIL, end="")
        sys.stdout.flush()
        assert sys.stdout.isatty() == (kind is Terminal)
    assert out.getvalue() == seen and sys.stdout is out


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class FullTerminal(Full, Terminal):
    pass


@pytest.mark.parametrize("kind", [Full, FullTerminal])
def test_work_goes_on_where_stderr_cannot_be_written(monkeypatch, kind):
    stderr(monkeypatch, kind)
    for tell in (console.note, console.say, console.tell):
        tell("unheard")
    work()
    assert list(console.bar(2, "film", "frames", items="ab")) == ["a", "b"]


def test_an_error_of_printing_names_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    with console.guarded():
        with pytest.raises(OSError, match="No space left on device: 'standard output'"):
            print("text")
        with pytest.raises(BrokenPipeError, match="standard output"):
            sys.stdout.flush()


def test_streams_that_were_closed_before_are_the_null_device(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    console.stand_in()
    opened = sys.stdout, sys.stderr
    for file in opened:
        print("text", file=file, flush=True)
        assert file.name == os.devnull
        file.close()
    console.stand_in()
    assert (sys.stdout, sys.stderr) == opened, "what is there stays"


class Base:
    """What a listener of Numba's events is derived from."""


@pytest.fixture
def clock(monkeypatch):
    """The time that the listener reads: a list of one number."""
    now = [0.0]
    monkeypatch.setattr(console.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(console, "quiet", False)
    return now


def compiled(listener, clock, seconds, within=()):
    """A function takes so long to compile, after those that it calls."""
    listener.on_start(None)
    for other in within:
        compiled(listener, clock, other)
    clock[0] += seconds
    listener.on_end(None)


def test_a_second_of_compiling_is_told_once(clock, capsys):
    listener = console._compiling(Base)
    compiled(listener, clock, 0.3, within=(0.3, 0.3))
    clock[0] += 100  # between two kernels
    assert capsys.readouterr().err == ""
    compiled(listener, clock, 0.05, within=(0.2, 5.0))
    compiled(listener, clock, 5.0)
    assert capsys.readouterr().err.count("compiling kernels") == 1


@pytest.mark.parametrize("was", [True, False])
def test_the_garbage_collector_waits_and_is_then_as_it_was(clock, was):
    listener = console._compiling(Base)
    (gc.enable if was else gc.disable)()
    try:
        listener.on_start(None)
        listener.on_start(None)
        listener.on_end(None)
        assert not gc.isenabled()
        listener.on_end(None)
        assert gc.isenabled() == was
    finally:
        gc.enable()
