import pytest

from hybrid.formats import lines
from hybrid.formats.lines import numbered


def test_numbers_and_texts(tmp_path):
    path = tmp_path / "file"
    path.write_bytes("\ufeffone\r\n\ntwo ü\nthree".encode())
    assert list(numbered(path)) == [(1, "one"), (2, ""), (3, "two ü"), (4, "three")]


def test_refusals(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"one\n\xff\n")
    with pytest.raises(ValueError, match=rf"{path}, line 2: not UTF-8 \(invalid start byte\)"):
        list(numbered(path))
    monkeypatch.setattr(lines, "LONGEST", 8)
    path.write_bytes(b"one\n12345678\n")
    with pytest.raises(ValueError, match="line 2: more than 8 bytes long"):
        list(numbered(path))
    with pytest.raises(FileNotFoundError):
        list(numbered(tmp_path / "none"))
