"""What `--shard` does not go with is refused by name, before anything is read; how ranks share, tests of runs on ranks say."""

import pytest

from hybrid.cli import main
from hybrid.models._sharded import MAY
from tests.support.small_runs import command

REFUSED = [
    (("--readout", "full"), "--readout: found full with --shard, expected tree"),
    (("--mode", "grouped"), "--mode: found grouped with --shard, expected deterministic"),
    (("--regrow", "1"), "--regrow: found [1] with --shard, expected none"),
    (("--rows-device", "auto"), "--rows-device: found auto with --shard, expected cpu"),
    (("--readout-device", "cuda:0"), "--readout-device: found cuda:0 with --shard, expected cpu"),
    (("--split", "3", "--readout-device", "cuda:0"), "--split: found 3 with --shard, expected 0"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_shards_do_not_go_with_is_refused_by_name(tmp_path, capsys, options, said):
    assert main(command("language", tmp_path, tmp_path / "run", "--shard", *options)) == 2
    assert f"{said}; leave one of both out" in capsys.readouterr().err


def test_every_option_that_is_refused_has_such_a_test():
    tested = {options[0].removeprefix("--").replace("-", "_") for options, _ in REFUSED}
    assert tested == MAY.keys() - {"tree"}  # whose other value `hybrid train language` has not


def test_other_models_have_no_such_option(tmp_path, capsys):
    assert main(command("words", tmp_path, tmp_path / "run", "--shard")) == 2
    assert "--shard: not used by `train words`" in capsys.readouterr().err
