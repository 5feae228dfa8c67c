"""`--regrow`: the tree of a run is exchanged once after an epoch, wherever the run is stopped; its end is the same."""

import json
import signal

import pytest

from hybrid.cli import main
from hybrid.train import store
from tests.support.small_runs import Killed, command, kill, stop_at, tensors, ticks


@pytest.mark.parametrize("kind", ["language", "factors"])
def test_a_run_that_is_stopped_before_or_after_the_exchange_ends_with_the_same_bytes(
    tmp_path, data, undrawn, every_tick, capsys, kind
):
    whole, killed, stopped, plain = (tmp_path / name for name in ("whole", "killed", "stopped", "plain"))
    more = ["--readout", "tree", "--regrow", "1", "--save-every", "0"]
    assert main(command(kind, data, whole, *more)) == 0
    end = ticks(whole) // 2
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_at(patch, end, kill)  # its last save is that of the tick before
        main(command(kind, data, killed, *more))
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, end, lambda: signal.raise_signal(signal.SIGTERM))  # saved after the exchange
        assert main(command(kind, data, stopped, *more)) == 128 + signal.SIGTERM
    assert ticks(killed) == end - 1 and ticks(stopped) == end
    for run in (killed, stopped):
        assert main(["train", "--resume", str(run)]) == 0
        assert tensors(run) == tensors(whole)
    assert capsys.readouterr().err.count("hybrid: tree replaced after epoch 1: ") == 3
    assert json.loads((whole / store.RUN).read_text())["regrow"] == [1]
    assert main(command(kind, data, plain, "--readout", "tree")) == 0
    assert tensors(plain) != tensors(whole)


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("language", ["--regrow", "1,2"], "--regrow: found 2, expected epochs before the last one, 2 (--epochs)"),
        ("language", ["--regrow", "2,1"], "--regrow: found '2,1', expected numbers that rise"),
        ("words", ["--readout", "tree", "--regrow", "1"], "--regrow: not used by `train words`, which has no trunk"),
    ],
)
def test_refused_in_one_line(tmp_path, data, capsys, kind, more, said):
    try:
        code = main(command(kind, data, tmp_path / "run", *more))
    except SystemExit as left:
        code = left.code
    assert code == 2 and said in capsys.readouterr().err and not (tmp_path / "run").exists()
