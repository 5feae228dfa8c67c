"""Warp instructions that a block issues, counted by executing the machine code of a kernel; no GPU is needed.

Each of the four schedulers of a multiprocessor issues one instruction a cycle, so a block of N instructions takes N / 4 cycles
at least, whatever its memory does. This reads what nvdisasm writes for sm_90, and follows every lane through integers,
predicates and branches. Lanes that part meet again, as those that are behind go first. Floats are not computed, and no
comparison of them holds: of ways that they choose between, one is counted. The device's memory is read, and not written.
"""

import itertools
import operator
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tests.gpu import sass

LANES, WORD, MOST = 32, 0xFFFFFFFF, 1 << 20  # MOST: instructions of a warp; more come of a loop that does not end here
PARAMETERS = 0x210  # where the arguments of a kernel begin in the constants
OPERAND = re.compile(r"([-~!|]*)(?:(U?[RP])(\d+|Z|T)|c\[(\w+)\]\[(.*)\]|([\w.]+))")
PREDICATE = re.compile(r"!?U?P[\dT]$")
QUIET = re.compile(  # shuffles are of floats
    r"BSSY|BSYNC|F(ADD|FMA|MNMX|MUL|SEL|SET)\b|SHFL|STG|RED|LDG(STS|DEPBAR)|CCTL|DEPBAR|MEMBAR|WARPSYNC|ENDCOLL|YIELD|NOP|MUFU(?!.RCP)"
)
# Of values, kinds, a predicate or the sum of several, and what gives a sign: what a register gets. A carry stands above.
NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("MOV", "R2UR", "S2R", "S2UR", "CS2R"), lambda v, kinds, pin, sign: v[-1]),
    **dict.fromkeys(("IADD3", "VIADD"), lambda v, kinds, pin, sign: sum(v) + pin),
    "IMAD": lambda v, kinds, pin, sign: (sign(v[0]) * sign(v[1]) + v[2] >> 32 * ("HI" in kinds)) + pin,
    "LEA": lambda v, kinds, pin, sign: _scaled(v, kinds) + v[1] + pin,
    "SHF": lambda v, kinds, pin, sign: _shifted(v, kinds, sign),
    **dict.fromkeys(
        ("VIMNMX", "VIADDMNMX"),
        lambda v, kinds, pin, sign: np.where(pin, *np.sort([sign(sum(v[:-1])), sign(v[-1])], axis=0)),
    ),
    "SEL": lambda v, kinds, pin, sign: np.where(pin, *v),
    "IABS": lambda v, kinds, pin, sign: abs(_signed(v[0])),
    "POPC": lambda v, kinds, pin, sign: np.array([int(one).bit_count() for one in v[0]]),
    "FLO": lambda v, kinds, pin, sign: np.array([int(one).bit_length() - 1 for one in v[0]]),
    **dict.fromkeys(("I2F", "I2FP"), lambda v, kinds, pin, sign: np.int64(np.float32(sign(v[0])).view("u4"))),
    "MUFU": lambda v, kinds, pin, sign: np.int64((1 / np.uint32(v[0]).view("f4")).view("u4")),
    "F2I": lambda v, kinds, pin, sign: np.int64(np.uint32(v[0]).view("f4")),
}


def instructions(lines: list[str], tables: bytes, arguments: bytes, threads: int, memory: Mapping[int, bytes]) -> int:
    """Warp instructions of a kernel's first block; tables: constants of its jumps; memory: what lies at addresses."""
    constants = struct.pack("<3I", threads, 1, 1).ljust(PARAMETERS, b"\0") + arguments
    spaces = {"0x0": {0: constants}, "0x2": {0: tables}, "LDS": {0: bytes(1 << 18)}, "LDG": memory}
    words = {
        space: {at: np.frombuffer(one + bytes(-len(one) % 4), "<u4").astype(np.int64) for at, one in parts.items()}
        for space, parts in spaces.items()
    }
    warps = [Warp(*sass.program(lines), words, warp) for warp in range(threads // LANES)]
    with np.errstate(all="ignore"):
        list(itertools.zip_longest(*(warp.run() for warp in warps)))  # from one barrier to the next
    return sum(warp.count for warp in warps)


class Warp:
    """What its lanes know. Registers hold 32 bits without a sign, predicates 1 or 0."""

    def __init__(self, code: list[Any], labels: dict[str, int], spaces: dict[str, dict[int, np.ndarray]], warp: int):
        lanes = np.arange(LANES)
        self.code, self.labels, self.spaces, self.count = code, labels, spaces, 0
        self.places, self.active = np.zeros(LANES, np.int64), lanes >= 0  # places in the code; -1: the lane has ended
        self.registers = {"SR_TID.X": lanes + LANES * warp, "SR_LANEID": lanes, "T": np.ones(LANES, np.int64)}

    def run(self) -> Iterator[None]:
        """Yields at a barrier of the block."""
        while (alive := self.places >= 0).any():
            place = int(self.places[alive].min())
            here = self.places == place
            guard, name, *operands = self.code[place]
            name, *kinds = name.split(".")
            self.places[here] = place + 1
            self.active = here & (self.get(guard) != 0)
            self.count += 1
            assert self.count < MOST, f"no end at {name} {operands}"
            if name == "BAR":
                assert (here == alive).all(), "lanes have parted at a barrier"
                yield
            elif name == "EXIT":
                self.places[self.active] = -1
            elif name in ("BRX", "BRXU"):
                self.places[self.active] = self.get(operands[0].split()[0])[self.active] // 16
            elif name == "BRA":  # DIV: where lanes have parted, which they have not
                taken = self.active & (self.get(operands[0] if operands[1:] else "PT") != 0) & ("DIV" not in kinds)
                self.places[taken] = self.labels[operands[-1]]
            elif not QUIET.match(".".join([name, *kinds])) and self.active.any():
                self.compute(name.removeprefix("U"), kinds, *operands)

    def get(self, operand: str, up: int = 0) -> np.ndarray:
        """A register, the `up`-th behind it, or a constant. A minus is the complement and one, so its carry is the device's."""
        sign, kind, number, bank, place, literal = OPERAND.match(operand).groups()  # type: ignore[union-attr]
        if bank:
            found = self.read(bank, self.address(place) + 4 * up)
        elif literal and literal[0].isdigit():
            found = np.full(LANES, 0 if up else int(literal, 0) & WORD)
        else:
            name = literal or (f"{kind}{int(number) + up}" if number.isdigit() else number)
            found = self.registers.get(name, np.zeros(LANES, np.int64))
        return 1 - found if "!" in sign else (~found & WORD) + ("-" in sign) if sign else found

    def address(self, operand: str) -> np.ndarray:
        """What stands between the last brackets: registers and a number."""
        parts = operand.rpartition("][")[2].strip("[]").split("+")
        return sum(
            _signed(self.get(one)) if ".64" not in one else self.get(one) | self.get(one, 1) << 32 for one in parts
        )

    def read(self, space: str, at: np.ndarray) -> np.ndarray:
        found = np.zeros(LANES, np.int64)
        for start, words in self.spaces[space].items():
            inside = (at >= start) & (at < start + 4 * len(words))
            found[inside] = words[(at - start)[inside] // 4] >> 8 * (at[inside] % 4)
        return found

    def set(self, target: str, values: Any, up: int = 0) -> None:
        """Lanes that take part get a number; all do in a uniform register."""
        match = OPERAND.match(target)
        if match and match[3] and match[3].isdigit():
            name = f"{match[2]}{int(match[3]) + up}"
            before = self.registers.get(name, 0)
            self.registers[name] = np.where(self.active | (name[0] == "U"), np.asarray(values, np.int64) & WORD, before)

    def compute(self, name: str, kinds: list[str], target: str, *rest: str) -> None:
        """One instruction that does not branch: a target, further ones, values, and predicates that it reads."""
        first = next((k for k, one in enumerate(rest) if not PREDICATE.match(one)), len(rest))
        flags, values = rest[:first], [one for one in rest[first:] if not PREDICATE.match(one)]
        pins = [self.get(one) for one in rest[first:] if PREDICATE.match(one)]
        if name in ("LDC", "LDG", "LDS", "STS"):
            at = self.address(target if name == "STS" else values[0]) if name != "LDC" else 0
            for k in range(4 if "128" in kinds else 2 if "64" in kinds else 1):
                if name == "STS":
                    self.spaces["LDS"][0][at[self.active] // 4 + k] = self.get(values[0], k)[self.active]
                else:
                    found = self.read(name, at + 4 * k) if name != "LDC" else self.get(values[0], k)
                    self.set(target, found & (0xFF if "U8" in kinds else WORD), k)
        elif name in ("FSETP", "FCHK"):
            self.set(target, 0)
        elif name == "HFMA2":  # a constant, as two halves
            high, low = (int(np.float16(one).view(np.uint16)) for one in values[2:])
            self.set(target, high << 16 | low)
        elif name in NUMBERS:
            v = [self.get(one) for one in values]
            if name == "IMAD" and {"WIDE", "HI"} & set(kinds):
                v[2] = v[2] | self.get(values[2], 1) << 32
            sign = partial(np.bitwise_and, WORD) if "U32" in kinds else _signed
            total = NUMBERS[name](v, kinds, sum(pins), sign)
            self.set(target, total)
            self.set(target if "WIDE" in kinds or name == "CS2R" else "RZ", total >> 32, 1)
            for k, flag in enumerate(flags):
                self.set(flag, total >> 32 > k)
        else:
            self.judge(name, kinds, target, flags, values, pins)

    def judge(self, name: str, kinds: list[str], target: str, flags: Any, values: list[str], pins: list[Any]) -> None:
        """What becomes of predicates and bits."""
        v = [self.get(one) for one in values]
        if name == "ISETP":
            a, b = (one & WORD if "U32" in kinds else _signed(one) for one in v)
            found = getattr(operator, kinds[0].lower())(a, b).astype(np.int64)
            if "EX" in kinds:  # the lower halves have been compared
                found = found | pins[1] if kinds[0] == "NE" else np.where(a == b, pins[1], found)
            self.set(target, found | pins[0] if "OR" in kinds else found & pins[0])
        elif name == "LOP3":
            found = _looked_up(v[-4:-1], int(values[-1], 0)) & WORD
            self.set(target, found != 0 if PREDICATE.match(target) else found)
            self.set(values[-5] if len(values) > 4 else "RZ", found)
        elif name == "PLOP3":
            self.set(target, _looked_up([-self.get(one) for one in flags[1:]], int(values[0], 0)) & 1)
        else:
            raise NotImplementedError(f"{name}.{'.'.join(kinds)} {target}, {values}")


def _signed(values: np.ndarray) -> np.ndarray:
    return (values & WORD ^ 1 << 31) - (1 << 31)


def _scaled(v: list[np.ndarray], kinds: list[str]) -> np.ndarray:
    if "HI" not in kinds:
        return v[0] << v[2] & WORD
    return (_signed(v[0]) if "SX32" in kinds else v[0] | v[2] << 32) >> 32 - v[-1] & WORD


def _shifted(v: list[np.ndarray], kinds: list[str], sign: Callable[..., Any]) -> np.ndarray:
    whole = v[0] | v[2] << 32
    return (
        whole << v[1] >> 32 * ("HI" in kinds) if kinds[0] == "L" else (sign(v[2]) if "HI" in kinds else whole) >> v[1]
    )


def _looked_up(values: list[np.ndarray], table: int) -> Any:
    """Bit by bit what the table says of three."""
    a, b, c = values
    return sum((a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c) for k in range(8) if table >> k & 1)
