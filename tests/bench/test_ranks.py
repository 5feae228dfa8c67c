"""What ranks measured is kept sample by sample."""

from bench.step import ranks


def found(work, samples):
    return ranks.kept(work, {"ranks": 2, "bytes": 1_000}, samples, 1_000, "bytes/s")


def test_every_sample_is_kept():
    one = found("message", [0.001, 0.002, 0.004])
    assert one["samples"] == [1e6, 5e5, 2.5e5] and one["seconds"] == 0.002 and one["value"] == 5e5
    assert (one["bench"], one["params"]) == ("ranks", {"ranks": 2, "bytes": 1_000})
