"""The command `hybrid` and its error reporting: one line (more from compilers), exit code 2, no traceback."""

import os
import sys

from .. import console, machine
from . import commands, ranks

USER_ERRORS = (ValueError, IndexError, OSError, FloatingPointError, MemoryError)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line; returns the exit code: 0 done, 1 unusable (doctor), 2 error, 128 + n stopped by signal n."""
    console.stand_in()
    try:
        return ranks.end(*_done(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as stop:  # from argparse, on all ranks; one prints the reason, and the others wait for it
        ranks.end(int(stop.code or 0))
        raise
    except Exception:
        ranks.fail()
        raise
    finally:
        console.leave()


def _done(arguments: list[str]) -> tuple[int, str]:
    """Returns the exit code, and the error message or ""."""
    try:
        given = ranks.read(arguments)
        console.quiet = given.quiet
        machine.refuse_little_memory()
        if given.command != "launch":
            ranks.begin(given, ranks.this_rank())
        _threads(getattr(given, "threads", None))
        with console.guarded():
            code = commands.load(given.command).run(given)
            sys.stdout.flush()  # here, where a failure is reported
        return code, ""
    except BrokenPipeError:  # the reader of the output, such as `head`, has exited
        console.drop(sys.stdout)
        return 141, ""  # 128 + SIGPIPE
    except USER_ERRORS as error:
        if isinstance(error, OSError) and error.filename == console.OUTPUT:
            console.drop(sys.stdout)
        if "--debug" in arguments:
            raise
        shown = console.shown if getattr(error, "SEVERAL_LINES", False) else console.line
        return 2, f"error: {shown(_message(error))}"
    except RuntimeError as error:
        if "can't start new thread" not in str(error) or "--debug" in arguments:
            raise
        return 2, "error: the system starts no more threads; lower --threads, or raise ulimit -u or -v"
    except KeyboardInterrupt:
        return 130, "interrupted"


def _threads(threads: int | None) -> None:
    """Sets Numba's maximum number of threads, which it reads once, at import."""
    most = max(64, 4 * (os.cpu_count() or 1))
    if threads and threads > most:  # thread runtimes abort if they cannot start all
        raise ValueError(f"--threads: found {threads:,}, expected at most {most}")
    if threads and "numba" not in sys.modules:
        os.environ["NUMBA_NUM_THREADS"] = str(threads)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, MemoryError):
        own = ";" in str(error)  # ours has a remedy; NumPy's has none
        remedy = "" if own else "; lower the sizes of the model, --batch or the number of classes (--min-count)"
        return f"out of memory{': ' * bool(str(error))}{error}{remedy}"
    return f"{error}{notes}"
