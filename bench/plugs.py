"""An LSTM language model in PyTorch with its output layer swapped by one line: tokens a second, perplexity, memory."""

import concurrent.futures
import itertools
import math
import multiprocessing
import time
from pathlib import Path
from typing import Any

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work, append, commit, environment, measure, show
from bench.peers import peer

MILLION = 1_000_000
FEW = 4  # streams of a dense layer over a million classes: its arrays of tokens by classes take 560 MB each
TOKENS = 400_000  # of Zipf ids
LRS = (20.0, 40.0)  # of rows and LSTM; 20 is that of word_language_model
SEARCHED, SECONDS = 4, 120  # a try of the search has this part of the seconds that the best one has
JUDGED = 40_000  # tokens, of a try


def run(arguments) -> int:
    """Speed at the words of WikiText-2 and at a million; perplexities after equal time; memory at a million."""
    if not peer("torch"):
        return 0
    from bench import lstm

    tokens = (None if arguments.quick else lstm.wikitext()) or lstm.zipf(500 if arguments.quick else 33_278, TOKENS)
    million = lstm.zipf(5_000 if arguments.quick else MILLION, TOKENS)
    for data in (tokens, million):
        _speed(data, arguments)
    if tokens.valid is None:
        print("perplexities: not without WikiText-2 (HYBRID_DATA names the folder that holds wikitext-2/)")
    else:
        _perplexities(tokens, arguments)
    _memory(million, arguments)
    return 0


# Tokens a second


def _speed(data: Any, arguments) -> None:
    """Whole training steps, the rivals in turns."""
    from bench import lstm

    works = [_work(who, head, data, arguments) for who, head in lstm.heads().items()]
    records = measure(works, arguments.repeat)
    show(records)
    append(arguments.json, records)


def _work(who: str, head: Any, data: Any, arguments) -> Work:
    import torch

    from bench import lstm

    torch.set_num_threads(arguments.threads)
    classes = len(data.counts)
    model = lstm.Model(head, data.counts, 1.0, head.rates[0] if head.own else 1.0)
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


# Perplexity after equal time


def _perplexities(data: Any, arguments) -> None:
    """For each: every pair of rates for a part of the time, then the best for all of it."""
    from bench import lstm

    seconds = arguments.seconds or SECONDS
    for who, head in lstm.heads().items():
        tried = []
        for lr, rate in itertools.product(LRS, head.rates):
            found = _learn(who, data, lr, rate, seconds / SEARCHED, JUDGED, arguments)
            tried.append((found, lr, rate))
            _keep("plugs.lstm.search", who, lr, rate, seconds / SEARCHED, found, data, arguments)
        _, lr, rate = min(tried)
        found = _learn(who, data, lr, rate, seconds, len(data.valid), arguments)
        _keep("plugs.lstm.perplexity", who, lr, rate, seconds, found, data, arguments)


def _learn(who: str, data: Any, lr: float, rate: float, seconds: float, judged: int, arguments) -> float:
    """The perplexity after so many seconds of training; infinite where the loss is not finite."""
    import torch

    from bench import lstm

    torch.set_num_threads(arguments.threads)
    model = lstm.Model(lstm.heads()[who], data.counts, lr, rate)
    warm = next(lstm.segments(data.train[-10_000:], lstm.STREAMS))
    model.step(*warm)  # compiles
    end = time.perf_counter() + seconds
    try:
        for given in itertools.chain.from_iterable(_epochs(data.train, model)):
            if not math.isfinite(model.step(*given)):
                return math.inf
            if time.perf_counter() > end:
                break
        return model.perplexity(data.valid, judged)
    except FloatingPointError:
        return math.inf


def _epochs(ids: Any, model: Any):
    from bench import lstm

    while True:
        model.state = None
        yield lstm.segments(ids, lstm.STREAMS)


def _keep(work: str, who: str, lr: float, rate: float, seconds: float, found: float, data: Any, arguments) -> None:
    record = {
        "bench": "plugs",
        "work": work,
        "who": who,
        "params": {"lr": lr, "rate": rate, "seconds": seconds},
        "seeds": [0],
        "quality": {"valid perplexity": [found]},
        "data": f"{data.name}, {len(data.train):,} tokens, {len(data.counts):,} words",
        "threads": arguments.threads,
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }
    print(f"{work:<22} {who:<40} lr {lr:<4g} rate {rate:<5g} {seconds:4g} s  {found:.1f}", flush=True)
    append(arguments.json, [record])


# Memory


def _memory(data: Any, arguments) -> None:
    """The peak of each rival in a process of its own, against the parameters."""
    from bench import lstm

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

    from bench import lstm

    torch.set_num_threads(threads)
    head = lstm.heads()[who]
    _steps(lstm.Model(head, lstm.zipf(300, 1).counts, 1.0, head.rates[0]), lstm.zipf(300, 4_000), lstm.STREAMS)
    imports = _resident("VmRSS")
    data = lstm.zipf(classes, 20_000)
    model = lstm.Model(head, data.counts, 1.0, head.rates[0])
    _steps(model, data, FEW if _dense(who) and classes >= MILLION else lstm.STREAMS)
    return {"parameters": model.bytes(), "imports": imports, "peak": _resident("VmHWM")}


def _steps(model: Any, data: Any, streams: int) -> None:
    from bench import lstm

    for given in itertools.islice(lstm.segments(data.train, streams), 3):
        model.step(*given)


def _resident(name: str) -> int:
    """A line of the system's about this process: VmRSS is what it has now, VmHWM the peak, not taken over from its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
