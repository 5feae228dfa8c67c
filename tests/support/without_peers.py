"""The head of a program that finds none of the peers: its commands say what they do not measure."""

# None in sys.modules would be taken by SciPy for a module.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("torch", "jax", "fasttext", "gensim", "sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from bench.__main__ import main
"""
