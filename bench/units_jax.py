"""The step of a collection of MLPs in JAX: a loss of one unit, its gradient by `vmap` over all, jitted, in donated buffers."""

import os
from typing import Any

from bench.measure import Work
from bench.peers import peer
from bench.units_problem import RATE, Problem


def available() -> bool:
    """Whether JAX is there; it is told to compute on the CPU before it is imported."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    return peer("jax") is not None


def rival(problem: Problem, threads: int) -> Work:
    """Threads are those that JAX began with: the first rival of a process decides."""
    os.environ["NPROC"] = str(threads)  # read when the first array is made
    jax = peer("jax")
    jnp = jax.numpy
    momentum = problem.momentum

    def loss(parts, x, target):
        first, first_bias, second, second_bias = parts
        hidden = jax.nn.sigmoid(x @ first.T + first_bias)
        y = jax.nn.sigmoid(hidden @ second.T + second_bias)
        return jnp.sum((y - target) ** 2) / 2

    def step(parts, speeds, x, target):
        slopes = jax.grad(loss)(parts, x, target)
        if not momentum:
            return tuple(part - RATE * slope for part, slope in zip(parts, slopes, strict=True)), speeds
        speeds = tuple(momentum * speed - RATE * slope for speed, slope in zip(speeds, slopes, strict=True))
        return tuple(part + speed for part, speed in zip(parts, speeds, strict=True)), speeds

    parts = tuple(jnp.array(part) for part in problem.parts())  # copies: a buffer of NumPy's cannot be donated
    speeds = tuple(jnp.zeros_like(part) for part in parts) if momentum else ()
    signals = [jnp.array(array) for array in problem.by_unit()]
    learn = jax.jit(jax.vmap(step), donate_argnums=(0, 1))
    kept: list[Any] = [parts, speeds]
    del parts, speeds

    def run():
        kept[:] = learn(*kept, *signals)
        jax.block_until_ready(kept)

    def check():
        problem.check_parts([part[problem.sample] for part in kept[0]])

    return problem.work(f"jax {jax.__version__} vmap", run, check, threads)
