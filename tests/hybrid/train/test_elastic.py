"""Runs of real models go on without ranks that are killed, to the bytes and the curve of one. (hybrid/train/runs.py too)"""

import contextlib
import json
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.ranks import world
from hybrid.ranks.everyone import Member, RankLost
from hybrid.ranks.world import World
from hybrid.storage import checkpoint
from hybrid.train import elastic, store
from tests.hybrid.pvm import tiny
from tests.support import rank_train
from tests.support.plugin import offered_to_children
from tests.support.ranks import ended, started
from tests.support.small_runs import command

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)

RANKS, TICKS = 4, 22
CLOCKS = ("seconds", "processor_seconds", "evaluation_seconds")


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The command that trains a model of each kind that ranks share, into a folder."""
    data = tmp_path_factory.mktemp("data")
    lines = (" ".join(f"w{i * j % 17}" for j in range(9)) for i in range(80))
    (data / "text.txt").write_text("\n".join(lines))

    def make(kind, out):
        own = ["--steps", str(TICKS), "--every", "8"] if kind == "pvm" else ["--micro-batches", str(RANKS)]
        if kind == "pvm":
            return tiny.command(data, out, *own, "--threads", "1")
        return command(kind, data, out, *own, "--threads", "1")

    return make


@pytest.fixture(scope="module")
def alone(commands, tmp_path_factory):
    """The run of one rank, by kind."""
    found = {}

    def run(kind):
        if kind not in found:
            found[kind] = tmp_path_factory.mktemp(kind) / "run"
            assert main(commands(kind, found[kind])) == 0
        return found[kind]

    return run


@pytest.fixture
def killed(open_mpi, tmp_path):
    """Trains on 4 ranks, of which some are killed; returns exit code, stderr, and the ticks that were done again."""

    def run(*kills, words, least=1, limit=240.0):
        given = [str(tmp_path / "killed"), *kills, "--", *words]
        running = started(*given, ranks=RANKS, least=least, module="tests.support.rank_train")
        code, _, err = ended(running, limit)
        again = tmp_path / "killed.again"
        lines = again.read_text().splitlines() if again.exists() else []
        return code, err, [(int(tick), int(ranks), float(since)) for tick, ranks, since in map(str.split, lines)]

    return run


def points(run):
    """Of the curve, without clocks."""
    found = map(json.loads, (run / store.CURVE).read_text().splitlines())
    return [{name: value for name, value in point.items() if name not in CLOCKS} for point in found]


def same(run, expected):
    """Two runs came to the same end, and tell the same of their way."""
    assert tiny.tensors(run) == tiny.tensors(expected)
    assert points(run) == points(expected)
    assert (
        json.loads((run / store.REPORT).read_text()).keys() == json.loads((expected / store.REPORT).read_text()).keys()
    )


def said(err):
    """What was said of losses: of each the numbers that are lost, how many ranks there are of how many, the tick, from what."""
    lines = re.findall(r"^hybrid: (.*) lost; (\d) of (\d) ranks go on from \w+ (\d+) \((.*)\)$", err, re.MULTILINE)
    return [
        ([int(n) for n in re.findall(r"rank (\d) on", who)], *map(int, numbers), where)
        for who, *numbers, where in lines
    ]


@pytest.mark.parametrize("kind", ["pvm", "language"])
def test_a_model_goes_on_without_rank_0_and_without_another(killed, commands, alone, tmp_path, kind):
    code, err, again = killed("4.within.2", "13.within.0", words=commands(kind, tmp_path / "run"))
    assert code == 0, err
    first, second = said(err)
    assert first[:3] == ([2], 3, 4) and second[:3] == ([0], 2, 3)
    assert first[4] == second[4] == "copies in memory" and first[3] <= 4 and second[3] <= 13
    assert [one[:2] for one in again] == [(first[3], 3), (second[3], 2)]
    assert f"rank 2 on {platform.node()} lost; 3 of 4" in err
    same(tmp_path / "run", alone(kind))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(34))
@pytest.mark.parametrize("kind", ["pvm", "language"])
def test_random_kills(killed, commands, alone, tmp_path, kind, seed):
    """Three of four ranks, one after another or at once, at random ticks and places: 204 kills in all.

    On a machine that does nothing else: the time is measured.
    """
    draw = np.random.default_rng(seed)
    kills = [f"{draw.integers(1, TICKS)}.{draw.choice(rank_train.PLACES)}.{n}" for n in draw.permutation(RANKS)[:3]]
    code, err, again = killed(*kills, words=commands(kind, tmp_path / "run"))
    assert code == 0, (kills, err)
    assert len(re.findall(r"was killed \(signal 9\)", err)) == 3, (kills, err)
    same(tmp_path / "run", alone(kind))
    assert all(since < 2 for _, _, since in again), (kills, again)


@pytest.fixture
def parted(monkeypatch, tmp_path):
    """A model of the smallest kind, which makes no copies: the words that train it, and the numbers of one rank."""
    offered_to_children(monkeypatch, tmp_path / "offered", "parted", "hybrid.models")
    numbers = np.arange(10.0)
    for tick in range(24):
        numbers += 0.1 * (np.cos(tick) - numbers * numbers.sum() / 10)
    words = ["train", "parted", "--out", str(tmp_path / "run"), "--device", "cpu", "--threads", "1"]
    return [*words, "--save-every", "0"], numbers.tolist()


@pytest.mark.parametrize(
    ("kill", "said_of"),
    [("0.write.0", []), ("11.after.0", [([0], 3, 4, 8, "the checkpoint")])],
)
def test_a_model_without_copies_goes_back_to_its_checkpoint_or_begins_again(killed, parted, tmp_path, kill, said_of):
    words, numbers = parted
    code, err, _ = killed(kill, words=words)
    assert code == 0, err
    assert said(err) == said_of
    assert checkpoint.load(tmp_path / "run")[0]["numbers"].tolist() == numbers


def test_fewer_than_are_to_go_on_end_with_the_checkpoint_named(open_mpi, parted, tmp_path):
    words, _ = parted
    command = [sys.executable, "-m", "hybrid.cli", "launch", "-n", "2:2", *words, "--ill", "kill 1 11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    run, expected = tmp_path / "run", "1 of 2 ranks are left, expected 2 or more: all are ended\n"
    assert done.returncode == 128 + 9 and expected in done.stderr
    stands = f"hybrid: the checkpoint of tick 8 stands in {run}; go on with: hybrid train --resume {run}\n"
    assert done.stderr.endswith(stands)


@pytest.mark.parametrize(
    ("ill", "code", "said_of"),
    [
        ("raise 1 11", 1, "RuntimeError: boom"),
        ("feed 1 11", 2, "the feed broke; the checkpoint of tick 8 stands in"),
    ],
)
def test_a_rank_that_fails_ends_all(open_mpi, parted, ill, code, said_of):
    words, _ = parted
    found, _, err = ended(started(*words, "--ill", ill, ranks=2, least=1, module="hybrid.cli"), limit=240.0)
    assert found == code and said_of in err, err


def test_copies_take_a_small_part_of_the_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(elastic.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(world, "_current", World(0, 2, "north", 0, True, least=1))
    memory = elastic.Memory()
    assert memory.due()

    class Slow:
        made = True

        def copied(self, model, facts):
            now[0] += 3.0
            return facts if self.made else None

    job = Slow()
    memory.renew(job, None, {"of": 1})
    assert memory.copies == {"of": 1} and not memory.due()
    now[0] += 59.0
    assert not memory.due()
    now[0] += 1.0
    assert memory.due()
    job.made = False
    memory.renew(job, None, {})
    now[0] += 1e9
    assert memory.copies is None and not memory.due()


@pytest.mark.parametrize("this", [World(0, 1, "north", 0, True, least=1), World(0, 4, "north", 0, True)])
def test_nothing_is_copied_where_no_rank_can_be_lost(monkeypatch, this):
    monkeypatch.setattr(world, "_current", this)
    assert not elastic.Memory().wanted and not elastic.Memory().due()


def test_work_is_done_again_until_too_few_are_left(monkeypatch):
    monkeypatch.setattr(world, "_current", World(0, 1, "north", 0, False))
    calls = []

    def work(ranks, again):
        calls.append(again)
        if len(calls) < 3:
            raise RankLost([Member(1, "north")], 1)
        return "done"

    assert elastic.going_on(work) == "done" and calls == [False, True, True]
    monkeypatch.setattr(world, "_current", World(0, 1, "north", 0, False, least=2))
    calls.clear()
    with pytest.raises(elastic.TooFew, match=r"rank 1 on north lost; 1 go on, expected 2 or more"):
        elastic.going_on(work)


def test_too_few_without_a_launcher_that_knows_are_told_what_stands(monkeypatch, tmp_path):
    """Where a machine is lost, say, nobody says that its ranks were killed."""
    monkeypatch.setattr(world, "_current", World(0, 1, "north", 0, False, least=2))

    def learn(*given):
        raise RankLost([Member(1, "south")], 1)

    begun = elastic.Begun([Member(0, "north"), Member(1, "south")], {}, None, None)
    with pytest.raises(elastic.TooFew) as caught, contextlib.ExitStack() as under_way:
        elastic.Survivors(tmp_path, begun, under_way).finish(learn)
    assert caught.value.__notes__ == [f"no whole checkpoint stands in {tmp_path}"]


def test_who_takes_a_folder_over_is_alone_there_and_removes_what_was_half_written(tmp_path):
    part = tmp_path / ".report.json.0123456789abcdef.part"
    part.touch()
    with store.taken_over(tmp_path, 0.0):
        assert not part.exists()
        with pytest.raises(ValueError, match="works on this run"), store.taken_over(tmp_path, 0.0):
            pass
