"""The sources of hybrid/, cpu/ and gpu/ run nothing of what they read, unpickle and unpack nothing, but what is named here."""

import ast

from tests.support.imports import ROOT

RUNS = {"eval", "exec", "compile", "__import__"}  # built-in functions
PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
LOADS = {"load", "loads", "Unpickler", "open"}  # of theirs
CALLS = set("os.system os.popen os.execv os.execvp os.spawnv runpy.run_path runpy.run_module torch.load".split())
CALLS |= {"yaml.load", "subprocess.getoutput", "subprocess.getstatusoutput"}
METHODS = {"exec_module", "extractall", "extract"}

# What is allowed, by file: as often as it is there, and why.
ALLOWED = {
    ("hybrid/mpi/group.py", "pickle.loads"): (2, "what ranks of this very run tell each other"),
    ("hybrid/cli/commands/launch.py", "os.execv"): (1, "the mpiexec that starts the ranks of a command"),
    ("hybrid/trunk/torch.py", "exec_module"): (1, "--module FILE.py:FUNCTION, a program of the user's"),
    ("gpu/install.py", "extractall"): (1, "PyCUDA's source from the package index, by tarfile's filter 'data'"),
}


def dangers(source: str):
    """The calls in a source that run, unpickle or unpack, by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in PICKLES | {"os", "runpy"}:
            yield from (f"{node.module}.{one.name}" for one in node.names if _danger(f"{node.module}.{one.name}"))
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        if name in RUNS or last in METHODS or _danger(name):
            yield last if last in METHODS else name
        for keyword in node.keywords:
            if keyword.arg in ("shell", "allow_pickle") and ast.unparse(keyword.value) != "False":
                yield f"{keyword.arg}={ast.unparse(keyword.value)}"
        if name in ("np.load", "numpy.load") and "allow_pickle" not in {keyword.arg for keyword in node.keywords}:
            yield f"{name} without allow_pickle=False"


def _danger(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return name in CALLS or (module in PICKLES and last in LOADS)


def test_nothing_that_is_read_is_run_but_what_is_named_here():
    found: dict[tuple[str, str], int] = {}
    for package in ("hybrid", "cpu", "gpu"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in dangers(path.read_text()):
                key = (path.relative_to(ROOT).as_posix(), name)
                found[key] = found.get(key, 0) + 1
    assert found == {key: times for key, (times, _) in ALLOWED.items()}
