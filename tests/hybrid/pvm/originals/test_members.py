"""Zips that are cut off, damaged, locked or lie of themselves are refused by the member's name."""

import pickle
import struct
import zipfile

import pytest

from hybrid.pvm.originals.checkpoint import read


def test_a_cut_zip_and_what_is_no_zip(tmp_path, whole):
    data = whole.read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 30):
        path = tmp_path / "cut.zip"
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"cut.zip: found no whole zip \(.*expected Sim_"):
            read(path)
    with pytest.raises(FileNotFoundError, match=r"none.zip"):
        read(tmp_path / "none.zip")


def test_a_damaged_member_and_one_that_lies_of_its_size(tmp_path, whole):
    data = bytearray(whole.read_bytes())
    with zipfile.ZipFile(whole) as file:
        info = file.getinfo("pvm/weight_memory_main.npy")
    path = tmp_path / "Sim.zip"
    middle = info.header_offset + info.compress_size // 2
    path.write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])
    with pytest.raises(ValueError, match=r"pvm/weight_memory_main.npy: found it damaged \(.*\), expected a whole file"):
        read(path)
    at = data.rindex(b"pvm/specs.pkl") - 46 + 24  # the size it has once unpacked, in the directory
    data[at : at + 4] = struct.pack("<I", 10)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"pvm/specs.pkl: found"):
        read(path)


def test_an_unknown_compression_and_a_locked_member_are_refused(tmp_path, whole):
    path = tmp_path / "Sim.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("pvm/step.pkl", pickle.dumps(7))
    with pytest.raises(ValueError, match=r"pvm/step.pkl: .*expected deflated"):
        read(path)
    data = bytearray(whole.read_bytes())
    data[data.rindex(b"pvm/step.pkl") - 46 + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"pvm/step.pkl: .*expected deflated"):
        read(path)
