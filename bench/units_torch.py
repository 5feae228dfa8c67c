"""The step of a collection of MLPs in PyTorch: batched products, by hand, compiled or by autograd; and by vmap."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Work
from bench.peers import peer
from bench.units_problem import Problem


def rival(problem: Problem, threads: int, kind: str) -> Work:
    """One of "bmm" (backward by hand), "compile" (the same, compiled), "autograd" and "vmap".

    All move weights in place, as cheaply as PyTorch can; rates of their own are for vmap.
    """
    torch = peer("torch")
    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(part) for part in problem.parts()]
    parts = [part if part.ndim == 3 else part[:, None] for part in tensors]  # a bias is a row, for baddbmm
    signals = [torch.from_numpy(array) for array in problem.by_unit()]
    step = {"bmm": _by_hand, "compile": _compiled, "autograd": _by_autograd, "vmap": _by_vmap}[kind](
        problem, parts, *signals
    )
    sample = torch.from_numpy(problem.sample)

    def check():
        problem.check_parts([part.detach()[sample].numpy() for part in parts])

    return problem.work(f"torch {torch.__version__} {kind}", step, check, threads)


def _by_hand(problem: Problem, parts: Any, x: Any, target: Any, wrap: Callable = lambda step: step) -> Callable:
    import torch

    momentum, rate = problem.momentum, problem.rate
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
    optimiser = torch.optim.SGD(parts, lr=problem.rate, momentum=problem.momentum, fused=True)

    def step():
        optimiser.zero_grad()
        hidden = torch.baddbmm(first_bias, x, first.mT).sigmoid()
        y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid()
        ((y - target).square().sum() / 2).backward()
        optimiser.step()

    return step


def _by_vmap(problem: Problem, parts: Any, x: Any, target: Any) -> Callable:
    import torch

    rates = torch.from_numpy(np.broadcast_to(np.float32(problem.rate), problem.units).copy())[:, None, None]
    speeds = [torch.zeros_like(part) for part in parts] if problem.momentum else None

    def loss(parts, x, target):
        first, first_bias, second, second_bias = parts
        y = ((x @ first.mT + first_bias).sigmoid() @ second.mT + second_bias).sigmoid()
        return (y - target).square().sum() / 2

    slopes = torch.func.vmap(torch.func.grad(loss))

    def step():
        for k, (part, slope) in enumerate(zip(parts, slopes(tuple(parts), x, target), strict=True)):
            if speeds is None:
                part.addcmul_(rates, slope, value=-1)
            else:
                part.add_(speeds[k].mul_(problem.momentum).addcmul_(rates, slope, value=-1))

    return torch.no_grad()(step)
