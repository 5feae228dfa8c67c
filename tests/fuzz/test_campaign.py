"""A few cases of every subject find nothing; readers with planted faults are found out."""

from pathlib import Path

import pytest

from tests.fuzz import campaign, worker
from tests.fuzz.subject import Subject
from tests.fuzz.subjects import SUBJECTS


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_many_cases(tmp_path, subject):
    assert campaign.findings([subject], 1000, 1, tmp_path, workers=1) == []


def test_a_few_cases_of_all(tmp_path):
    assert campaign.findings([*SUBJECTS], 6, 0, tmp_path, workers=1) == []


def test_what_is_written_by_an_odd_name_is_gone_with_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "of a worker"
    odd = Subject(lambda folder: folder / "run", lambda path: Path("odd").write_text("numbers"))
    good = worker.prepared(odd._replace(read=lambda path: None), folder)
    assert worker.read(odd, good.path, good.path) is None
    assert [entry.name for entry in folder.iterdir()] == ["odd"] and not Path("odd").exists()


PLANTED = {
    "raises": "undocumented",
    "nameless": "refused without the file's name",
    "hoards": "over 1 GiB",
    "spins": "over 0.2 s",
    "sleeps": "hangs, and no alarm ends it",
    "crashes": "the process ended, code -11: ",
}


def test_what_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "SUBJECTS", dict.fromkeys(PLANTED, SUBJECTS["text"]))
    monkeypatch.setattr(campaign, "MODULE", "tests.fuzz.planted")
    monkeypatch.setattr(campaign, "HUNG", 4.0)
    found = campaign.findings([*PLANTED], 2, 0, tmp_path, workers=1)
    assert {one["subject"]: one["kind"] for one in found} == PLANTED
    assert [one["case"] for one in found] == [0, 1] * len(PLANTED)
    kept = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert kept == PLANTED.keys() - {"sleeps", "crashes"} | {campaign.FOUND}
