"""hybrid/sweep/file.py, asked.py: what a file means, and that all that is wrong is refused by name."""

import pytest

from hybrid.sweep import file
from hybrid.sweep.asked import words
from hybrid.sweep.space import Choice, Range

GOOD = """
[sweep]
model = "language"
strategy = "random"
trials = 5

[fixed]
text = "book.txt"
min-count = 1

[vary]
rate = {from = 0.01, to = 0.1, log = true}
readout = ["tree", "full"]
"""


def written(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_what_a_file_means(tmp_path):
    sweep = file.read(written(tmp_path, GOOD))
    assert (sweep.model, sweep.strategy, sweep.numbers) == ("language", "random", {"trials": 5, "seed": 0})
    assert sweep.figure is None
    assert sweep.fixed == {"text": "book.txt", "min_count": 1}
    assert sweep.vary == {"rate": Range(0.01, 0.1, log=True), "readout": Choice(("tree", "full"))}


def test_the_goal(tmp_path):
    sweep = file.read(written(tmp_path, GOOD.replace("trials = 5", 'trials = 5\nmaximise = "valid ndcg@10"')))
    assert (sweep.figure, sweep.lowest) == ("valid ndcg@10", False)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[sweep]", "[sweeps]", r"\[sweeps\]: not known, expected \[sweep\]"),
        ('"language"', '"langage"', r"\[sweep\] model: found 'langage', expected one of .*language"),
        ('"random"', '"bayes"', r"\[sweep\] strategy: found 'bayes', expected one of grid, random, halving"),
        ("trials = 5", "", r"\[sweep\] trials: found none, expected a whole number of at least 1"),
        ("trials = 5", "trials = 0", r"\[sweep\] trials: found 0, expected a whole number of at least 1"),
        ("trials = 5", "trials = true", r"\[sweep\] trials: found True"),
        ("trials = 5", "trials = 5\nfactor = 2", r"\[sweep\] factor: not used by strategy 'random'"),
        ("trials = 5", "trials = 5\nworker = 2", r"\[sweep\] worker: not known; expected model, strategy"),
        ("trials = 5", 'trials = 5\nminimise = "a"\nmaximise = "b"', "found both, expected one"),
        ("trials = 5", "trials = 5\nminimise = 3", r"\[sweep\] minimise: found 3, expected the name"),
        (
            "min-count",
            "min-cuont",
            r"\[fixed\] min-cuont: not an option of hybrid train language; did you mean min_count",
        ),
        ("min-count = 1", "min-count = 1\nmin_count = 2", r"\[fixed\] min_count: found twice"),
        ("min-count = 1", "min-count = 1.5", r"\[fixed\] min_count: found '1.5', expected a whole number"),
        ("min-count = 1", "rate = 1", r"\[vary\] rate: stands in \[fixed\] too"),
        ("min-count = 1", "threads = 1", r"\[fixed\] threads: not of a trial: .*hybrid sweep --threads"),
        ("min-count = 1", "out = 'x'", r"\[fixed\] out: not an option"),
        ("min-count = 1", "day = 2020-01-01", r"\[fixed\] day: not an option"),
        ("min-count = 1", "test = 2020-01-01", r"\[fixed\] test: found datetime.*, expected a string"),
        ("from = 0.01", "from = 0.2", r"\[vary\] rate: found from 0.2 to 0.1, expected two numbers that rise"),
        ("from = 0.01", "from = 0", r"\[vary\] rate: from: found 0, expected a number above 0"),
        ("log = true", "logs = true", r"\[vary\] rate: found 'logs', expected from, to, log or whole"),
        (
            "from = 0.01, to = 0.1, log = true",
            "from = -1.0, to = 1.0",
            r"\[vary\] rate: found '-1.0', expected a number",
        ),
        ('["tree", "full"]', '["tree", "ful"]', r"\[vary\] readout: .*'ful'.*full"),
        ('["tree", "full"]', "[]", r"\[vary\] readout: found \[\], expected a list"),
        ('["tree", "full"]', '["tree", "tree"]', r"\[vary\] readout: .*expected each value once"),
        ('["tree", "full"]', '"tree"', r"\[vary\] readout: found 'tree', expected a list of values or \{from"),
        ("[vary]", "[vary]\n[other]", r"\[other\]: not known"),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path, before, after, said):
    assert before in GOOD
    path = written(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(ValueError, match=f"sweep.toml: .*({said})"):
        file.read(path)


def test_a_grid_has_no_ranges_and_halving_no_lengths_of_its_own(tmp_path):
    with pytest.raises(ValueError, match=r"\[vary\] rate: found a range, expected a list"):
        file.read(written(tmp_path, GOOD.replace('"random"\ntrials = 5', '"grid"')))
    halving = GOOD.replace('"random"', '"halving"\nfirst = 1') + "epochs = [1, 2]\n"
    with pytest.raises(ValueError, match=r"\[vary\] epochs: halving lengthens trials itself"):
        file.read(written(tmp_path, halving))


def test_options_as_a_user_types_them():
    options = {"min_count": 2, "rate": 1e-5, "serial": True, "eos": False, "similarity": ["a", "b"]}
    assert words(options) == ["--min-count=2", "--rate=1e-05", "--serial", "--similarity=a", "--similarity=b"]
