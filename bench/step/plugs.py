"""An LSTM language model in PyTorch with its output layer swapped by one line: tokens a second, memory."""

import concurrent.futures
import itertools
import math
import multiprocessing
from pathlib import Path
from typing import Any

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.harness.measure import Work, append, commit, environment, measure, peer, show

MILLION = 1_000_000
FEW = 4  # streams of a dense layer over a million classes: its arrays of tokens by classes take 560 MB each
TOKENS = 400_000  # of Zipf ids


def run(arguments) -> int:
    """Speed at the words of WikiText-2 and at a million; memory at a million."""
    if not peer("torch"):
        return 0
    from bench.step import lstm

    tokens = (None if arguments.quick else lstm.wikitext()) or lstm.zipf(500 if arguments.quick else 33_278, TOKENS)
    million = lstm.zipf(5_000 if arguments.quick else MILLION, TOKENS)
    for data in (tokens, million):
        _speed(data, arguments)
    _memory(million, arguments)
    return 0


# Tokens a second


def _speed(data: Any, arguments) -> None:
    """Whole training steps, the rivals in turns."""
    from bench.step import lstm

    works = [_work(who, head, data, arguments) for who, head in lstm.heads().items()]
    records = measure(works, arguments.repeat)
    show(records)
    append(arguments.json, records)


def _work(who: str, head: Any, data: Any, arguments) -> Work:
    import torch

    from bench.step import lstm

    torch.set_num_threads(arguments.threads)
    classes = len(data.counts)
    model = lstm.Model(head, data.counts, 1.0, head.rate)
    streams = FEW if _dense(who) and classes >= MILLION else lstm.STREAMS
    turn = itertools.cycle(list(itertools.islice(lstm.segments(data.train, streams), 64)))
    steps = 8 if head.own or classes < 10_000 else 1
    losses: list[float] = []

    def step():
        losses.extend(model.step(*next(turn)) for _ in range(steps))

    def check():
        if not all(map(math.isfinite, losses)):
            raise AssertionError(f"{who}: losses {losses}")
        if _dense(who) and abs(losses[0] / math.log(classes) - 1) > 0.02:
            raise AssertionError(f"{who}: first loss {losses[0]}, expected log V = {math.log(classes)}")
        if not _dense(who):
            with torch.no_grad():
                total = model.head.log_prob(torch.randn(2, lstm.WIDTH)).double().exp().sum(1)
            torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-3, atol=0)

    params = {"data": data.name, "classes": classes, "width": lstm.WIDTH}
    amount, more = steps * streams * lstm.STEPS, {"streams": streams, "steps": lstm.STEPS}
    return Work("plugs.lstm", who, params, amount, "tokens/s", step, check, threads=arguments.threads, more=more)


def _dense(who: str) -> bool:
    return "cross_entropy" in who


# Memory


def _memory(data: Any, arguments) -> None:
    """The peak of each rival in a process of its own, against the parameters."""
    from bench.step import lstm

    print(f"\nplugs.memory  {data.name}")
    for who in lstm.heads():
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, context) as worker:
            found = worker.submit(_peak, who, len(data.counts), arguments.threads).result()
        over = found["peak"] / found["parameters"]
        alone = (found["peak"] - found["imports"]) / found["parameters"]
        print(
            f"  {who:<40} peak {found['peak'] / 1e9:6.2f} GB = {over:.2f} x parameters; {alone:.2f} x without the "
            f"{found['imports'] / 1e9:.2f} GB of PyTorch and kernels",
            flush=True,
        )
        append(arguments.json, [_record(who, found, data, arguments)])


def _record(who: str, found: dict[str, int], data: Any, arguments) -> dict:
    value = found["peak"] / found["parameters"]
    return {
        "bench": "plugs",
        "work": "plugs.memory",
        "who": who,
        "params": {"data": data.name, "classes": len(data.counts)},
        "unit": "bytes",
        "value": float(found["peak"]),
        "samples": [float(found["peak"])],
        "spread": 0.0,
        "of parameters": value,
        "memory": found,
        "checked": True,
        "threads": arguments.threads,
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }


def _peak(who: str, classes: int, threads: int) -> dict[str, int]:
    """In bytes: the parameters, the process after a step of a small model, and its peak after three steps of this one."""
    import torch

    from bench.step import lstm

    torch.set_num_threads(threads)
    head = lstm.heads()[who]
    _steps(lstm.Model(head, lstm.zipf(300, 1).counts, 1.0, head.rate), lstm.zipf(300, 4_000), lstm.STREAMS)
    imports = _resident("VmRSS")
    data = lstm.zipf(classes, 20_000)
    model = lstm.Model(head, data.counts, 1.0, head.rate)
    _steps(model, data, FEW if _dense(who) and classes >= MILLION else lstm.STREAMS)
    return {"parameters": model.bytes(), "imports": imports, "peak": _resident("VmHWM")}


def _steps(model: Any, data: Any, streams: int) -> None:
    from bench.step import lstm

    for given in itertools.islice(lstm.segments(data.train, streams), 3):
        model.step(*given)


def _resident(name: str) -> int:
    """A line of the system's about this process: VmRSS is what it has now, VmHWM the peak, not taken over from its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
