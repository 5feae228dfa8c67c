"""Which faults are planted: names that outlive lines, tokens of kernels."""

from tests.mutants.plant import drawn, mutants

TOY = '''
def clipped(x: int | float, *, most=5):
    """At most 5."""
    return most if x > most else x


def halvings(n):
    while not n <= 1:
        n = n // 2
        yield n
'''


def test_a_name_outlives_lines_put_before_it_and_a_larger_draw_begins_with_the_smaller_one():
    before = {one.name: one.plant(TOY) for one in mutants("m.py", TOY)}
    after = {one.name: one.plant("# é\n" + TOY) for one in mutants("m.py", "# é\n" + TOY)}
    assert after == {name: "# é\n" + text for name, text in before.items()}
    every = mutants("m.py", TOY)
    assert drawn(every, 9, 1)[:3] == drawn(every, 3, 1) != drawn(every, 3, 2)


def test_tokens_of_kernels():
    text = """// 1 < 2
template <int N> __global__ void __launch_bounds__(256) add(float *y, const float *x)
{
    if (x[0] < 1.5f && N > 2000) __syncthreads();  // 7
    for (int k = 0; k < N; ++k) bring(x + k);
}
"""
    found = {(one.old, one.new): one.plant(text) for one in mutants("gpu/m.cu", text)}
    assert [old for old, _ in found] == ["0", "0", "<", "1.5f", "1.5f", "&&", ">", "__syncthreads()"]
    assert found["0", "(-1)"] == text.replace("x[0]", "x[(-1)]")
    assert found["__syncthreads()", ""] == text.replace("__syncthreads();", ";")
