import subprocess
import sys

import pytest

import hybrid.readout


def test_importing_the_package_needs_no_numba():
    script = "import sys, hybrid, hybrid.readout; assert not {'numba', 'scipy', 'annoy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match=r"module .hybrid\.readout. has no attribute 'Oracle'"):
        hybrid.readout.Oracle  # noqa: B018
