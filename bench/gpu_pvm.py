"""Frames per second of the Predictive Vision Model on a GPU, through `PVM.run`; the flat layer beside PyTorch.

A frame is what it is on the CPU (bench/pvm.py): a byte image sent while the device works on the one before, learning, the
error home. "tick alone" launches nothing but the kernel, without frames: what `run` costs is the difference.
"""

from collections.abc import Callable, Iterator
from functools import partial

from bench import pvm
from bench.gpu_machine import Machine
from bench.measure import Work, measure

FRAMES, QUICK = 200, 2
CASES = (
    pvm.Case("flat210m", momentum=0.0),
    pvm.Case("flat210m", momentum=0.5),
    pvm.Case("small"),
    pvm.Case("small", readouts=True),
    pvm.Case("small", streams=16),
)


class Video:
    """The contest of one case; the recording of the original has been replayed on the device before."""

    def __init__(self, machine: Machine, case: pvm.Case, frames: int):
        machine.release()
        self.machine, self.case, self.frames = machine, case, frames
        self.model = pvm.Ours(case, "cuda:0", 1)

    def records(self, repeat: int) -> list[dict]:
        """Ours first, then the tick alone, then PyTorch."""
        works = [self._run(), self._alone()]
        if self.machine.torch and self.case.config == "flat210m":
            works.append(self._torch())
        records = measure(works, repeat, self.machine.bandwidth)
        for record in records:
            record["env"] |= self.machine.facts
        return records

    def _work(self, who: str, step: Callable, check: Callable, more: dict | None = None) -> Work:
        params, moved = self.case._asdict(), self.model.moved * self.frames
        work = ("pvm.frame", who, params, self.frames, "frames/s", step, check)
        return Work(*work, moved=moved, device=self.machine.name, more=more or {})

    def _run(self) -> Work:
        model = self.model
        more = {"parameters": model.parameters, "memory_over_least": model.held()}

        return self._work("ours", partial(model.learn, self.frames), model.check, more)

    def _alone(self) -> Work:
        """The kernel on a slot that is filled once, launched again and again by one piece of work."""
        model = self.model.pvm
        slot, queue = model.pipeline.slot(), model.pipeline.inline
        slot.fill(model.tick, 0, pvm.frame_input(model, self.model.feed), 0, self.case.streams)

        def loop():
            for _ in range(self.frames):
                model.pipeline.tick(slot)
                slot.tick += 1

        return self._work("ours, tick alone", lambda: queue.run(loop), lambda: None)

    def _torch(self) -> Work:
        rival, cuda = pvm.Torch(self.case, "cuda:0"), self.machine.torch.cuda

        def step():
            for _ in range(self.frames):
                rival.step()
            cuda.synchronize()

        return self._work(rival.who, step, rival.check)


def frames(machine: Machine, quick: bool) -> Iterator[Callable[[], Video]]:
    """What makes the contests, after the recording has been replayed on the device."""
    print(f"golden: {pvm.golden('cuda:0')}", flush=True)
    for case in pvm.cases(quick) if quick else CASES:
        yield partial(Video, machine, case, QUICK if quick else FRAMES)
