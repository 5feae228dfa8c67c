"""The build with sanitizers sees what is planted: a block of the heap that is read after it was freed, a sum beyond int."""

import shutil
import subprocess
import sys

import pytest

from tests.cudasim import sanitized

FAULTS = """
extern "C" int freed(int n)
{
    volatile char* volatile block = new char[8];
    block[0] = 1;
    if (n) delete[] block;
    return block[0];
}
extern "C" int sum(int n) { return 2147483647 + n; }
"""
CALL = """
import ctypes, sys, pathlib
from tests import cudasim
library = ctypes.CDLL(str(cudasim.build("faults.so", [pathlib.Path(sys.argv[1])])))
print(getattr(library, sys.argv[2])(int(sys.argv[3])))
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
@pytest.mark.parametrize(
    ("function", "number", "said"),
    [("freed", 0, ""), ("freed", 1, "heap-use-after-free"), ("sum", 0, ""), ("sum", 1, "signed integer overflow")],
)
def test_a_planted_fault_ends_the_process_and_is_named(tmp_path, function, number, said):
    (tmp_path / "faults.cpp").write_text(FAULTS)
    command = [sys.executable, "-c", CALL, str(tmp_path / "faults.cpp"), function, str(number)]
    done = subprocess.run(command, env=sanitized.environment(), capture_output=True, text=True)
    assert said in done.stderr and bool(done.returncode) == bool(said), done.stderr
