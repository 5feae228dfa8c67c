"""Mutants of CUDA kernels: small changes of tokens, outside comments, strings, preprocessor lines and assembly."""

import functools
import re
from collections.abc import Iterator

from tests.mutants.mutant import Mutant, numbered
from tests.mutants.python import LARGE

# The formatter leaves white space around operators of two operands only: brackets of templates and pointers have none.
SWAPS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " / ": " * ",
    " % ": " / ",
    " += ": " -= ",
    " -= ": " += ",
    " *= ": " += ",
    " && ": " || ",
    " || ": " && ",
    " >> ": " << ",
    " << ": " >> ",
    " & ": " | ",
    " | ": " & ",
}
TOKEN = re.compile(
    r"(?P<swap>" + "|".join(re.escape(token) for token in sorted(SWAPS, key=len, reverse=True)) + r")"
    r"|(?P<barrier>\b(__syncthreads|__syncwarp)\([^()]*\);)"
    r"|(?P<number>(?<![\w.])\d+(\.\d+)?f?\b(?![.\w]))"
)
# Neither comments nor texts, nor lines for the preprocessor and what follows them; a bound of launches changes no result.
APART = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(\\.|[^"\\\n])*"|^[ \t]*#(\\\n|[^\n])*|__launch_bounds__\([^)]*\)|static_assert\([^;]*;',
    re.S | re.M,
)
FUNCTION = re.compile(r"^(?:[A-Za-z_].*?\b)(\w+)\(", re.M)


def mutants(path: str, text: str) -> list[Mutant]:
    """All mutants of a file."""
    return numbered(_found(path, text))


def _found(path: str, text: str) -> Iterator[Mutant]:
    bare = APART.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in TOKEN.finditer(bare):
        at = match.start()
        row = text.count("\n", 0, at)
        line = text.splitlines()[row].strip()
        for kind, put in _changes(match):
            plant = functools.partial(_plant, at=at, old=match[0], new=put)
            yield Mutant(path, _where(bare, at), kind, line, 0, (row, at), plant)


def _changes(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    token = match[0]
    if match["swap"]:
        yield f"{token.strip()} to {SWAPS[token].strip()}", SWAPS[token]
    elif match["barrier"]:
        yield "barrier dropped", ";"
    else:
        digits, suffix = token.rstrip("f"), "f" * token.endswith("f")
        if float(digits) >= LARGE:
            return
        for step in (1, -1):
            changed = float(digits) + step if "." in digits else int(digits) + step
            yield f"{token} to {changed}", f"{changed}{suffix}" if changed >= 0 else f"({changed}{suffix})"


def _plant(text: str, at: int, old: str, new: str) -> str:
    assert text[at : at + len(old)] == old
    return text[:at] + new + text[at + len(old) :]


def _where(bare: str, at: int) -> str:
    """The function that the place is in: the last that began at the left margin."""
    last = ""
    for match in FUNCTION.finditer(bare, 0, at):
        last = match[1]
    return last
