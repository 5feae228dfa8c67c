"""A parser of pickles as data: no part of them is executed.

A pickle is a program. Our own machine interprets the opcodes of plain values, and the names under which NumPy pickles arrays.
It rejects anything else; nothing is ever imported or called.
"""

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def unpickled(name: str, data: bytes) -> Any:
    """Returns the value of a pickle: None, bools, numbers, str, bytes, tuples, lists, dicts, NumPy's dtypes and arrays.

    name  its origin, for messages

    It imports no name and calls nothing. NumPy's numbers become Python's. Raises ValueError, with the opcode and its position,
    for a pickle that requests anything else, makes more than twice its own bytes, or is damaged.
    """
    machine, opcode = _Machine(2 * len(data)), None
    try:
        for opcode, argument, at in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.last(len(data) - (at or 0) - 1)
            if opcode.name not in _ACTS:
                raise _Refused(f"opcode {opcode.name} at byte {at}, which is none of plain data")
            try:
                _ACTS[opcode.name](machine, argument)
            except ValueError as error:
                raise _Refused(f"opcode {opcode.name} at byte {at}: {error}") from None
    except _Refused as error:
        raise ValueError(f"{name}: refused this pickle: {error}") from None
    except (ValueError, OverflowError) as error:  # of genops: unknown or truncated
        last = f" after opcode {opcode.name}" if opcode else ""
        raise ValueError(f"{name}: found a damaged pickle{last}: {error}") from None
    raise ValueError(f"{name}: found a pickle without an end")


class _Refused(ValueError):
    """The error of a rejected pickle."""


class _Known(NamedTuple):
    """A NumPy name in a pickle, and what a call of it makes here."""

    name: str
    make: Callable[..., Any] | None


class _Blank:
    """An array without content: a pickle announces it first, and describes it later."""

    filled: np.ndarray | None = None


class _Machine:
    """The stack of a pickle, the stacks below its marks, and its memo.

    most  maximum bytes that its calls may make: a text becomes bytes, and these an array; a memoised value could be used again
          and again
    """

    def __init__(self, most: int) -> None:
        self.most, self.made = most, 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack:
            raise _Refused("nothing on its stack")
        return self.stack.pop()

    def last(self, left: int) -> Any:
        """Returns the only remaining value; `left` bytes follow it."""
        value = self.pop()
        if self.stack or self.below or left:
            raise _Refused(f"opcode STOP with {len(self.stack)} values and {left} bytes left over")
        return value

    def top(self, kind: type) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise _Refused(f"no {kind.__name__} on its stack")
        return self.stack[-1]

    def take(self, count: int) -> list[Any]:
        """Pops the last values, in order."""
        return [self.pop() for _ in range(count)][::-1]

    def marked(self) -> list[Any]:
        """Pops the values since the last mark, and the mark."""
        if not self.below:
            raise _Refused("no mark on its stack")
        values, self.stack = self.stack, self.below.pop()
        return values

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def remember(self, at: int) -> None:
        if not self.stack:
            raise _Refused("nothing on its stack")
        self.memo[at] = self.stack[-1]

    def recall(self, at: int) -> None:
        if at not in self.memo:
            raise _Refused(f"nothing remembered as {at}")
        value = self.memo[at]
        self.push(value.filled if type(value) is _Blank and value.filled is not None else value)

    def extend(self, values: list[Any]) -> None:
        self.top(list).extend(values)

    def update(self, values: list[Any]) -> None:
        if len(values) % 2 or any(type(key) not in (str, int) for key in values[::2]):
            raise _Refused("keys of a dict that are neither words nor numbers")
        self.top(dict).update(zip(values[::2], values[1::2], strict=True))

    def name(self, module: Any, name: Any) -> None:
        """Looks a name up in our own table and nowhere else."""
        full = f"{module}.{name}" if type(module) is type(name) is str else "no words"
        if full not in _NAMES:
            raise _Refused(f"it names {full[:100]!r}; only NumPy's arrays and dtypes are known, and nothing is called")
        self.push(_NAMES[full])

    def reduce(self) -> None:
        known, arguments = self.take(2)
        if type(known) is not _Known or not known.make or type(arguments) is not tuple:
            raise _Refused("it calls what cannot be called")
        expected = known.make.__code__.co_argcount
        if len(arguments) != expected:
            raise _Refused(f"{len(arguments)} arguments for {known.name}, expected {expected}")
        self.push(self.counted(known.make(*arguments)))

    def counted(self, made: Any) -> Any:
        """Returns the result of a call, if the total is within bounds."""
        self.made += len(made) if type(made) is bytes else made.nbytes if isinstance(made, np.ndarray) else 0
        if self.made > self.most:
            raise _Refused(f"{self.made:,} bytes made, expected at most {self.most:,}, twice what the pickle has")
        return made

    def build(self) -> None:
        """Describes an announced object: the array on the stack, or the byte order of a dtype."""
        state = self.pop()
        value = self.pop()
        if type(state) is not tuple:
            raise _Refused("no description")
        if isinstance(value, np.dtype):
            if len(state) < 2 or type(state[1]) is not str or state[1] not in ("<", "|"):
                raise _Refused("a dtype that is not little-endian")
            return self.push(value)
        if type(value) is not _Blank or value.filled is not None or len(state) != 5:
            raise _Refused("it describes what is no array")
        _, shape, dtype, fortran, data = state
        value.filled = self.counted(_array(data, dtype, shape, "F" if fortran is True else "C"))
        self.push(value.filled)


def _dtype(code: Any, align: Any, copy: Any) -> np.dtype:
    if type(code) is not str or code not in ("f4", "f8", "i4", "i8", "b1"):
        raise _Refused("a dtype other than f4, f8, i4, i8 and b1")
    return np.dtype(f"<{code}")


def _blank(kind: Any, shape: Any, code: Any) -> _Blank:
    if type(kind) is not _Known or kind.name != "ndarray":
        raise _Refused("an array that is no ndarray")
    return _Blank()


def _scalar(dtype: Any, data: Any) -> Any:
    return _array(data, dtype, (), "C").item()


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """Returns an array of a pickle, read-only; its byte count must match its shape."""
    if type(data) not in (bytes, bytearray) or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        raise _Refused("an array of other than bytes, dtype and shape")
    if len(shape) > 1 or any(type(length) is not int or length < 0 for length in shape):
        raise _Refused("an array of more than one axis")  # so the order is irrelevant
    if len(data) != dtype.itemsize * (shape[0] if shape else 1):
        raise _Refused(f"an array of {len(data)} bytes, which do not fit its shape")
    return np.frombuffer(bytes(data), dtype).reshape(shape)


def _latin(text: Any, encoding: Any) -> bytes:
    """Returns the bytes of a text: protocol 2 has no bytes."""
    if type(text) is not str or encoding != "latin1":
        raise _Refused("an encoding other than latin1")
    return text.encode("latin-1")


_NAMES = {
    "numpy.dtype": _Known("dtype", _dtype),
    "numpy.ndarray": _Known("ndarray", None),
    "_codecs.encode": _Known("bytes", _latin),
}
for core in ("core", "_core"):  # before NumPy 2, and since
    _NAMES[f"numpy.{core}.multiarray._reconstruct"] = _Known("blank", _blank)
    _NAMES[f"numpy.{core}.multiarray.scalar"] = _Known("scalar", _scalar)
    _NAMES[f"numpy.{core}.numeric._frombuffer"] = _Known("frombuffer", _array)
_ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, value: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Machine.push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "BYTEARRAY8"), _Machine.push),
    "NONE": lambda machine, value: machine.push(None),
    "NEWTRUE": lambda machine, value: machine.push(True),
    "NEWFALSE": lambda machine, value: machine.push(False),
    "EMPTY_LIST": lambda machine, value: machine.push([]),
    "EMPTY_DICT": lambda machine, value: machine.push({}),
    "EMPTY_TUPLE": lambda machine, value: machine.push(()),
    "MARK": lambda machine, value: machine.mark(),
    "TUPLE": lambda machine, value: machine.push(tuple(machine.marked())),
    "TUPLE1": lambda machine, value: machine.push(tuple(machine.take(1))),
    "TUPLE2": lambda machine, value: machine.push(tuple(machine.take(2))),
    "TUPLE3": lambda machine, value: machine.push(tuple(machine.take(3))),
    "APPEND": lambda machine, value: machine.extend(machine.take(1)),
    "APPENDS": lambda machine, value: machine.extend(machine.marked()),
    "SETITEM": lambda machine, value: machine.update(machine.take(2)),
    "SETITEMS": lambda machine, value: machine.update(machine.marked()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
    "MEMOIZE": lambda machine, value: machine.remember(len(machine.memo)),
    "GLOBAL": lambda machine, value: machine.name(*value.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, value: machine.name(*machine.take(2)),
    "REDUCE": lambda machine, value: machine.reduce(),
    "BUILD": lambda machine, value: machine.build(),
}
