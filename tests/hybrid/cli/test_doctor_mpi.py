"""The doctor says which MPI there is, and under hybrid launch how fast its ranks are."""

import json

from hybrid.cli import doctor_mpi
from hybrid.ranks import library
from hybrid.ranks.pingpong import SIZES
from tests.support.ranks import ended, started

FOUND = {"name": "Some MPI 1.2", "standard": "4.1", "threads": "multiple"}


def test_without_mpi4py_there_is_nothing_to_say(monkeypatch):
    monkeypatch.setattr(doctor_mpi.importlib.util, "find_spec", lambda name: None)
    assert doctor_mpi.mpi() == []


def test_the_library_is_told_with_what_it_can(monkeypatch):
    monkeypatch.setattr(library, "ask", lambda: FOUND)
    monkeypatch.setattr("hybrid.ranks.mpi.mpiexec", lambda: "/somewhere/mpiexec")
    mpi, program = doctor_mpi.mpi()
    assert mpi["ok"] and not mpi["needed"] and program["found"] == "/somewhere/mpiexec"
    assert mpi["found"] == "Some MPI 1.2, MPI 4.1, threads multiple"


def test_what_is_missing_comes_with_its_remedy(monkeypatch):
    def broken():
        raise OSError("libmpi.so.12 is gone")

    monkeypatch.setattr(library, "ask", broken)
    monkeypatch.setattr("hybrid.ranks.mpi.mpiexec", lambda: None)
    mpi, program = doctor_mpi.mpi()
    assert (mpi["ok"], mpi["found"], program["ok"], program["found"]) == (
        False,
        "libmpi.so.12 is gone",
        False,
        "none found",
    )
    assert "hybrid-engine[mpi]" in mpi["remedy"] and "hybrid-engine[mpi]" in program["remedy"]


def test_a_library_of_one_thread_is_not_enough(monkeypatch):
    monkeypatch.setattr(library, "ask", lambda: FOUND | {"threads": "serialized"})
    mpi = doctor_mpi.mpi()[0]
    assert not mpi["ok"] and "MPI_THREAD_MULTIPLE" in mpi["remedy"]


def test_a_process_alone_names_the_command_that_measures():
    assert doctor_mpi.between() == {}
    assert "hybrid launch -n 2 doctor" in doctor_mpi.text({})[0]


def test_both_kinds_of_ways_are_measured():
    assert doctor_mpi._partners(["a", "a", "b", "b"]) == [1, 2]
    assert doctor_mpi._partners(["a", "b", "a"]) == [2, 1]
    assert doctor_mpi._partners(["a", "b"]) == [1]


def test_figures_are_said_with_their_units():
    way = {"ranks": [0, 3], "bytes": 4 << 20, "seconds": 0.002}
    hosts = [{"rank": rank, "host": "a", "cores": 1} for rank in range(2)]
    found = {"hosts": hosts, "pingpong": [way], "allreduce": way, "alltoall": way | {"bytes": 8}}
    said = "\n".join(doctor_mpi.text(found))
    assert "rank 0 to 3, 4 MiB" in said and "2000.0 us" in said and "2.10 GB/s" in said
    assert "all to all, each 8 B" in said and "2 ranks share 1 cores" in said


def test_ranks_measure_and_rank_0_tells():
    code, out, err = ended(started("doctor", "--json", ranks=2, module="hybrid.cli"))
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["usable"] and [one["rank"] for one in report["ranks"]["hosts"]] == [0, 1]
    assert [one["bytes"] for one in report["ranks"]["pingpong"]] == list(SIZES)
    assert all(one["seconds"] > 0 for one in (*report["ranks"]["pingpong"], report["ranks"]["allreduce"]))
