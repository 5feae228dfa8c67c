"""The gradient of some layers crosses between ranks while that of the layers before is computed; see also test_route.py."""

import json

from tests.support.rank_engine import Uneven, learned, made
from tests.support.ranks import ended, started


def test_a_span_crosses_before_backward_of_the_layers_before_it_ends(tmp_path):
    losses = learned(*made("overlapped"))
    assert ended(started(str(tmp_path), ranks=2, module="tests.support.rank_spans"), 240) == (0, "", "")
    for rank in range(2):
        found, noted = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found == losses
        at = {(stage, tick): (start, end) for _, stage, tick, _, start, end in noted}
        first = [tick for stage, tick in at if stage == "backward 0"]  # a short batch leaves rank 1 without any
        assert len(first) >= len(Uneven.sizes) - 2
        for tick in first:
            begun, over = at["gradient 0 to all", tick]
            assert at["backward 0", tick][1] <= begun and over <= at["backward 1", tick][1], (rank, tick)
            assert over <= at["gradient 1 to all", tick][0] <= at["update", tick][0]
