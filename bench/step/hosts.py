"""Two hosts: steps of shared models on networks of 1 and 10 Gbit/s beside an analytic model, and whether the second host pays.

The hosts are namespaces of network, host name and mounts within this machine, on one bridge; mpiexec enters them instead of
ssh. Each host has its own address, loopback and host name, and its own mounts, so that a folder may be on one host alone. All
share the processors, the memory and, by default, the files of this machine. It needs root, iproute2 and util-linux. Each host
computes on one thread.
"""

import contextlib
import functools
import itertools
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness.measure import append
from bench.step import ranks
from hybrid.mpi.world import command

NET = "10.213.0.{}"
REACHED = """
import errno, socket, sys, time
for address in sys.argv[1:]:
    while socket.socket().connect_ex((address, 9)) != errno.ECONNREFUSED:
        time.sleep(0.05)
"""
# UCX would choose shared memory, since the hosts have one kernel; hydra asks for the address instead of a name to resolve.
ENVIRONMENT = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "HYDRA_IFACE": "eth0", "OMP_NUM_THREADS": "1"}


@functools.cache
def missing() -> str:
    """Why there cannot be hosts here; empty if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces of a network need root on Linux"
    if absent := [name for name in ("ip", "tc", "unshare", "nsenter") if not shutil.which(name)]:
        return f"{', '.join(absent)} not found: apt-get install iproute2 util-linux"
    bridge = f"hyb{os.getpid()}"
    probe = f"ip link add {bridge} type bridge && unshare --net --uts --mount mount -t tmpfs none /mnt"
    tried = subprocess.run(["sh", "-c", probe], capture_output=True, text=True)
    subprocess.run(["ip", "link", "del", bridge], capture_output=True)
    return tried.stderr.strip()


def _run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return done.stdout


class Host:
    """One host, alive while its holder process is."""

    def __init__(self, name: str, address: str):
        self.name, self.address = name, address
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", f"hostname {name}; echo; exec sleep infinity"]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self._holder.stdout and self._holder.stdout.readline() == b"\n"  # it is in its namespaces
        self.pid = self._holder.pid
        self._net = os.readlink(f"/proc/{self.pid}/ns/net")

    def run(self, *words: object) -> str:
        """Runs a command there; returns its output."""
        return _run(*self.enter, *words)

    @property
    def enter(self) -> list[str]:
        """The words before a command that is to run there."""
        return ["nsenter", f"--target={self.pid}", "--net", "--uts", "--mount"]

    def processes(self) -> list[int]:
        """Its processes other than the holder."""
        found = []
        for one in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(one / "ns" / "net") == self._net and int(one.name) != self.pid:
                    found.append(int(one.name))
        return found

    def kill(self) -> None:
        """Kills all its processes."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def end(self) -> None:
        """Ends the host."""
        self.kill()
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()  # type: ignore[union-attr]


class Network:
    """Some hosts on a bridge; `folder` gets their files."""

    def __init__(self, count: int, folder: Path):
        self.folder, self._bridge = folder, f"hyb{os.getpid()}"
        self.hosts: list[Host] = []
        self._cut: list[int] = []
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "link", "set", self._bridge, "up")
        for at in range(count):
            host = Host(f"host{at}", NET.format(at + 1))
            self.hosts.append(host)
            link = self.link(at)
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.pid)
            _run("ip", "link", "set", link, "master", self._bridge, "up")
            for words in (f"addr add {host.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                host.run("ip", *words.split())
        self._ssh = folder / "ssh"
        places = "".join(f"{host.address}) pid={host.pid};; " for host in self.hosts)
        self._ssh.write_text(
            f'#!/bin/sh\nshift\ncase $1 in {places}esac\nshift\nexec nsenter -t $pid -n -u -m -- sh -c "$*"\n'
        )
        self._ssh.chmod(0o755)

    def link(self, at: int) -> str:
        """The bridge's end of a host's cable."""
        return f"{self._bridge}-{at}"

    def file(self, count: int) -> Path:
        """A host file for mpiexec, of the first hosts."""
        path = self.folder / f"hosts{count}"
        path.write_text("".join(f"{host.address}\n" for host in self.hosts[:count]))
        return path

    def cut(self, at: int) -> None:
        """Pulls a host's cable."""
        self._cut.append(at)
        _run("ip", "link", "set", self.link(at), "down")

    def mend(self) -> None:
        """Puts the pulled cables back, and waits until the hosts reach each other again."""
        for at in self._cut:
            _run("ip", "link", "set", self.link(at), "up")
        for host in self.hosts if self._cut else ():
            host.run("ip", "neigh", "flush", "dev", "eth0")  # or it remembers for seconds that nobody answered
            host.run(sys.executable, "-c", REACHED, *(other.address for other in self.hosts))
        self._cut.clear()

    def shape(self, *rule: str) -> None:
        """Puts a queueing discipline of `tc` on both ends of every cable, such as ("tbf", "rate", "1gbit", ...)."""
        for at, host in enumerate(self.hosts):
            _run("tc", "qdisc", "replace", "dev", self.link(at), "root", *rule)
            host.run("tc", "qdisc", "replace", "dev", "eth0", "root", *rule)

    def unshape(self) -> None:
        """Takes the queueing disciplines off."""
        for at, host in enumerate(self.hosts):
            _run("tc", "qdisc", "del", "dev", self.link(at), "root")
            host.run("tc", "qdisc", "del", "dev", "eth0", "root")

    def start(self, words: Sequence[object], cwd: Path, **environment: str) -> subprocess.Popen[str]:
        """Starts a command on the first host; mpiexec reaches the others from there."""
        environ = os.environ | ENVIRONMENT | {"HYDRA_LAUNCHER_EXEC": str(self._ssh)} | environment
        command = [*self.hosts[0].enter, "--wd=" + str(cwd), *map(str, words)]
        piped: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=environ, cwd=cwd, text=True, **piped)

    def left(self, limit: float = 10.0) -> list[int]:
        """The processes that are still there after a time."""
        end = time.monotonic() + limit
        while (found := [one for host in self.hosts for one in host.processes()]) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def end(self) -> None:
        """Ends all hosts and the network."""
        for host in self.hosts:
            host.end()
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True)
        for at in range(len(self.hosts)):  # gone with their other ends, unless those were never moved
            subprocess.run(["ip", "link", "del", self.link(at)], capture_output=True)


@contextlib.contextmanager
def network(count: int, folder: Path) -> Iterator[Network]:
    """A context with so many hosts."""
    made = Network(count, folder)
    try:
        yield made
    finally:
        made.end()


# The analytic model

HOSTS, ROUNDS = 2, 3
NETWORKS = {
    name: ("tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
    for name, rate in (("10 Gbit/s", "10gbit"), ("1 Gbit/s", "1gbit"))
}
MODELS, QUICK = ("small", "mesh100m", "flat210m", "language"), ("mesh1m",)


class Link(NamedTuple):
    """A network: seconds of a message without content, waited for as a group does, and bytes a second in one direction."""

    latency: float
    bandwidth: float

    def seconds(self, messages: Iterable[tuple[str, int]], hosts: int) -> float:
        """Returns the seconds of one host's messages, one after the other: by a ring, by a tree, or between neighbours."""
        depth, total = (hosts - 1).bit_length(), 0.0
        for kind, size in messages:
            steps = {"join": hosts - 1, "share": depth, "most": depth}.get(kind, 1)
            total += steps * (self.latency + size / self.bandwidth)
        return total


def run(arguments: Any) -> None:
    """Measures steps on one host and on two, on each network, then compares them with the model.

    A step on two hosts takes what it takes on one, less what they share, plus a host's share of it while the other computes
    too, plus the messages. Of all samples the least counts: hosts within one machine disturb each other.
    """
    if missing():
        print(f"hosts is not measured: {missing()}")
        return
    models = QUICK if arguments.quick else MODELS
    shares: dict[tuple[str, int], float] = {(model, hosts): math.inf for model in models for hosts in (1, HOSTS)}
    links, sent = dict[str, Link](), dict[str, list[tuple[str, int]]]()
    ticks: dict[tuple[str | None, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, network(HOSTS, Path(folder)) as net:

        def start(count: int, module: str, *words: str) -> int:
            launch = command(count, module, *words, hosts=str(net.file(count)))
            running = net.start(launch, Path.cwd(), PYTHONPATH=str(Path.cwd()))
            _, errors = running.communicate()
            print(errors, end="", file=sys.stderr)
            return running.returncode

        # Each in several processes, in turns: their memory lies well or badly, which a step shows more than the network.
        for _, (name, rule) in itertools.product(range(1 if arguments.quick else ROUNDS), NETWORKS.items()):
            net.shape(*rule)
            links[name] = _link(ranks.measured("messages", HOSTS, start, sizes=[8, 1 << 22], repeat=arguments.repeat))
            for model in models:
                for hosts, where in ((1, None), (HOSTS, name)):
                    found = _of(model, hosts, arguments, start if where else None)
                    ticks.setdefault((where, model), []).extend(found["tick"])
                    shares[model, hosts] = min(shares[model, hosts], found["shared"])
                sent[model] = found["messages"]
    for name, link in links.items():
        print(f"{name}: {1e6 * link.latency:.0f} us, {8e-9 * link.bandwidth:.3g} Gbit/s between two hosts\n")
        print("| model | 1 host, ms | 2 hosts, ms | analytic model, ms | error | messages | KiB sent |\n|" + "---|" * 7)
        for model in models:
            alone, samples = min(ticks[None, model]), ticks[name, model]
            expected = alone - shares[model, 1] + shares[model, HOSTS] + link.seconds(sent[model], HOSTS)
            times = " | ".join(f"{1e3 * seconds:.1f}" for seconds in (alone, min(samples), expected))
            size = sum(size for _, size in sent[model]) / 1024
            print(f"| {model} | {times} | {expected / min(samples) - 1:+.0%} | {len(sent[model])} | {size:,.0f} |")
            params = {"hosts": HOSTS, "network": name, "model": model, "predicted": expected}
            append(arguments.json, [ranks.kept("hosts", params, samples)])
        print()


def _link(messages: Sequence[Any]) -> Link:
    """Returns the network by the times of a large and a small message, and of a maximum of one number."""
    (_, few, short), (_, many, long) = (one for one in messages if one[0] == "message")
    (latency,) = (statistics.median(samples) for name, _, samples in messages if name == "most")
    return Link(latency, (many - few) / (statistics.median(long) - statistics.median(short)))


def _of(model: str, hosts: int, arguments: Any, start: Any) -> dict[str, Any]:
    """Returns what some hosts measure of a model: samples of a step, messages, and the least seconds of what hosts share."""
    if model == "language":
        found = ranks.measured("steps", hosts, start, repeat=arguments.repeat, **ranks.LANGUAGE)
        return found | {"shared": found["trunk"]}
    found = ranks.measured("ticks", hosts, start, config=model, repeat=arguments.repeat)
    return found | {"shared": min(found["compute"])}
