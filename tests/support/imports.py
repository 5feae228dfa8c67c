"""Which module of the repository imports which, read from the sources, and the circles among them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
Graph = dict[str, set[str]]


def modules(package: str, root: Path = ROOT) -> dict[str, Path]:
    """The modules of a package by name; a package's own name is its __init__."""
    paths = sorted((root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def graph(*packages: str, within_functions: bool, root: Path = ROOT) -> Graph:
    """The modules of the same packages that each module imports.

    within_functions  whether imports in the bodies of functions count; those for type checkers alone never do. That a module's
                      package is imported before it is no edge: every package that offers names of its modules would be a circle
    """
    found = {name: path for package in packages for name, path in modules(package, root).items()}
    edges: Graph = {}
    for name, path in found.items():
        own = name if path.name == "__init__.py" else name.rpartition(".")[0]
        statements = _imports(ast.parse(path.read_text()).body, within_functions)
        targets = (target for statement in statements for target in _targets(statement, own, found))
        edges[name] = {target for target in targets if target != name}
    return edges


def circles(edges: Graph) -> list[list[str]]:
    """The sets of two or more modules that all reach each other, each sorted (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(edges[name]):
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return sorted(found)


def _imports(body: list[ast.stmt], within_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not within_functions:
            continue
        elif not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)):
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(statement, block, []), within_functions)


def _targets(statement: ast.Import | ast.ImportFrom, own: str, known: dict[str, Path]) -> Iterator[str]:
    """The known modules that a statement in a module of package `own` imports."""
    if isinstance(statement, ast.Import):
        names = [(alias.name, "") for alias in statement.names]
    else:
        above = own.split(".")[: len(own.split(".")) - statement.level + 1] if statement.level else []
        module = ".".join([*above, *([statement.module] if statement.module else [])])
        names = [(module, alias.name) for alias in statement.names]
    for module, attribute in names:
        inner = f"{module}.{attribute}"
        if inner in known:
            yield inner
        elif module in known:
            yield module
