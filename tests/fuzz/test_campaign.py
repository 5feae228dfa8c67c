"""A few cases of every subject find nothing; readers with planted faults are found out."""

import pytest

from tests.fuzz import campaign
from tests.fuzz.subjects import SUBJECTS


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_many_cases(tmp_path, subject):
    assert campaign.findings([subject], 1000, 1, tmp_path, workers=1) == []


def test_a_few_cases_of_all(tmp_path):
    assert campaign.findings([*SUBJECTS], 6, 0, tmp_path, workers=1) == []


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
