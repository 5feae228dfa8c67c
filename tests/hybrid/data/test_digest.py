import hashlib
import subprocess

import pytest

from hybrid.data.catalogue import File
from hybrid.data.digest import matches, right

CONTENT = b"some bytes\n" * 1000


def test_sha256(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    file = File("file", len(CONTENT), "sha256:" + hashlib.sha256(CONTENT).hexdigest())
    assert right(file, path) and matches(file, [CONTENT[:7], CONTENT[7:]])
    assert not right(file._replace(size=1), path)
    path.write_bytes(CONTENT[:-1] + b".")
    assert not right(file, path)


def test_the_name_that_git_gives_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    try:
        name = subprocess.run(["git", "hash-object", path], capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        pytest.skip("git is not installed")
    file = File("file", len(CONTENT), f"git:{name}")
    assert right(file, path)
    assert not matches(file, [CONTENT[:-1] + b"."])
