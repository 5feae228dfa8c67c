"""What a process imports and loads once for all that are forked from it: a run then takes half a second, not three.

No kernel runs here, since its threads would not be there after a fork. TBB's begin when Numba loads a parallel kernel, and
begin again in each child.
"""

import contextlib
import functools
import importlib
import pkgutil
import sys
import threading

import tqdm
from numba.core.dispatcher import Dispatcher
from numba.np.ufunc import parallel

import cpu
import hybrid.cli.options
import hybrid.train.runs
from hybrid import settings
from hybrid.settings import MODELS


def load() -> None:
    """Load the code of all kernels that are in the cache."""
    for module in pkgutil.iter_modules(cpu.__path__, "cpu."):
        importlib.import_module(module.name)
    loaded = [module for name, module in sys.modules.items() if name.startswith("cpu.")]
    kernels = {id(one): one for module in loaded for one in vars(module).values()}
    for kernel in kernels.values():
        files = isinstance(kernel, Dispatcher) and getattr(kernel._cache, "_cache_file", None)
        for types, *_ in files._load_index() if files else ():
            kernel.compile(types)


for kind in MODELS.names():
    with contextlib.suppress(ImportError):  # of a model whose package is not installed
        MODELS.load(kind)
settings.entry_points = functools.cache(settings.entry_points)  # a tenth of a run's time
# Locks that all processes would share: the next one would wait for ever for one that was killed with it.
tqdm.tqdm.set_lock(threading.RLock())
parallel._backend_init_process_lock = threading.RLock()
hybrid.cli.options.read(["train", "language"])  # builds the parser, which imports every option's module
load()
