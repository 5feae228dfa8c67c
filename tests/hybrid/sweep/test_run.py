"""hybrid/sweep/run.py: who is trained when, and what becomes of it. Trials are pretended here; test_trial.py trains some."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from hybrid.sweep import records, run
from hybrid.sweep.file import meaning
from hybrid.sweep.trial import Outcome
from hybrid.train.job import Watched

RATES = [0.03, 0.01, 0.02, 0.05]


class Pretended:
    """Makes executors that write down what is asked of them, and answer with a perplexity of 1,000 rates / epochs.

    broken   rates of trials that fail
    """

    def __init__(self, broken=(), figure="perplexity", value=None):
        self.broken, self.figure, self.value = broken, figure, value
        self.asked = []

    def __call__(self, workers):
        pretended = self

        class Pool(ThreadPoolExecutor):
            def submit(self, perform, task):
                return super().submit(pretended.perform, task)

        return Pool(workers)

    def perform(self, task):
        epochs = task.length.get("epochs", 4)
        rate = task.options["rate"]
        self.asked.append((rate, epochs))
        if rate in self.broken:
            return Outcome(cause="it diverged")
        value = 1000 * rate / epochs if self.value is None else self.value
        return Outcome(report={"curve": [{"seconds": 1.5, self.figure: value}], "options": {"patience": 0}})


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "book.txt").write_text("a b c d\n" * 40)

    def make(strategy="grid", rates=RATES, **said):
        fixed = {"text": str(tmp_path / "book.txt"), "device": "cpu"}
        return meaning(
            {"sweep": {"model": "language", "strategy": strategy, **said}, "fixed": fixed, "vary": {"rate": rates}}
        )

    return make


def test_all_trials_are_compared_best_first(sweep, tmp_path):
    found = run.run(sweep(), tmp_path / "out", 2, 1, executor=Pretended())
    assert found.figure == Watched("perplexity")
    assert [(record.trial, record.value) for record in found.ordered] == [(2, 2.5), (3, 5.0), (1, 7.5), (4, 12.5)]
    assert (tmp_path / "out" / "trials.md").read_text() == found.table
    assert (tmp_path / "out" / "sweep.png").exists()
    assert not (tmp_path / "out" / "stop").exists()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_best_of_halving_go_on_whatever_the_number_of_workers(sweep, tmp_path, workers):
    pretended = Pretended(broken=[0.01])
    halving = sweep("halving", trials=4, first=1, factor=2)
    found = run.run(halving, tmp_path / "out", workers, 1, executor=pretended)
    drawn = [0.05, 0.02, 0.03, 0.01]  # by seed 0
    assert sorted(pretended.asked) == sorted([*((rate, 1) for rate in drawn), (0.02, 2), (0.03, 2), (0.02, 4)])
    assert [(record.options["rate"], record.length) for record in found.ordered[:3]] == [
        (0.02, 4),
        (0.02, 2),
        (0.03, 2),
    ]
    assert found.ordered[-1].cause == "it diverged"


def test_finished_trials_are_not_repeated_and_failed_ones_on_request(sweep, tmp_path, capsys):
    run.run(sweep(), tmp_path / "out", 1, 1, executor=Pretended(broken=[0.02]))
    assert "hybrid: trial 3 (rate 0.02) failed: it diverged\n" in capsys.readouterr().err
    again = Pretended()
    assert run.run(sweep(), tmp_path / "out", 1, 1, executor=again).ordered[-1].trial == 3
    assert again.asked == []
    found = run.run(sweep(), tmp_path / "out", 1, 1, retry=True, executor=again)
    assert again.asked == [(0.02, 4)]
    assert not any(record.cause for record in found.ordered)


def test_an_executor_that_breaks_leaves_what_was_done(sweep, tmp_path):
    pretended = Pretended()
    perform = pretended.perform
    pretended.perform = lambda task: perform(task) if task.options["rate"] != 0.02 else 1 / 0
    with pytest.raises(ZeroDivisionError):
        run.run(sweep(), tmp_path / "out", 1, 1, executor=pretended)
    kept = {record.options["rate"] for record in records.load(tmp_path / "out").values()}
    assert 0.02 not in kept
    again = Pretended()
    run.run(sweep(), tmp_path / "out", 1, 1, executor=again)
    assert again.asked == [(rate, 4) for rate in RATES if rate not in kept]


def test_more_trials_may_be_asked_for_and_nothing_else(sweep, tmp_path):
    space = {"from": 0.01, "to": 0.1}
    run.run(sweep("random", space, trials=2), tmp_path / "out", 1, 1, executor=Pretended())
    more = Pretended()
    assert len(run.run(sweep("random", space, trials=3), tmp_path / "out", 1, 1, executor=more).ordered) == 3
    assert len(more.asked) == 1
    with pytest.raises(
        ValueError, match=r"\[sweep\] seed: found 1, expected 'none', with which the sweep in .* was begun"
    ):
        run.run(sweep("random", space, trials=3, seed=1), tmp_path / "out", 1, 1, executor=more)
    with pytest.raises(ValueError, match=r"\[vary\] rate: found .*0.2.*, expected .*0.1"):
        run.run(sweep("random", {"from": 0.01, "to": 0.2}, trials=3), tmp_path / "out", 1, 1, executor=more)
    assert len(more.asked) == 1


def test_halving_keeps_its_number_of_trials_from_which_its_lengths_follow(sweep, tmp_path):
    run.run(sweep("halving", trials=2, first=1, factor=2), tmp_path / "out", 1, 1, executor=Pretended())
    more = Pretended()  # of 4 trials two go on to 2 epochs, and the best stands at 4 already
    with pytest.raises(
        ValueError, match=r"\[sweep\] trials: found 4, expected 2, with which the sweep in .* was begun"
    ):
        run.run(sweep("halving", trials=4, first=1, factor=2), tmp_path / "out", 1, 1, executor=more)
    assert more.asked == []


def test_where_all_trials_fail_the_cause_is_told(sweep, tmp_path):
    with pytest.raises(ValueError, match=r"all trials failed, the first with: it diverged; .*--retry"):
        run.run(sweep(), tmp_path / "out", 1, 1, executor=Pretended(broken=RATES))


def test_a_figure_that_is_no_number_is_a_failure(sweep, tmp_path):
    with pytest.raises(ValueError, match="perplexity is not a finite number"):
        run.run(sweep(), tmp_path / "out", 1, 1, executor=Pretended(value=float("nan")))


def test_the_goal_is_a_figure_of_the_curve_in_its_direction(sweep, tmp_path):
    found = run.run(sweep(maximise="loss"), tmp_path / "most", 1, 1, executor=Pretended(figure="loss"))
    assert found.ordered[0].trial == 4 and found.figure == Watched("loss", lowest=False)
    with pytest.raises(ValueError, match="of 'perplexity' less is better"):
        run.run(sweep(maximise="perplexity"), tmp_path / "out", 1, 1, executor=Pretended())
    with pytest.raises(ValueError, match=r"minimise: found 'los', expected a figure of the curve: seconds, perplexity"):
        run.run(sweep(minimise="los"), tmp_path / "los", 1, 1, executor=Pretended())


def test_missing_data_are_told_before_any_trial(sweep, tmp_path):
    (tmp_path / "book.txt").unlink()
    pretended = Pretended()
    with pytest.raises(OSError, match=r"book\.txt"):
        run.run(sweep(), tmp_path / "out", 1, 1, executor=pretended)
    assert pretended.asked == []


def test_a_run_that_could_stop_early_is_judged_by_its_best_point():
    curve = [{"perplexity": value} for value in (5.0, 3.0, None, 4.0)]
    assert run.value_of({"curve": curve, "options": {"patience": 2}}, Watched("perplexity")) == 3.0
    assert run.value_of({"curve": curve, "options": {"patience": 0}}, Watched("perplexity")) == 4.0
