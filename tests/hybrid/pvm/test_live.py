"""The page of a run that learns: what it serves, to whom, and that it goes with the run."""

import base64
import io
import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image

from hybrid.cli import main
from hybrid.feeds.video.frames import Frames
from hybrid.feeds.video.open import open_clips
from hybrid.pvm import live
from hybrid.pvm.config import Config
from hybrid.pvm.figures import Pair, floats
from hybrid.pvm.live import Latest, Live
from hybrid.pvm.model import PVM
from tests.hybrid.pvm.tiny import TINY, command

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def ask(page: Live, path: str = "/state", **headers) -> tuple[int, bytes]:
    """Status and body of an answer."""
    request = urllib.request.Request(page.address + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.fixture(scope="module")
def latest():
    """What there is to see of a model of three streams after some ticks."""
    model = PVM(Config.from_fields(TINY), device="cpu", streams=3)
    frames, shown = Frames(open_clips("synthetic", model.config.frame), 30, 3), Latest(model, 1.0, "<b>synthetic</b>")
    for seen in model.run(frames):
        if seen.tick < 29:
            shown.pair = Pair(seen, floats(frames[seen.tick].image), floats(frames[seen.tick + 1].image))
    return shown


@pytest.fixture
def page(latest):
    point = {"step": 10, "seconds": 1.0, "error": [0.1, 0.2, 0.3], "prediction": 0.2, "last_frame": 0.1}
    curve = [point | {"step": step, "prediction": 0.2 / (step + 1)} for step in range(20)]
    with Live(0) as page:
        page.show(latest, lambda: {"step": 30, "of": 100, "rate": 12.5, "curve": curve})
        yield page


def test_the_state_is_the_latest_tick(page, latest):
    status, body = ask(page)
    state = json.loads(body)
    assert status == 200 and (state["name"], state["step"], state["of"]) == ("tiny", 30, 100)
    assert np.array_equal(Image.open(io.BytesIO(base64.b64decode(state["png"]))), latest.picture())
    assert state["curve"][-1]["prediction"] == pytest.approx(0.01)


def test_the_page_needs_nothing_from_elsewhere_runs_its_own_script_only_and_has_no_other_name(page):
    """So that a page elsewhere whose name was made to mean 127.0.0.1 reads nothing."""
    status, body = ask(page, "/")
    text = body.decode()
    assert status == 200 and "{nonce}" not in text and "http" not in text.replace("<!doctype html>", "").lower()
    with urllib.request.urlopen(page.address) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert ask(page, "/etc/passwd")[0] == ask(page, "/../live.py")[0] == 404
    assert ask(page, Host="evil.example")[0] == ask(page, "/", Host=f"evil.example:{page.port}")[0] == 403
    assert ask(page, Host=f"127.0.0.1:{page.port + 1}")[0] == 403
    assert ask(page, Host=f"localhost:{page.port}")[0] == 200


def test_a_port_in_use_is_named_before_anything_is_written(capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(command(tmp_path, tmp_path / "run", "--steps", "3", "--live", str(port))) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"hybrid: error: --live {port}: found the port in use on 127.0.0.1; expected a free one"
    assert not (tmp_path / "run").exists()


def test_a_run_is_shown_while_it_learns_and_its_numbers_stay(capsys, monkeypatch, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    seen, real = [], Frames.__getitem__

    def asked(feed, tick):
        if tick in (5, 40):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/state") as answer:
                seen.append(json.loads(answer.read()))
            monkeypatch.setattr(live, "REST", 0.0)
        return real(feed, tick)

    monkeypatch.setattr(Frames, "__getitem__", asked)
    shown, plain = tmp_path / "shown", tmp_path / "plain"
    options = ["--steps", "60", "--every", "10"]
    assert main(command(tmp_path, shown, *options, "--live", str(port))) == 0
    assert capsys.readouterr().err.count(f"http://127.0.0.1:{port}") == 1
    monkeypatch.setattr(Frames, "__getitem__", real)
    assert [state["of"] for state in seen] == [60, 60] and 38 <= seen[1]["step"] <= 40
    assert len(seen[1]["curve"]) == seen[1]["step"] // 10 + 1
    assert seen[1]["png"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5)
    assert "live" not in json.loads((shown / "run.json").read_text())
    assert main(command(tmp_path, plain, *options)) == 0
    last = [PVM.load(run / "checkpoint", device="cpu")[1]["progress"]["curve"][-1] for run in (shown, plain)]
    assert last[0]["error"] == last[1]["error"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
def test_a_browser_shows_it(page, tmp_path):
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        f" --disable-component-update --disable-sync --user-data-dir={tmp_path} --virtual-time-budget=4000 --dump-dom"
    )
    done = subprocess.run([str(CHROMIUM), *flags.split(), page.address], capture_output=True, text=True, timeout=120)
    assert "step 30 of 100, 12.5 frames/s, &lt;b&gt;synthetic&lt;/b&gt;" in done.stdout, done.stderr[-2000:]
    assert ">learning<" in done.stdout and 'src="data:image/png;base64,' in done.stdout
