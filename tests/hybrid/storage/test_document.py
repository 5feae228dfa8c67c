"""JSON and TOML of strangers are read, or refused by the file's name."""

import os

import pytest

from hybrid.storage import files


@pytest.mark.parametrize(("name", "text"), [("a.json", '{"b": [1]}'), ("a.toml", "b = [1]"), ("a", '{"b": [1]}')])
def test_what_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert files.read(tmp_path / name) == files.read(str(tmp_path / name)) == {"b": [1]}


BAD = {
    "cut short": ("a.json", b'{"b": [1', "not JSON"),
    "not UTF-8": ("a.json", b'{"b": "\xff"}', "not JSON"),
    "too deep": ("a.json", b"[" * 100_000 + b"]" * 100_000, "nested too deeply, expected JSON"),
    "a number too long": ("a.json", b"1" * 5_000, "not JSON"),
    "no TOML": ("a.toml", b"b = ", "not TOML"),
    "TOML too deep": ("a.toml", b"b = " + b"[" * 5_000 + b"]" * 5_000, "nested too deeply, expected TOML"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_refused(tmp_path, bad):
    name, content, said = BAD[bad]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        files.read(tmp_path / name)
    assert type(error.value) is ValueError
    assert str(error.value).startswith(str(tmp_path / name))


def test_what_is_refused_of_its_content_names_the_file():
    with pytest.raises(ValueError, match=r"^a\.json: rate: found -1$"), files.named("a.json"):
        raise ValueError("rate: found -1")
    with pytest.raises(IndexError, match=r"^a\.json: row 7$"), files.named("a.json"):
        raise IndexError("row 7")
    with pytest.raises(ValueError, match=r"^a\.json: said once$"), files.named("a.json"):
        raise ValueError("a.json: said once")


def test_what_is_no_file_is_refused_before_it_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "link.json").symlink_to("a.json")
    for name in ("a.json", "link.json"):
        with pytest.raises(OSError, match=rf"{name}: found no regular file, expected one; put the file itself"):
            files.read(tmp_path / name)


def test_pipes_that_the_user_hands_over_are_read():
    end, begin = os.pipe()
    os.write(begin, b"[1]")
    os.close(begin)
    assert files.read(f"/dev/fd/{end}") == [1]
    os.close(end)
