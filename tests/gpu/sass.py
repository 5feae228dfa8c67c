"""What the real nvcc's machine code does about memory: how many loads of global memory are under way before one is waited for.

A warp issues its instructions in order: it goes on past a load until the first one that reads what was loaded. So the loads
issued before that are under way together, and hide each other's latency; one load that is read before the next is issued waits
alone. Counted along the text of a kernel, past branches that have a condition, without running it. No GPU is needed, but
nvdisasm is (of the toolkit, or the wheel nvidia-cuda-nvdisasm).

    /*0520*/  LDG.E R7, desc[UR4][R4.64+-0x100] ;      a load into R7
    /*0550*/  STG.E desc[UR4][R2.64+-0x100], R7 ;      reads R7: one load was under way
"""

import functools
import os
import re
import shutil
import site
from collections import Counter
from pathlib import Path

from tests.gpu import ptxas

KERNEL = re.compile(r"^\.text\.(\w+):$")
INSTRUCTION = re.compile(r"/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?)\s*;")
LABEL = re.compile(r"^\s*(\.L_\w+):")
REGISTER = re.compile(r"\bR(\d+)(\.64)?\b")
WIDTH = re.compile(r"\.(64|128)\b")
ENDS = ("BRA", "EXIT", "RET", "CALL")  # where they have no condition, what follows in the text does not follow in time


def disassembler() -> str:
    """The nvdisasm of the path or of the wheel; OSError where there is none."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    wheels = [str(path) for folder in folders for path in Path(folder).glob("nvidia/*/bin/nvdisasm")]
    for found in (shutil.which("nvdisasm"), *wheels):
        if found:
            return found
    raise OSError("nvdisasm: found none; the CUDA toolkit has it, and pip install nvidia-cuda-nvdisasm")


@functools.cache
def code(source: Path, architecture: str, nvcc: str, nvdisasm: str) -> dict[str, list[str]]:
    """The instructions of every kernel of a file; what was compiled is kept, as units.cu alone takes half a minute."""
    kept = ptxas.kept(nvcc, source, architecture).with_suffix(".cubin")
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        for before in kept.parent.glob(f"{source.stem}-{architecture}-*.cubin"):
            before.unlink(missing_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        ptxas.compiled(nvcc, source, architecture, part)
        os.replace(part, kept)
    return kernels_of(ptxas.run(nvdisasm, str(kept)))


def kernels_of(text: str) -> dict[str, list[str]]:
    """The lines of a disassembly, by kernel."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if match := KERNEL.match(line.strip()):
            lines = found.setdefault(match[1], [])
        elif line.strip().startswith(".section"):
            lines = []
        else:
            lines.append(line)
    return found


def loads_in_flight(lines: list[str]) -> int:
    """The most loads of global memory that are under way before one of them is read."""
    most, under_way = 0, []
    for line in lines:
        match = INSTRUCTION.search(line)
        if not match:
            continue
        condition, name, operands = match.groups()
        target, _, rest = operands.partition(",")
        reads = _registers(operands if name.startswith(("ST", "RED")) else rest)
        if any(reads & loaded for loaded in under_way) or (name.startswith(ENDS) and not condition):
            under_way = []
        if name.startswith("LDG"):
            under_way.append(_loaded(name, target))
            most = max(most, len(under_way))
    return most


def program(lines: list[str]) -> tuple[list[list[str]], dict[str, int]]:
    """Instructions in order, each as its guard, name and operands; and where labels are."""
    code: list[list[str]] = []
    labels = {}
    for line in lines:
        if label := LABEL.match(line):
            labels[label[1]] = len(code)
        elif match := INSTRUCTION.search(line):
            guard, name, operands = match.groups()
            code.append([(guard or "PT").strip("@ "), name, *(one.strip("` ()") for one in operands.split(","))])
    return code, labels


def loops(lines: list[str]) -> list[Counter[str]]:
    """Of every innermost loop how many instructions it has of each name, from its label to the branch back; "all" of any."""
    code, labels = program(lines)
    ends = [k for k, one in enumerate(code) if one[1] in ("BRA", "BRA.U") and labels[one[-1]] <= k]
    found = [(labels[code[k][-1]], k + 1) for k in ends]
    outer = {one for one in found for other in found if other != one and one[0] <= other[0] and other[1] <= one[1]}
    inner = [code[first:last] for first, last in found if (first, last) not in outer]
    return [Counter(all=len(loop)) + Counter(one[1].partition(".")[0] for one in loop) for loop in inner]


def _registers(operands: str) -> set[int]:
    """The registers that operands name, pairs as both."""
    return {int(number) + k for number, pair in REGISTER.findall(operands) for k in range(2 if pair else 1)}


def _loaded(name: str, target: str) -> set[int]:
    """The registers that a load fills."""
    width = WIDTH.search(name)
    count = int(width[1]) // 32 if width else 1
    return {first + k for first in _registers(target) for k in range(count)}
