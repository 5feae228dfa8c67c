"""No file is so long that nobody reads it whole."""

from tests.support.imports import ROOT

MOST_LINES = 800
SOURCES = ("hybrid", "cpu", "gpu", "bench", "examples", "tests")
ENDINGS = {".py", ".cu", ".cuh", ".cpp", ".h", ".html"}


def test_no_file_is_long():
    paths = [path for source in SOURCES for path in (ROOT / source).rglob("*") if path.suffix in ENDINGS]
    assert len(paths) > 100
    long = {path.relative_to(ROOT).as_posix() for path in paths if path.read_bytes().count(b"\n") > MOST_LINES}
    assert long == set(), f"files over {MOST_LINES} lines"
