"""Runs on several hosts, which are namespaces of this machine: the bytes of one rank, and an end for whatever goes wrong."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.step.hosts import missing, network
from hybrid.storage import checkpoint
from tests.hybrid.pvm import tiny
from tests.support.imports import ROOT
from tests.support.plugin import offered_to_children
from tests.support.small_runs import command, figures, ticks, write_data

if missing():
    pytest.skip(missing(), allow_module_level=True)

PATIENCE = 5
MORE = {"pvm": [], "language": ["--micro-batches", "4", "--schedule", "constant"]}
ENDLESS = {"pvm": ["--steps", "1000000000"], "language": ["--epochs", "1000000"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("hosts"))


@pytest.fixture(scope="module")
def net(folder):
    with network(4, folder) as made:
        yield made


@pytest.fixture(autouse=True)
def whole(net):
    """Every test leaves the network as it was, and no process."""
    yield
    left = net.left()
    for host in net.hosts:
        host.kill()
    net.mend()
    assert left == []


def started(net, hosts, *words):
    launch = [sys.executable, "-m", "hybrid", "launch", "--hosts", net.file(hosts), "-n", hosts]
    return net.start([*launch, *words], ROOT, HYBRID_PATIENCE=str(PATIENCE))


def ended(running, limit=120.0):
    out, err = running.communicate(timeout=limit)
    return running.returncode, out, err


def trained(net, hosts, *words):
    code, _, err = ended(started(net, hosts, *words))
    assert code == 0, err


def alone(*words):
    done = subprocess.run([sys.executable, "-m", "hybrid", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def saved(run, running):
    """Waits for a checkpoint behind the first."""
    while running.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # none yet, or it is being replaced
            if ticks(run):
                return
        time.sleep(0.05)
    raise AssertionError(running.communicate()[1])


@pytest.fixture(scope="module")
def of_one(folder):
    """Runs of one rank."""
    for kind, more in MORE.items():
        alone(*command(kind, folder, folder / f"one {kind}", *more))
    return folder


@pytest.mark.parametrize("kind", MORE)
@pytest.mark.parametrize("hosts", [2, 4])
def test_hosts_come_to_the_bytes_of_one_rank(net, of_one, tmp_path, kind, hosts):
    trained(net, hosts, *command(kind, of_one, tmp_path / "run", *MORE[kind]))
    assert tiny.tensors(tmp_path / "run") == tiny.tensors(of_one / f"one {kind}")
    assert figures(tmp_path / "run") == figures(of_one / f"one {kind}")


def lost(net, kind, run, act, hosts=2):
    """What a launcher says once `act` has gone wrong behind a save, in PATIENCE and ten seconds; the run then goes on alone."""
    running = started(net, hosts, *command(kind, net.folder, run, *MORE[kind], *ENDLESS[kind], "--save-every", "0.2"))
    saved(run, running)
    act()
    code, out, err = ended(running, PATIENCE + 10)
    assert code != 0
    tick = ticks(run)
    further = ["--steps", str(tick + 4)] if kind == "pvm" else ["--epochs", str(tick // 11 + 1)]
    alone("train", "--resume", run, *further)
    assert ticks(run) > tick
    alone(*command(kind, net.folder, f"{run} whole", *MORE[kind], *further))
    assert tiny.tensors(run) == tiny.tensors(Path(f"{run} whole"))
    return code, out + err


@pytest.mark.parametrize("kind", MORE)
@pytest.mark.parametrize("at", [0, 1])
def test_a_host_that_is_cut_off_is_named_and_the_run_goes_on_without_it(net, tmp_path, kind, at):
    code, said = lost(net, kind, tmp_path / "run", lambda: net.cut(at))
    assert code == 1
    assert f"rank 0 on host0: error: host1 has been silent for {PATIENCE} s; all ranks are ended" in said


def test_a_rank_that_computes_for_longer_than_the_patience_is_waited_for(net, tmp_path, monkeypatch):
    offered_to_children(monkeypatch, tmp_path / "offered", "parted", "hybrid.models")
    words = ["train", "parted", "--out", tmp_path / "run", "--device", "cpu", "--threads", "1", "--epochs", "1"]
    trained(net, 2, *words, "--ill", "long 1 3")
    assert checkpoint.read_facts(tmp_path / "run")["tick"] == 8


@pytest.mark.parametrize("again", [False, True])
def test_a_run_folder_that_one_host_alone_has_is_refused_by_name(net, of_one, tmp_path, again):
    words = command("pvm", of_one, tmp_path / "run")
    if again:
        trained(net, 2, *words)
        words = ["train", "--resume", tmp_path / "run", "--steps", "12"]
    net.hosts[1].run("mount", "-t", "tmpfs", "none", tmp_path)
    try:
        code, _, err = ended(started(net, 2, *words))
    finally:
        net.hosts[1].run("umount", tmp_path)
    assert code == 2 and err.count("error: ") == 1
    assert f"{tmp_path / 'run'}: found no run on host1, expected the run; all hosts must share its folder" in err


def test_a_file_of_no_hosts_is_refused(folder, tmp_path):
    (tmp_path / "none").write_text("# none yet\n")
    words = [sys.executable, "-m", "hybrid", "launch", "--hosts", tmp_path / "none", "-n", "2", "train", "pvm"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "names no hosts, expected one per line: NAME, or NAME:RANKS" in done.stderr
