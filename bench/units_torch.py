"""The step of a collection of MLPs in PyTorch: batched products, by hand, compiled or by autograd."""

import functools
from collections.abc import Callable
from typing import Any

from bench.measure import Work
from bench.peers import peer
from bench.units_problem import RATE, Problem


def rival(problem: Problem, threads: int, kind: str) -> Work:
    """One of "bmm" (backward by hand), "compile" (the same, compiled), "autograd"; all as cheap as PyTorch can."""
    torch = peer("torch")
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(part) for part in problem.parts()]
    parts = [part if part.ndim == 3 else part[:, None] for part in tensors]  # a bias is a row, for baddbmm
    signals = [torch.from_numpy(array) for array in problem.by_unit()]
    step = {"bmm": _by_hand, "compile": _compiled, "autograd": _by_autograd}[kind](problem, parts, *signals)
    sample = torch.from_numpy(problem.sample)

    def check():
        problem.check_parts([part.detach()[sample].numpy() for part in parts])

    return problem.work(f"torch {torch.__version__} {kind}", step, check, threads)


def _by_hand(problem: Problem, parts: Any, x: Any, target: Any, wrap: Callable = lambda step: step) -> Callable:
    import torch

    momentum, rate = problem.momentum, RATE
    speeds = [torch.zeros_like(part) for part in parts] if momentum else None

    def descend(matrix, delta, x, keep):  # keep matrix - rate delta^T x
        if problem.batch == 1 and keep == 1:  # an outer product: faster without BLAS, and the compiler can fuse it
            matrix.addcmul_(delta.mT, x, value=-rate)
        else:  # mul_ before addcmul_ would be a second visit, and PyTorch 2.13 fails to compile it
            matrix.baddbmm_(delta.mT, x, beta=keep, alpha=-rate)

    def step(x, target, first, first_bias, second, second_bias, speeds):
        hidden = torch.baddbmm(first_bias, x, first.mT).sigmoid_()
        y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid_()
        delta = (y - target) * y * (1 - y)
        inner = torch.bmm(delta, second) * hidden * (1 - hidden)
        if speeds is None:
            descend(second, delta, hidden, 1)
            second_bias.sub_(delta.sum(1, keepdim=True), alpha=rate)
            descend(first, inner, x, 1)
            first_bias.sub_(inner.sum(1, keepdim=True), alpha=rate)
            return
        descend(speeds[2], delta, hidden, momentum)
        speeds[3].mul_(momentum).sub_(delta.sum(1, keepdim=True), alpha=rate)
        descend(speeds[0], inner, x, momentum)
        speeds[1].mul_(momentum).sub_(inner.sum(1, keepdim=True), alpha=rate)
        for part, speed in zip((first, first_bias, second, second_bias), speeds, strict=True):
            part.add_(speed)

    chosen = wrap(step)
    return torch.no_grad()(lambda: chosen(x, target, *parts, speeds))


def _compiled(problem: Problem, parts: Any, x: Any, target: Any) -> Callable:
    import torch

    return _by_hand(problem, parts, x, target, functools.partial(torch.compile, fullgraph=True, dynamic=False))


def _by_autograd(problem: Problem, parts: Any, x: Any, target: Any) -> Callable:
    import torch

    for part in parts:
        part.requires_grad_()
    first, first_bias, second, second_bias = parts
    optimiser = torch.optim.SGD(parts, lr=RATE, momentum=problem.momentum, fused=True)

    def step():
        optimiser.zero_grad()
        hidden = torch.baddbmm(first_bias, x, first.mT).sigmoid()
        y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid()
        ((y - target).square().sum() / 2).backward()
        optimiser.step()

    return step
