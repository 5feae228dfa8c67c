from pathlib import Path

import pytest

from hybrid import data
from hybrid.data import data_folder


def test_what_is_named_comes_before_the_environment_and_that_before_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path / "there"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(data.sys, "platform", "linux")
    assert data_folder(str(tmp_path / "here")) == tmp_path / "here"
    assert data_folder() == tmp_path / "there"
    monkeypatch.delenv("HYBRID_DATA")
    assert data_folder() == tmp_path / "cache" / "hybrid-engine" / "data"
    assert data_folder("here") == Path.cwd() / "here"


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")]
)
def test_caches_by_system(monkeypatch, tmp_path, platform, expected):
    for name in ("HYBRID_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(data.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert data_folder() == tmp_path / expected / "hybrid-engine" / "data"
