"""Pickles as data: plain values and NumPy's arrays come back, anything else is refused and nothing is run."""

import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from hybrid.pvm.originals.pickles import unpickled
from tests.support.hostile_pickles import Call

PLAIN = [None, True, False, 0, 255, 65535, -1, 2**31 - 1, -(2**31), 2**40, 1.5, "", "ä", "x" * 300, (), (1,), (1, 2)]
PLAIN += [(1, 2, 3)]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back(no_pickle, protocol):
    value = [*PLAIN, (1, 2, 3, 4), [], [1], {}, {"a": [1, {"b": (None,)}], "c": 2}, list(range(5000)), PLAIN[7:]]
    value += [value[-1], b"bytes" * 100]
    assert unpickled("member", pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_arrays_dtypes_and_numbers_of_numpy_come_back(no_pickle, protocol, dtype):
    array = np.array([1, 0, 1]).astype(dtype)
    found = unpickled("member", pickle.dumps([array, array, array.dtype, array[0]], protocol))
    for one in found[:2]:
        assert one.dtype == dtype and one.tobytes() == array.tobytes()
    assert found[2] == array.dtype and found[3] == array[0].item() and type(found[3]) in (float, int, bool)


CALLS = [Call(os.system, "exit 3"), Call(eval, "1 + 1"), Call(bytearray, 10**9)]
NESTED = [np.array(CALLS[:1], object), {"a": [1, (Call(eval, "1"),)]}]
OTHERS = [{1, 2}, np.ones(2, ">f4"), np.zeros(2, [("a", "f4")]), np.datetime64("2020"), os.system, 2**5000]


@pytest.mark.parametrize("evil", CALLS + NESTED + OTHERS)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_anything_else_is_refused_with_its_opcode(no_pickle, protocol, evil):
    with pytest.raises(ValueError, match=r"folder/member: refused this pickle: opcode [A-Z]+[A-Z0-9_]* at byte \d+"):
        unpickled("folder/member", pickle.dumps(evil, protocol))


LONG = struct.pack("<Q", 2**62)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff.", "damaged pickle: at position 0, opcode b'\\\\xff' unknown"),
        (b"\x80\x04\x8e" + LONG, "damaged pickle after opcode PROTO: expected 4611686018427387904 bytes"),
        (b"X\xff\xff\xff\x7fx.", "damaged pickle: expected 2147483647 bytes"),
        (b"X\x01\x00\x00\x00\xff.", "damaged pickle: .*utf-8"),
        (b"\x80\x02cbuiltins\neval\n(X\x01\x00\x00\x001tR.", "opcode GLOBAL at byte 2: it names 'builtins.eval'"),
        (b"(ios\nsystem\n.", "opcode INST at byte 1, which is none of plain data"),
        (b"(cos\nsystem\nX\x01\x00\x00\x001o.", "opcode GLOBAL at byte 1: it names 'os.system'"),
        (b".", "nothing on its stack"),
        (b"K\x01K\x02.", "opcode STOP with 1 values and 0 bytes left over"),
        (b"K\x01.K", "opcode STOP with 0 values and 1 bytes left over"),
        (b"K\x01K\x02a.", "opcode APPEND at byte 4: no list on its stack"),
        (b"t.", "opcode TUPLE at byte 0: no mark"),
        (b"h\x07.", "opcode BINGET at byte 0: nothing remembered as 7"),
        (b"}]K\x01s.", "opcode SETITEM at byte 4: keys of a dict"),
        (b"K\x01K\x02\x93.", "opcode STACK_GLOBAL at byte 4: it names 'no words'"),
        (b"K\x01)R.", "opcode REDUCE at byte 3: it calls what cannot be called"),
        (b"cnumpy\ndtype\n)R.", "0 arguments for dtype, expected 3"),
        (b"cnumpy\ndtype\nX\x01\x00\x00\x00O\x89\x88\x87R.", "a dtype other than f4"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x89\x88\x87RNb.", "opcode BUILD at byte .*: no description"),
        (b"cnumpy.core.multiarray\n_reconstruct\nNK\x01K\x02\x87R.", "an array that is no ndarray"),
        (b"c_codecs\nencode\nNN\x86R.", "an encoding other than latin1"),
    ],
)
def test_a_pickle_that_is_wrong_by_itself(no_pickle, data, message):
    with pytest.raises(ValueError, match=f"^member: .*(?:{message})"):
        unpickled("member", data)


def test_an_array_must_be_as_large_as_it_says():
    data = pickle.dumps(np.ones(3, np.float32), 3)
    huge = data.replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85")
    assert huge != data
    with pytest.raises(ValueError, match=r"opcode BUILD at byte .*: an array of 12 bytes, which do not fit its shape"):
        unpickled("member", huge)


def test_every_cut_of_a_pickle_is_refused():
    data = pickle.dumps([{"a": np.arange(3), "b": (1, 2.5)}, np.float32(1)])
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"^member: "):
            unpickled("member", data[:length])


AMPLIFIED = {  # a call that is said once more takes four bytes
    "bytes of a text": b"\x80\x02(c_codecs\nencode\nq\x00X\x88\x13\x00\x00"
    + b"a" * 5000
    + b"X\x06\x00\x00\x00latin1\x86q\x01",
    "arrays of a buffer": b"\x80\x05(cnumpy.core.numeric\n_frombuffer\nq\x00(\x96\x88\x13"
    + bytes(6 + 5000)
    + b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x89\x88\x87RM\xe2\x04\x85X\x01\x00\x00\x00Ctq\x01",
}


@pytest.mark.parametrize("begin", AMPLIFIED)
def test_what_is_made_is_bounded_by_the_pickle(no_pickle, begin):
    assert unpickled("member", AMPLIFIED[begin] + b"h\x00h\x01Rt.")
    amplified = AMPLIFIED[begin] + b"h\x00h\x01R" * 1000 + b"t."
    tracemalloc.start()
    try:
        message = rf"^member: .*opcode REDUCE at byte .* bytes made, expected at most {2 * len(amplified):,}"
        with pytest.raises(ValueError, match=message):
            unpickled("member", amplified)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
