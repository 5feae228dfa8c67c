"""hybrid/sweep/records.py: what is kept of trials, and their order."""

import pytest

from hybrid.sweep import records
from hybrid.sweep.records import Record
from hybrid.train.job import Watched

FOUND = [
    Record(1, 1, {"a": 2}, value=3.0, seconds=0.5),
    Record(2, 1, {"a": True}, cause="no"),
    Record(1, 3, {"a": 2}, value=1.0),
]


def test_what_is_kept_comes_back(tmp_path):
    assert records.load(tmp_path) == {} and records.begun(tmp_path) is None
    kept = {(record.trial, record.length): record for record in FOUND}
    records.keep(tmp_path, kept)
    records.begin(tmp_path, {"sweep": {"trials": 2}}, Watched("loss"))
    assert records.load(tmp_path) == kept
    assert records.begun(tmp_path) == ({"sweep": {"trials": 2}}, Watched("loss"))


@pytest.mark.parametrize("name", ["trials.md", "sweep.pdf", "stop", "trial-001", "trial-002.log"])
def test_what_no_sweep_has_left_is_not_taken_over(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(
        ValueError, match=f"holds no sweep, but has {name}, which a sweep writes too; name another --out"
    ):
        records.refuse_strangers(tmp_path)
    (tmp_path / records.SWEEP).touch()
    records.refuse_strangers(tmp_path)


@pytest.mark.parametrize(("name", "read"), [(records.TRIALS, records.load), (records.SWEEP, records.begun)])
def test_altered_files_are_refused(tmp_path, name, read):
    (tmp_path / name).write_text('{"trail": 1}\n')
    with pytest.raises(ValueError, match=f"{name}: not .*of a sweep.*altered"):
        read(tmp_path)


@pytest.mark.parametrize(("lowest", "expected"), [(True, [5, 1, 3, 4, 2]), (False, [5, 4, 1, 3, 2])])
def test_the_furthest_come_first_and_of_them_the_best(lowest, expected):
    values = {1: 1.0, 2: None, 3: 1.0, 4: 2.0}
    found = [Record(number, 1, {}, value=value) for number, value in values.items()]
    found.append(Record(5, 3, {}, value=1.5))
    assert [record.trial for record in records.best_first(found, lowest)] == expected
