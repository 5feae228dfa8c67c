"""Clocks are read while something runs, from a library that stands in for NVML; where there is none, nothing is."""

import subprocess
import threading

import pytest

from bench import gpu_clocks
from bench.gpu_clocks import Clocks, spread

STAND_IN = """
#include <cstring>
static int reads = 0;
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "580.1", size); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    *device = (void *)0x1234;
    return strcmp(bus, "0000:3b:00.0") ? 6 : 0;
}
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz) {
    if (device != (void *)0x1234) return 2;
    *mhz = kind == 1 ? 1000 + 10 * reads++ : 2600;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *, unsigned *) { return 3; }  // not supported
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-o", str(path), "-"], input=STAND_IN, text=True, check=True
    )
    return path


@pytest.fixture
def nvml(library, monkeypatch):
    monkeypatch.setattr(gpu_clocks, "NVML", str(library))


def test_what_nvml_does_not_tell_is_left_out(nvml):
    clocks = Clocks("0000:3b:00.0")
    assert clocks.driver == "580.1"
    assert clocks.now().keys() == {"sm", "memory"} and clocks.now()["memory"] == 2600


def test_clocks_are_read_while_something_runs_and_no_longer(nvml, monkeypatch):
    monkeypatch.setattr(gpu_clocks, "EVERY", 0.001)
    clocks, readings, before = Clocks("0000:3b:00.0"), [], threading.active_count()
    with clocks.read(readings):
        while len(readings) < 3:
            pass
    assert threading.active_count() == before
    assert [reading["memory"] for reading in readings[:3]] == [2600] * 3
    assert readings[0]["sm"] < readings[1]["sm"] < readings[2]["sm"]


def test_readings_become_least_median_and_most():
    readings = [{"sm": 300}, {"sm": 1980, "memory": 2600}, {"sm": 1950}]
    assert spread(readings) == {"memory": [2600, 2600, 2600], "sm": [300, 1950, 1980]}
    assert spread([]) == {}
