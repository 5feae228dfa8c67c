import json

import pytest

from hybrid.schedule.trace import Interval, Trace, line


def filled():
    trace = Trace()
    trace.recent.append(Interval("dense", "forward", 0, 0, 10.0, 11.0))
    trace.recent.append(Interval("sparse", "readout", 0, 0, 11.0, 13.0))
    trace.recent.append(Interval("dense", "forward", 0, 1, 11.0, 12.0))
    trace.seconds |= {("dense", "forward"): 2.0, ("sparse", "readout"): 2.0}
    trace.wall, trace.ticks = 3.0, 1
    return trace


def test_overlap_and_efficiency_by_hand():
    facts = filled().summary()
    assert facts["overlap"] == pytest.approx((4 - 3) / (4 - 2))
    assert facts["efficiency"] == pytest.approx(2 / 3)
    assert facts["stages"] == {"forward": 2.0, "readout": 2.0}
    idle = Trace().summary()
    assert (idle["overlap"], idle["efficiency"]) == (0, 0)
    assert line(idle) == "no step was timed"


def test_chrome_trace_names_tracks_and_is_in_microseconds(tmp_path):
    filled().write_chrome(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    stages = [e for e in events if e["ph"] == "X"]
    assert sorted(names.values()) == ["dense", "sparse"]
    found = [(names[e["pid"], e["tid"]], e["name"], e["ts"], e["dur"]) for e in stages]
    assert found[1] == ("sparse", "readout", 1e6, 2e6)


def test_totals_leave_out_the_first_tick_of_several_and_memory_is_bounded():
    trace = Trace(keep=2)
    for tick, seconds in enumerate((60.0, 1.0, 2.0)):
        trace.next_tick()
        trace.note("dense", "forward", tick, 0, 0.0, seconds)
        trace.wall += seconds
        trace.ticks += 1
        expected = [60.0, 1.0, 3.0][tick]
        assert (trace.summary()["stages"], trace.wall) == ({"forward": expected}, expected)
    assert trace.ticks == 2 and len(trace.recent) == 2
