"""Hosts within this machine: namespaces of network, host name and mounts, on one bridge; mpiexec enters them instead of ssh.

Each host has its own address, loopback and host name, and its own mounts, so that a folder may be on one host alone. All share
the processors, the memory and, by default, the files of this machine. It needs root, iproute2 and util-linux.
"""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

NET = "10.213.{}.{}"  # of a bridge, of a host
# UCX would choose shared memory, since the hosts have one kernel; hydra asks for the address instead of a name to resolve.
ENVIRONMENT = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "HYDRA_IFACE": "eth0", "OMP_NUM_THREADS": "1"}


@functools.cache
def missing() -> str:
    """Why there cannot be hosts here; empty if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces of a network need root on Linux"
    if absent := [name for name in ("ip", "tc", "unshare", "nsenter") if not shutil.which(name)]:
        return f"{', '.join(absent)} not found: apt-get install iproute2 util-linux"
    tried = subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "probe", "type", "veth"], capture_output=True, text=True)
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
        self.folder, self._bridge, number = folder, f"hyb{os.getpid()}", os.getpid() % 250
        self.hosts: list[Host] = []
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "link", "set", self._bridge, "up")
        for at in range(count):
            host = Host(f"host{at}", NET.format(number, at + 1))
            self.hosts.append(host)
            link = self.link(at)
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.pid)
            _run("ip", "link", "set", link, "master", self._bridge, "up")
            for words in (f"addr add {host.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                host.run("ip", *words.split())
        self._ssh = folder / "ssh"
        places = "".join(f"{host.address}) pid={host.pid};; " for host in self.hosts)
        self._ssh.write_text(f'#!/bin/sh\nshift\ncase $1 in {places}esac\nshift\nexec nsenter -t $pid -n -u -m -- sh -c "$*"\n')
        self._ssh.chmod(0o755)

    def link(self, at: int) -> str:
        """The bridge's end of a host's cable."""
        return f"{self._bridge}-{at}"

    def file(self, count: int) -> Path:
        """A host file for mpiexec, of the first hosts."""
        path = self.folder / f"hosts{count}"
        path.write_text("".join(f"{host.address}\n" for host in self.hosts[:count]))
        return path

    def plug(self, at: int, how: str) -> None:
        """Pulls a host's cable ("down"), or puts it back ("up")."""
        _run("ip", "link", "set", self.link(at), how)

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
        piped = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
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
