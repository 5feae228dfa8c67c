"""A run of a random model, drawn from one seed and put through all that can happen to it, ends as the serial run does.

    case      what a seed draws: the model, its data, its settings
    pvm_case  the same of a Predictive Vision Model
    serial    what is promised: stages one after another, without queues, events or threads
    queues    queues of the CPU whose work is done in an order drawn from a seed, in one thread
    ranks     ranks in one process, which take turns by a seed
    ordeal    what happens to a run: it is left, saved, resumed, copied, interrupted, broken, asked
    replay    all ways of one seed beside its serial run
    interrupts  Ctrl-C at the n-th line of the package, in all that a caller does
    memory    what a long run leaves in memory

`python -m tests.replay SEED` repeats a seed, `make soak TICKS=...` goes from seed to seed.
"""

TICKS = 400  # of each way of a seed
