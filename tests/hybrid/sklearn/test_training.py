"""What all estimators do with their arguments, and how the package is imported."""

import subprocess
import sys

import joblib
import numpy as np
import pytest

from hybrid.processors import available
from hybrid.sklearn import training


def test_n_jobs_are_threads():
    assert training.threads(None) == training.threads(1) == 1
    assert training.threads(-1) == available() and training.threads(10**6) == available()
    with joblib.parallel_config(n_jobs=2):
        assert training.threads(None) == min(2, available())


def test_a_random_state_is_a_seed_and_goes_on():
    state = np.random.RandomState(0)
    assert training.seed(0) == training.seed(np.random.RandomState(0)) == training.seed(state) != training.seed(state)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        training.seed("some")


def test_without_scikit_learn_the_remedy_is_told():
    script = "import sys, hybrid; hybrid.Engine, hybrid.TreeReadout; assert 'sklearn' not in sys.modules;"
    script += "sys.modules['sklearn'] = None; import hybrid.sklearn"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode and 'pip install "hybrid-engine[sklearn]"' in done.stderr.splitlines()[-1]
