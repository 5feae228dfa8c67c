"""The sums of the lanes of eight vectors at once: what eight dot products end with.

Two vectors are halved into one: of each the upper half is added to the lower, and both results lie side by side. So eight
vectors take seven such steps and not eight times four, and every sum has the order of `totals` in cpu/simd.py.
"""

from collections.abc import Sequence
from typing import Any

from numba.core import types

from cpu.simd import Typed, add_picks, intrinsic, pick

Picks = tuple[Sequence[int], Sequence[int]]


@intrinsic
def store_dots(
    typing: Any, array: Any, index: Any, pitch: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Typed:
    """array[index : index + 4] = the sums of the lanes of a, b, c and d; those of e, f, g and h to index + pitch and on.

    array is contiguous and of one dimension; vectors of at least 8 lanes.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, pitch, *vectors = arguments
        parts = 1  # of each vector: sums that are still apart
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [add_picks(builder, *pair, *_both(pair[0].type.count, parts)) for pair in pairs]
            parts *= 2
        (found,) = vectors
        while found.type.count > parts:
            found = add_picks(builder, found, found, *_halves(found.type.count, parts))
        data = context.make_array(signature.args[0])(context, builder, array).data
        for first, place in ((0, index), (4, builder.add(index, pitch))):
            four = pick(builder, found, found, range(first, first + 4))
            store = builder.store(four, builder.bitcast(builder.gep(data, [place]), four.type.as_pointer()))
            store.align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, a, b, c, d, e, f, g, h), generate


def _halves(lanes: int, parts: int) -> Picks:
    """The lanes of the lower halves of the parts of a vector, and those of their upper halves."""
    size = lanes // parts
    lower = [part * size + k for part in range(parts) for k in range(size // 2)]
    return lower, [lane + size // 2 for lane in lower]


def _both(lanes: int, parts: int) -> Picks:
    """The same of two vectors, one after the other."""
    lower, upper = _halves(lanes, parts)
    return [*lower, *(lane + lanes for lane in lower)], [*upper, *(lane + lanes for lane in upper)]
