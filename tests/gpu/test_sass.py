"""Kernels that only move memory ask for several numbers before they wait for the first."""

import pytest

from gpu import kernels
from tests.gpu import ptxas, sass

LINES = """\
.section .text.copy,"ax",@progbits
.text.copy:
.L_x_1:
        /*0010*/                   LDG.E R7, desc[UR4][R4.64+-0x100] ;
        /*0020*/              @!P0 LDG.E.128 R8, [R2] ;
        /*0030*/                   IADD3 R2, R3, 0x1, RZ ;
        /*0040*/                   STG.E desc[UR4][R2.64], R9 ;
        /*0050*/                   LDG.E R6, desc[UR4][R4.64] ;
        /*0060*/                   LDG.E.64 R10, desc[UR4][R4.64] ;
        /*0070*/                   LDS R20, [R1] ;
        /*0080*/                   LDG.E R12, desc[UR4][R4.64] ;
        /*0090*/                   FADD R3, R12, R12 ;
        /*00a0*/                   LDG.E R13, desc[UR4][R4.64] ;
        /*00b0*/              @P0 BRA `(.L_x_1) ;
        /*00c0*/                   LDG.E R14, desc[UR4][R4.64] ;
.section .nv.info
"""


def test_loads_are_counted_up_to_the_first_that_is_read():
    found = sass.kernels_of(LINES)
    assert set(found) == {"copy"} and sass.loads_in_flight(found["copy"]) == 3
    first = [line for line in found["copy"] if "/*00" in line]
    assert [sass.loads_in_flight(first[:count]) for count in (1, 2, 4, 6, 8)] == [1, 2, 2, 2, 3]
    assert sass.loads_in_flight(first[9:]) == 1  # a branch ends the count


@pytest.mark.parametrize("architecture", [ptxas.ARCHITECTURES[0], "sm_90"])
@pytest.mark.parametrize(
    ("file", "names"),
    [("rows.cu", ("gather",)), ("units.cu", ("update", "add", "times_slope")), ("optimiser.cu", ("adam",))],
)
def test_four_loads_are_under_way_before_one_is_waited_for(file, names, architecture):
    try:
        found = sass.code(kernels.HERE / file, architecture)
    except OSError as error:  # no nvcc, no nvdisasm
        pytest.skip(str(error))
    assert {name: sass.loads_in_flight(found[name]) >= 4 for name in names} == dict.fromkeys(names, True)
