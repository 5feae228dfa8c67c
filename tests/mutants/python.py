"""Mutants of Python: the operators of cosmic-ray, at the places where a fault would be one of behaviour."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from tests.mutants.mutant import Mutant, numbered

# Of the many replacements of one operator by another those that leave an expression of the same types: `+` for `<<` of
# floats is found by any test that comes by, and would only raise the score.
KINDS = [
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in (
            *("Add_Sub", "Sub_Add", "Mul_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
            *("RShift_LShift", "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitAnd"),
        )
    ),
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in (
            *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
            *("Is_IsNot", "IsNot_Is"),
        )
    ),
    *(f"ReplaceUnaryOperator_{pair}" for pair in ("USub_UAdd", "Delete_Invert", "Delete_Not")),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    *("RemoveDecorator", "ZeroIterationForLoop"),
]

SUITS: dict[str, tuple[str, ...]] = {  # kinds of operators, by the type of node that parso gives them
    "operator": ("ReplaceBinary",),
    "comparison": ("ReplaceComparison",),
    "factor": ("ReplaceUnary",),
    "not_test": ("ReplaceUnary",),
    "keyword": ("ReplaceTrue", "ReplaceFalse", "ReplaceAnd", "ReplaceOr", "ReplaceBreak", "ReplaceContinue"),
    "if_stmt": ("AddNot",),
    "while_stmt": ("AddNot",),
    "assert_stmt": ("AddNot",),  # not planted, see `_tells`, but counted as cosmic-ray does
    "test": ("AddNot",),
    "except_clause": ("ExceptionReplacer",),
    "number": ("NumberReplacer",),
    "decorator": ("RemoveDecorator",),
    "for_stmt": ("ZeroIteration",),
}

LARGE = 1000  # from here on a number is a size, a limit or a unit, and one more of it no fault that shows
LOGS = {"warnings", "logging", "log", "logger"}

# Decorators that say how a function is compiled or kept, or tell only a checker of types: without them values are the same.
HOW = re.compile(r"@\s*(functools\.)?(cache|lru_cache|wraps)\b|@\s*(launched|called|inlined|overload|final|override)\b")


def mutants(path: str, text: str) -> list[Mutant]:
    """All mutants of a file."""
    return numbered(_found(path, text))


def _found(path: str, text: str) -> Iterator[Mutant]:
    lines = text.splitlines()
    seen: Counter[str] = Counter()
    for node, skipped in _walk(parso.parse(text)):
        for kind, operator in _operators(node.type):
            for start, _ in operator.mutation_positions(node):
                occurrence = seen[kind]
                seen[kind] += 1
                if kind == "ExceptionReplacer" and "." in node.children[1].get_code():
                    continue  # cosmic-ray replaces plain names alone
                if skipped or (kind.endswith("BitOr_BitAnd") and not _where(node)):  # a union of types, at the top
                    continue
                plant = functools.partial(_plant, kind=kind, occurrence=occurrence)
                line = lines[start[0] - 1].strip()
                yield Mutant(path, _where(node), kind, line, 0, start, plant)


def _plant(text: str, kind: str, occurrence: int) -> str:
    changed: str | None = mutate_code(text, _operator(kind), occurrence)
    assert changed is not None, f"{kind} has no occurrence {occurrence}"
    return changed.replace(
        "CosmicRayTestingException", "UnicodeTranslateError"
    )  # cosmic-ray has one of its own, to be imported


@functools.cache
def _operator(kind: str) -> Any:
    return get_operator(f"core/{kind}")()


@functools.cache
def _operators(node_type: str) -> list[tuple[str, Any]]:
    """Those that may suit a node of this type: to ask each of each node would take most of a minute."""
    return [(kind, _operator(kind)) for kind in KINDS if kind.startswith(SUITS.get(node_type, ()))]


def _walk(node: Any, skipped: bool = False) -> Iterator[tuple[Any, bool]]:
    """All nodes in the order of cosmic-ray's visitor, and whether nothing is to be mutated there."""
    skipped = skipped or _tells(node)
    yield node, skipped
    for number, child in enumerate(getattr(node, "children", ())):
        yield from _walk(child, skipped or _annotates(node, number))


def _tells(node: Any) -> bool:
    """Whether a node is no behaviour that a test should fix.

    The words of errors and of the log, assertions, what only checkers of types read, how a function is compiled; large numbers.
    """
    if node.type in ("raise_stmt", "assert_stmt"):
        return True
    if node.type == "decorator":
        return HOW.match(node.get_code().strip()) is not None
    if node.type == "atom_expr":
        return getattr(node.children[0], "value", "") in LOGS
    if node.type == "operator":  # the star of a signature is none
        return node.parent.type in ("parameters", "param") and node.value in ("*", "**", "/")
    if node.type == "number":
        return abs(ast.literal_eval(node.value)) >= LARGE
    return node.type == "if_stmt" and "TYPE_CHECKING" in node.children[1].get_code()


def _annotates(node: Any, number: int) -> bool:
    """Whether the child of this number is an annotation."""
    before = node.children[number - 1] if number else None
    if node.type == "funcdef":
        return getattr(before, "value", "") == "->"
    return node.type in ("annassign", "tfpdef") and getattr(before, "value", "") == ":"


def _where(node: Any) -> str:
    names = []
    while node := node.parent:
        if node.type in ("funcdef", "classdef"):
            names.append(node.name.value)
    return ".".join(reversed(names))
