"""What is called of the driver without PyCUDA is called as cuda.h declares it, by the name under which the library has it."""

import ctypes
import re

import pytest

from gpu.runtime.memory import EVERYTHING, ON_A_DEVICE, PINNED, RELEASE_THRESHOLD, RESERVED, USED
from gpu.runtime.queues import CALLS, KINDS, NON_BLOCKING, OUT_OF_MEMORY, libcuda
from tests import cudasim

WIDTHS = {"size_t": "s", "CUdeviceptr": "a", "unsigned int": "u", "unsigned long long": "U"}


@pytest.fixture(scope="module")
def header():
    try:
        return (cudasim.cuda_include() / "cuda.h").read_text()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def kind(argument: str) -> str:
    """The letter of an argument, as the header declares it."""
    told = re.sub(r"\bconst\b", "", argument).strip()
    if "*" in told:
        return "P"
    named = told.rsplit(None, 1)[0] if told not in WIDTHS else told
    if named in WIDTHS:
        return WIDTHS[named]
    handles = ("CUcontext", "CUevent", "CUgraph", "CUgraphExec", "CUmemoryPool", "CUstream")
    return "P" if named in handles else "i"  # an enumeration


def names(header: str) -> dict[str, str]:
    """The names that the library exports, by those of the header: of several versions of a function the newest."""
    found = re.findall(r"^\s*#define (cu\w+)\s+(?:__CUDA_API_PT(?:DS|SZ)\()?(cu\w+)\)?\s*$", header, re.M)
    assert len(found) > 50
    return dict(found)


@pytest.mark.parametrize("name", CALLS)
def test_names_and_arguments_are_those_of_the_library(header, name):
    exported = names(header)
    [plain] = [plain for plain, there in exported.items() if there == name] or [name]
    assert exported.get(plain, plain) == name
    declared = re.search(rf"^CUresult CUDAAPI {plain}\(([^)]*)\);", header, re.M)
    assert "".join(map(kind, declared[1].split(","))) == CALLS[name]


def test_numbers_are_those_of_the_header(header):
    """Values of an enumeration are given for its first, and counted from there."""
    body = re.search(r"typedef enum CUmemPool_attribute_enum \{(.*?)\} CUmemPool_attribute;", header, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    names = [item.split("=")[0].strip() for item in body.split(",")]
    assert re.search(r"=\s*(\d+)", body)[1] == "1"
    for value, name in (
        (RELEASE_THRESHOLD, "RELEASE_THRESHOLD"),
        (RESERVED, "RESERVED_MEM_CURRENT"),
        (USED, "USED_MEM_CURRENT"),
    ):
        assert names.index(f"CU_MEMPOOL_ATTR_{name}") + 1 == value
    for value, name in (
        (PINNED, "CU_MEM_ALLOCATION_TYPE_PINNED"),
        (ON_A_DEVICE, "CU_MEM_LOCATION_TYPE_DEVICE"),
        (NON_BLOCKING, "CU_STREAM_NON_BLOCKING"),
        (OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
    ):
        assert int(re.search(rf"\b{name}\s*=\s*(\w+)", header)[1], 0) == value
    assert EVERYTHING == ctypes.c_uint64(-1).value


def test_the_library_is_told(gpu):
    for name, kinds in CALLS.items():
        assert getattr(libcuda(), name).argtypes == [KINDS[kind] for kind in kinds]
