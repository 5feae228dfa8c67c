"""What the real nvcc makes of a kernel file: stack and spills, from `ptxas -v`; no GPU is needed."""

import functools
import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from gpu.runtime import compiler, kernels

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SOURCES = sorted(kernels.HERE.glob("*.cu"))
BUILD = kernels.HERE.parent / "build"

STACK = re.compile(
    r"Function properties for (\S+)\n +(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
WARNING = re.compile(r"\bwarning\s*[#:]")


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


def functions(text: str) -> dict[str, tuple[int, int]]:
    """The bytes of stack frame and spills of the functions that ptxas speaks of."""
    return {name: (int(stack), int(stores) + int(loads)) for name, stack, stores, loads in STACK.findall(text)}


def faults(text: str) -> list[str]:
    """What should not be in a compiler's words: warnings, and kernels with a stack frame or spilled registers."""
    warnings = [line for line in text.splitlines() if WARNING.search(line)]
    frames = functions(text).items()
    return warnings + [
        f"{name}: {stack} B stack, {spilled} B spilled" for name, (stack, spilled) in frames if stack or spilled
    ]
