"""Which tests `make test` leaves to `make test-all`."""

import ast
from pathlib import Path

from tests import tiers

ROOT = Path(__file__).parents[1]


def test_what_is_left_to_later_is_there():
    """A function that was renamed would silently be run at once again."""
    for name in sorted(tiers.named()):
        path, _, function = name.partition("::")
        nodes = ast.walk(ast.parse((ROOT / path).read_text()))
        functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        assert function.rpartition("::")[2] in functions, name
