"""The board of language models: every output layer learns under an LSTM whose state is carried; averages; the table."""

import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.quality import language_board as board

WORDS = 9  # in a circle, with a word left out now and then


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Arguments of the command line, for three small texts and LSTMs of 8 units."""
    rng = np.random.default_rng(0)
    for name, lines in {"train": 60, "valid": 12, "test": 12}.items():
        words = np.cumsum(1 + (rng.random((lines, 30)) < 0.1), axis=1) % WORDS
        (tmp_path / f"{name}.txt").write_text("\n".join(" ".join(f"w{word}" for word in line) for line in words))
    monkeypatch.setattr(board, "LSTMS", {"LSTM": 8})
    monkeypatch.setattr(board, "STREAMS", 4)
    monkeypatch.setattr(board, "SECONDS", ())
    monkeypatch.setattr(board, "FIRST", {"lr": 0.03, "rate": 0.3, "dropout": 0.0})
    texts = [str(tmp_path / f"{name}.txt") for name in ("train", "valid", "test")]
    names = ("budget", "seconds", "readouts", "quick", "seeds", "json")
    return types.SimpleNamespace(**dict.fromkeys(names), texts=texts, threads=1, epochs=[20], tries=1, only=["LSTM"])


def data_of(asked):
    return board.encoded([board.read(file, **board.CUT) for file in asked.texts])


def test_every_output_layer_learns_the_circle(asked, capsys):
    asked.readouts = [f"LSTM: {name}" for name in board.LAYERS] + ["Kneser-Ney of 5 words"]
    assert board.run(asked) == 0
    printed = capsys.readouterr().out
    rows = [line.split(" | ") for line in printed[printed.index("\n###") :].splitlines() if line.startswith("| LSTM")]
    names = [row[0].removeprefix("| LSTM: ") for row in rows]
    assert names == [name + more for name in board.LAYERS for more in ("", ", with Kneser-Ney")]
    figures = [[float(figure) for figure in row[2].split(" / ")] for row in rows]
    assert max(map(max, figures)) < 0.6 * WORDS
    assert all(mixed[0] <= own[0] for own, mixed in zip(figures[::2], figures[1::2], strict=True))


def test_a_mixture_pairs_each_word_with_its_own_probability(asked):
    """With the whole share, the mixture is Kneser-Ney alone, but for the first word of each stream."""
    data = data_of(asked)
    net = board.Net(data.counts, 8, board.LAYERS["tree"], board.FIRST)
    grams = np.linspace(0.1, 0.9, len(data.test))
    left = len(grams) // 4 * 4
    expected = grams[:left].reshape(4, -1)[:, 1:]
    found, _ = board._figures(net, data.test, grams, [1.0])
    assert found[board.MIXED] == pytest.approx(np.exp(-np.log(expected).mean()))


def test_state_is_carried_from_segment_to_segment(asked, monkeypatch):
    monkeypatch.setattr(board, "BFLOAT16", False)  # it would round the state that is carried
    data = data_of(asked)
    net = board.Net(data.counts, 8, board.LAYERS["tree"], board.FIRST)
    net.reset(training=False)
    ids = torch.from_numpy(data.train[:80].astype(np.int64).reshape(40, 2))
    with torch.no_grad():
        whole = net(ids[:-1], ids[1:])[0].reshape(39, 2)
        net.reset(training=False)
        parts = [net(ids[at:end], ids[at + 1 : end + 1])[0].reshape(-1, 2) for at, end in ((0, 11), (11, 39))]
    torch.testing.assert_close(torch.cat(parts), whole)


def test_the_average_is_the_mean_of_the_weights_and_of_the_trees(asked):
    data = data_of(asked)
    net, average, seen = board.Net(data.counts, 8, board.LAYERS["tree"], board.FIRST), {}, []
    for taken, segment in enumerate(list(board.segments(data.train, 4))[:3], 1):
        net(*segment)[1].backward()
        board._average(average, net, taken)
        seen.append({name: value.clone() for name, value in net.state_dict().items()})
    moved = [name for name in seen[0] if name.startswith("layer.") and not torch.equal(seen[0][name], seen[2][name])]
    assert moved
    for name in seen[0]:
        mean = torch.stack([one[name].double() for one in seen]).mean(0)
        torch.testing.assert_close(average[name].double(), mean, rtol=1e-5, atol=1e-7)


def test_the_better_of_last_and_average_is_what_is_tested(asked):
    data = data_of(asked)
    net = board.Net(data.counts, 8, board.LAYERS["tree"], board.FIRST)
    board._learn(net, data, board.FIRST, 30, 13)
    good = {name: value.clone() for name, value in net.state_dict().items()}
    bad = good | {"rows.weight": good["rows.weight"] + 5}
    for last, average in ((good, bad), (bad, good)):
        net.load_state_dict(last)
        board._validated(net, average, data)
        assert torch.equal(net.rows.weight, good["rows.weight"])


def test_a_tree_in_another_order_holds_the_same_paths():
    counts, order = np.arange(7, 0, -1), np.array([3, 1, 4, 0, 6, 2, 5])
    tree, plain = board._reordered(counts, order), board.trees.balanced(7)
    np.testing.assert_array_equal(tree.leaf_up[order], plain.leaf_up)
