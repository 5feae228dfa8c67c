"""What the real nvcc makes of a kernel file: registers, shared memory, stack and spills, from `ptxas -v`; no GPU is needed."""

import functools
import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpu.runtime import compiler, kernels

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SOURCES = sorted(kernels.HERE.glob("*.cu"))
BUILD = kernels.HERE.parent / "build"

FUNCTION = re.compile(r"Function properties for (\S+)")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
WARNING = re.compile(r"\bwarning\s*[#:]")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass
class Usage:
    """What one kernel, or a function that it calls, takes: bytes, and registers a thread."""

    stack: int = 0
    spilled: int = 0
    registers: int = 0
    shared: int = 0

    def __str__(self):
        parts = (f"{self.shared} B shared", f"{self.stack} B stack", f"{self.spilled} B spilled")
        return ", ".join([str(self.registers), *(part for part in parts if not part.startswith("0 "))])


def real_nvcc() -> str:
    """The real nvcc, of the toolkit or the wheel: never what HYBRID_NVCC names, which is the stand-in during tests."""
    if found := compiler.nvcc():
        return found
    raise OSError("no nvcc is found: pip install -e '.[test]' brings it")


@functools.cache
def run(*command: str) -> str:
    """What a command says on both streams; OSError with it where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


def knows(nvcc: str, architecture: str) -> bool:
    """Whether this nvcc compiles for an architecture."""
    return architecture in run(nvcc, "--list-gpu-code").split()


def said(nvcc: str, source: Path, architecture: str) -> str:
    """What nvcc says when it compiles a file as the package does; kept, until anything that goes into it changes."""
    path = kept(nvcc, source, architecture)
    if not path.exists():
        with tempfile.TemporaryDirectory() as made:
            text = compiled(nvcc, source, architecture, Path(made, "cubin"))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part{os.getpid()}")
        part.write_text(text)
        os.replace(part, path)  # in one step: other test processes may read it
    return path.read_text()


def compiled(nvcc: str, source: Path, architecture: str, cubin: Path) -> str:
    """Compile a file as the package does, and return what nvcc and ptxas say."""
    more = ("-Xptxas", "-v", "-I", str(source.parent), "-o", str(cubin))
    return run(nvcc, "-cubin", f"-arch={architecture}", *kernels.OPTIONS, *more, str(source))


def kept(nvcc: str, source: Path, architecture: str) -> Path:
    """Where nvcc's words are kept; the name is a hash of all that goes into them."""
    told = hashlib.sha256(repr((kernels.OPTIONS, architecture, run(nvcc, "--version"))).encode())
    for file in (source, *sorted(source.parent.rglob("*.cuh"))):
        told.update(file.read_bytes())
    return BUILD / "ptxas" / f"{source.stem}-{architecture}-{told.hexdigest()[:20]}.txt"


def usages(text: str) -> dict[str, Usage]:
    """The functions that ptxas speaks of, by name, which is mangled where the source does not say extern "C"."""
    found: dict[str, Usage] = {}
    usage = Usage()
    for line in text.splitlines():
        if match := FUNCTION.search(line):
            usage = found.setdefault(match[1], Usage())
        elif match := STACK.search(line):
            usage.stack, usage.spilled = int(match[1]), int(match[2]) + int(match[3])
        elif match := REGISTERS.search(line):
            usage.registers = int(match[1])
            usage.shared = int(shared[1]) if (shared := SHARED.search(line)) else 0
    return found


def faults(text: str) -> list[str]:
    """What should not be in a compiler's words: warnings, and kernels with a stack frame or spilled registers."""
    warnings = [line for line in text.splitlines() if WARNING.search(line)]
    return warnings + [f"{name}: {usage}" for name, usage in usages(text).items() if usage.stack or usage.spilled]
