"""Trained runs used from the command line: recommend, next, neighbours; as
hybrid/cli/commands/__init__.py loads them."""

import csv
import json
import re

import pytest

from hybrid import open_run
from hybrid.cli import main
from tests.support.trained import copied

RUNS = {"factors": "factors_tree", "language": "language_tree", "words": "words_skipgram", "pvm": "pvm_unit"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run of every model, and files of its vectors."""
    folder = tmp_path_factory.mktemp("runs")
    for name, old in RUNS.items():
        copied(old, folder).rename(folder / name)
    assert main(["export", str(folder / "words"), str(folder / "v.bin"), "--format", "binary"]) == 0
    return folder


@pytest.fixture
def hybrid(capsys, folder, monkeypatch):
    """Runs a command in the folder; returns its exit code, output and errors."""
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def run(*arguments):
        code = main([*arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def recommender(folder):
    return open_run(folder / "factors", device="cpu")


def test_recommendations_of_all_users_in_a_file(hybrid, folder, recommender):
    assert hybrid("recommend", "factors", "--k", "3", "--out", "recs.csv")[0] == 0
    with open(folder / "recs.csv", newline="") as file:
        rows = [(user, item, float(score)) for user, _, item, score in list(csv.reader(file))[1:]]
    expected = [(user, item, score) for user, _, item, score in recommender.recommend(k=3).rows()]
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in expected], rel=1e-6)


@pytest.mark.parametrize("line", ["export factors", "recommend factors --out"])
def test_what_is_there_is_replaced_only_where_the_user_says_so_and_what_a_run_writes_never(hybrid, folder, line):
    for name in ("run.csv", "factors/curve.csv", "words/run.json", "words/checkpoint/checkpoint.json"):
        (folder / name).touch()
        before, words = (folder / name).read_bytes(), [*line.split(), name]
        if line.startswith("recommend") and name.endswith("json"):
            continue
        for more in ([], ["--overwrite"]):
            code, _, error = hybrid(*words, *more)
            written = name == "run.csv" and more
            assert code == (0 if written else 2), error
            assert "give --overwrite" in error or "name another file" in error or written
            assert ((folder / name).read_bytes() == before) != bool(written)
        (folder / name).unlink() if name.endswith("csv") else None


def test_recommendations_of_some_users_are_printed(hybrid, folder, recommender):
    users = recommender.users[1::-1]
    code, printed, error = hybrid("recommend", "factors", "--users", ",".join(users), "--k", "2")
    assert (code, error) == (0, "")
    found = recommender.recommend(users, 2)
    blocks = printed.split("\n\n")
    assert [block.split()[0] for block in blocks] == users
    assert [block.split()[1::2] for block in blocks] == found.names
    named = hybrid("recommend", "factors", "--users", ",".join(users), "--k", "2", "--json")
    records = json.loads(named[1])
    assert [record["user"] for record in records] == users
    assert [[one["item"] for one in record["found"]] for record in records] == found.names
    line = "recommend", "factors", "--users", users[0], "--k", "999", "--json"
    code, printed, error = hybrid(*line, "--include-seen")
    # as many as there are; what he had is among them
    assert len(json.loads(printed)[0]["found"]) == len(recommender.items)
    assert error == f"hybrid: --k 999: there are {len(recommender.items)} items\n"
    first, second = recommender.recommend(users[0], 2).names[0]
    for names, left in (((first, second), second), (("@some.txt",), second)):
        (folder / "some.txt").write_text(f"{first}\nnew of today\n\n{second}\n")
        code, printed, error = hybrid(*line, "--allowed", ",".join(names), "--forbidden", first)
        assert [one["item"] for one in json.loads(printed)[0]["found"]] == [left]
        assert ("--allowed: 1 of 3 items are not known, and left out" in error) == (names[0] == "@some.txt")


def test_recommendations_for_new_users(hybrid, recommender):
    a, b = recommender.items[:2]
    code, printed, _ = hybrid("recommend", "factors", "--history", f"{a},{b}", "--k", "2", "--json")
    expected = recommender.recommend_to([[a, b]], 2).names[0]
    (record,) = json.loads(printed)
    assert code == 0 and record["user"] == "new user" and [one["item"] for one in record["found"]] == expected
    _, printed, _ = hybrid("recommend", "factors", "--history", a, "--history", f'"{b}"', "--k", "1")
    assert re.findall(r"^new user \d$", printed, re.M) == ["new user 1", "new user 2"]


@pytest.mark.parametrize("run", ["factors", "language", "words"])
def test_neighbours_of_a_run(hybrid, folder, run):
    vectors = open_run(folder / run, device="cpu").vectors
    names = vectors.words[1:3]
    expected = vectors.neighbours(names, 2)
    code, printed, _ = hybrid("neighbours", run, *names, "--k", "2")
    assert code == 0 and [block.split()[0] for block in printed.split("\n\n")] == names
    _, printed, _ = hybrid("neighbours", run, *names, "--k", "2", "--json", "--device", "cpu", "--checkpoint", "last")
    found = [[one["name"] for one in record["found"]] for record in json.loads(printed)]
    assert found == expected.names
    assert open_run(folder / run, device="cpu").similar(names, 2).names == found
    _, printed, _ = hybrid("neighbours", run, names[0], "--k", "9999", "--json")
    assert len(json.loads(printed)[0]["found"]) == len(vectors) - 1


def test_neighbours_of_a_file(hybrid, folder):
    vectors = open_run(folder / "words", device="cpu").vectors
    a = vectors.words[0]
    found = json.loads(hybrid("neighbours", "v.bin", a, "--json", "--k", "3")[1])
    assert [one["name"] for one in found[0]["found"]] == vectors.neighbours(a, 3).names[0]


def test_a_text_is_continued(hybrid, folder):
    model = open_run(folder / "language", device="cpu")
    word = model.vocabulary.words[3]
    code, printed, error = hybrid("next", "language", word, "zzz", "--tokens", "4", "--seed", "5", "--temperature", "1")
    assert code == 0 and error == "hybrid: not in the vocabulary, read as <unk>: zzz\n"
    assert printed == f"{word} zzz {' '.join(model.continue_text(f'{word} zzz', 4, seed=5))}\n"
    found = json.loads(hybrid("next", "language", word, "--temperature", "0", "--json")[1])
    assert found == {"text": word, "words": model.continue_text(word, 20, temperature=0)}
    found = json.loads(hybrid("next", "language", word, "--k", "3", "--json")[1])
    assert "words" not in found and [name for name, _ in found["next"]] == [name for name, _ in model.next(word, 3)]
    assert "add --tokens N" in hybrid("next", "language", word, "--k", "3", "--seed", "4")[2]
    both = hybrid("next", "language", word, "--k", "2", "--tokens", "1")[1].splitlines()
    assert len(both) == 3 and both[-1].startswith(word)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("recommend pvm", "pvm: a run of pvm cannot recommend; expected a run of factors"),
        ("next factors hello", "a run of factors cannot continue a text; expected a run of language"),
        ("neighbours v.bin x --device cpu", "--device: not used with a file of vectors"),
        ("recommend factors --users a --history b", "--users and --history contradict each other"),
        ("recommend factors --columns a,b", "--columns: needs --ratings FILE"),
        ("recommend factors --out recs.txt", "recs.txt: expected a name that ends with .csv or .parquet"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_code_2(hybrid, folder, line, message):
    before = {path.name for path in folder.iterdir()}
    code, printed, error = hybrid(*line.split())
    assert (code, printed) == (2, "")
    assert re.search(message, error) and error.startswith("hybrid: error: ") and error.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before
