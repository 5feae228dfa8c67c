from hybrid import pictures
from hybrid.trace import Interval, Trace

PNG = b"\x89PNG"


def test_both_pictures_are_png_files(tmp_path):
    points = [{"seconds": s, "examples": 10 * s, "perplexity": 100.0 / s} for s in (1, 2, 3)]
    pictures.curve(tmp_path / "curve.png", {"tree": points, "full": points}, "perplexity")
    trace = Trace()
    trace.recent.extend(Interval("dense", "forward", tick, 0, tick, tick + 0.5) for tick in range(5))
    pictures.timeline(tmp_path / "timeline.png", trace)
    assert all((tmp_path / name).read_bytes().startswith(PNG) for name in ("curve.png", "timeline.png"))
