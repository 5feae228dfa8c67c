"""What all estimators do with their arguments, and how the package is imported."""

import subprocess
import sys

import joblib
import numpy as np
import pytest

from hybrid.machine import available
from hybrid.sklearn import base


def test_n_jobs_are_threads():
    assert base.threads_of(None) == base.threads_of(1) == 1
    assert base.threads_of(-1) == available() and base.threads_of(10**6) == available()
    with joblib.parallel_config(n_jobs=2):
        assert base.threads_of(None) == min(2, available())


def test_a_random_state_is_a_seed_and_goes_on():
    state = np.random.RandomState(0)
    assert base.seed_of(0) == base.seed_of(np.random.RandomState(0)) == base.seed_of(state) != base.seed_of(state)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        base.seed_of("some")


def test_without_scikit_learn_the_remedy_is_told():
    script = "import sys, hybrid; hybrid.Engine, hybrid.TreeReadout; assert 'sklearn' not in sys.modules;"
    script += "sys.modules['sklearn'] = None; import hybrid.sklearn"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode and 'pip install "hybrid-engine[sklearn]"' in done.stderr.splitlines()[-1]
