"""Mutants of a file: small changes of one token, in Python found by `ast`, in CUDA by a pattern.

Left alone is what no test should fix: annotations, the words of errors, assertions, how a function is compiled, large numbers,
what is fetched ahead, defaults of arguments, which are choices, and `strict` of a zip, whose operands are as long as each other
unless another line is wrong.
"""

import ast
import dataclasses
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

LARGE = 1000  # from here on a number is a size, a limit or a unit, and one more of it no fault that shows
TOKENS = "< <= > >= == != + - * / // % ** << >> & | ^ and or".split()
SWAPS = dict(zip(TOKENS, "<= < >= > != == - + + * * // * >> << | & & or and".split(), strict=True))
SWAPS |= {"is": "is not", "is not": "is", "in": "not in", "not in": "in"}
NAMES = "Lt LtE Gt GtE Eq NotEq Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr BitXor And Or Is IsNot In NotIn"
OPERATORS: dict[type, str] = {getattr(ast, name): token for name, token in zip(NAMES.split(), SWAPS, strict=True)}
# Decorators without which values are the same.
COMPILED = re.compile(r"(functools\.)?(cache|lru_cache|wraps|launched|called|inlined|overload|final|override)\b")
LEFT = ("annotation", "returns", "defaults", "kw_defaults")  # fields of nodes
KEYWORDS = "strict cache nogil no_cfunc_wrapper no_cpython_wrapper _nrt forceinline".split()


@dataclasses.dataclass(frozen=True)
class Mutant:
    """The bytes of a file from `begin` to `end` become `new`; `number` tells those apart that agree in all else."""

    path: str
    begin: int
    end: int
    old: str
    new: str
    line: str
    number: int = 0

    @property
    def name(self) -> str:
        """What it is called; it outlives lines that move."""
        return " ".join(f"{self.path} | {self.old} to {self.new or 'nothing'} | {self.line} | {self.number}".split())

    @property
    def key(self) -> str:
        """Ten letters that stand for the name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:10]

    def plant(self, text: str) -> str:
        """The changed text of the file."""
        content = text.encode()
        return (content[: self.begin] + self.new.encode() + content[self.end :]).decode()


def mutants(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    content, seen, told = text.encode(), Counter[str](), []
    places = _cuda(text) if path.endswith((".cu", ".cuh")) else _python(text)
    for begin, end, new in sorted(set(places)):
        row = content.count(b"\n", 0, begin)
        line = content.split(b"\n")[row].decode().strip()
        mutant = Mutant(path, begin, end, content[begin:end].decode(), new, line)
        told.append(dataclasses.replace(mutant, number=seen[mutant.name]))
        seen[mutant.name] += 1
    return told


def drawn(every: Iterable[Mutant], number: int, seed: int) -> list[Mutant]:
    """So many mutants, one a place. Each one's lot is a hash of its name: a larger number draws the same ones and more."""
    places: dict[tuple[str, int], Mutant] = {}
    for mutant in sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).hexdigest()):
        places.setdefault((mutant.path, mutant.begin), mutant)
    return list(places.values())[:number]


Place = tuple[int, int, str]  # from, to, and what is put there


def _python(text: str) -> Iterator[Place]:
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    content = text.encode()

    def begin(node: ast.expr | ast.stmt) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno and node.end_col_offset is not None
        return starts[node.end_lineno - 1] + node.end_col_offset

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Place]:
        """The operator between two operands, behind brackets and in front of others, outside comments."""
        token = OPERATORS.get(type(operator))
        gap = re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), content[end(left) : begin(right)])
        if token and (at := gap.find(token.encode())) >= 0:
            yield end(left) + at, end(left) + at + len(token), SWAPS[token]

    def changes(node: ast.AST) -> Iterator[Place]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rest):
                for one, operator, other in zip([left, *rest], ops, rest, strict=False):
                    yield from between(one, other, operator)
            case ast.BinOp(left=left, op=operator, right=right):
                yield from between(left, right, operator)
            case ast.AugAssign(target=target, op=operator, value=value):
                yield from between(target, value, operator)
            case ast.BoolOp(op=operator, values=values):
                for one, other in itertools.pairwise(values):
                    yield from between(one, other, operator)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
                yield begin(node), begin(operand) - content[begin(node) : begin(operand)].count(b"("), ""
            case ast.Constant(value=bool(value)):
                yield begin(node), end(node), str(not value)
            case ast.Constant(value=int(value) | float(value)) if abs(value) < LARGE:
                yield from ((begin(node), end(node), repr(value + step)) for step in (1, -1))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield begin(test), end(test), f"not ({content[begin(test) : end(test)].decode()})"
            case ast.Break() | ast.Continue():
                yield begin(node), end(node), "continue" if isinstance(node, ast.Break) else "break"

    def walk(node: ast.AST, top: bool) -> Iterator[Place]:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _checked_only(node) or _fetches(node):
            return
        if isinstance(node, ast.keyword) and node.arg in KEYWORDS:
            return
        if not (top and isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):  # a union of types
            yield from changes(node)
        top = top and not isinstance(node, ast.FunctionDef)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                compiled = field == "decorator_list" and COMPILED.match(ast.unparse(child))
                if isinstance(child, ast.AST) and field not in LEFT and not compiled:
                    yield from walk(child, top)

    yield from walk(ast.parse(text), True)


def _checked_only(node: ast.AST) -> bool:
    """Whether only a checker of types, or who reads warnings, sees it."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("warnings.", "logging.", "log."))


def _fetches(node: ast.AST) -> bool:
    """Whether it only asks for memory that is read later."""
    if isinstance(node, ast.If | ast.For) and not node.orelse:
        return all(map(_fetches, node.body))
    if isinstance(node, ast.FunctionDef):
        return "prefetch" in node.name
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return called and "prefetch" in ast.unparse(node.value.func)


# The formatter leaves white space around operators of two operands only: brackets of templates and pointers have none.
TOKEN = re.compile(
    r"(?<= )(?P<swap><<|>>|[<>=!]=|[-+*]=|&&|\|\||[-<>+*/%&|])(?= )"
    r"|(?P<barrier>\b(__syncthreads|__syncwarp)\([^()]*\))(?=;)"
    r"|(?P<number>(?<![\w.])\d+(\.\d+)?f?\b(?![.\w]))"
)
CUDA_SWAPS = SWAPS | {"&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "+=", "%": "/"}
# Neither comments nor texts, nor lines for the preprocessor; bounds of launches and what is fetched ahead change no result.
APART = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(\\.|[^"\\\n])*"|^[ \t]*#(\\\n|[^\n])*|__launch_bounds__\([^)]*\)|static_assert\([^;]*;'
    r"|^[^\n]*\bbring\([^\n]*",
    re.S | re.M,
)


def _cuda(text: str) -> Iterator[Place]:
    bare = APART.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in TOKEN.finditer(bare):
        begin, token = len(text[: match.start()].encode()), match[0]
        end = begin + len(token)
        if match["swap"]:
            yield begin, end, CUDA_SWAPS[token]
        elif match["barrier"]:
            yield begin, end, ""
        elif float(token.rstrip("f")) < LARGE:
            for step in (1, -1):
                value = (float if "." in token else int)(token.rstrip("f")) + step
                yield begin, end, f"({value}{'f' * token.endswith('f')})"
