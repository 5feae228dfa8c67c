"""Importing the package: PyTorch comes with it alone, and its absence is explained."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")


ROOT = Path(__file__).parents[3]


def test_without_pytorch_the_remedy_is_named():
    script = "import sys; sys.modules['torch'] = None; import hybrid, hybrid.readout; import hybrid.torch"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'pip install "hybrid-engine[torch]" installs it' in done.stderr.splitlines()[-1]


def imported(path: Path) -> set[str]:
    """What a module imports when it is imported, by first names."""
    body = ast.parse(path.read_text()).body
    whole = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    parts = {node.module or "" for node in body if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in whole | parts}


def test_no_other_package_imports_pytorch_when_it_is_imported():
    """So that all else works, and begins quickly, without it."""
    own = ROOT / "hybrid" / "torch"
    net = ROOT / "hybrid/trunk/_attention.py"  # a module of PyTorch, which its trunk imports when it is made
    others = set((ROOT / "hybrid").rglob("*.py")) - {net}
    wrong = [path for path in others if path.parent != own and "torch" in imported(path)]
    assert wrong == [] and "torch" in imported(own / "loss.py")
