"""Models as the command line offers them: every module of this package is one, found by its name.

A module has

    Options                  a frozen dataclass of `settings.option` fields: what `hybrid train NAME` takes
    Evaluation               so too: what `hybrid eval` takes of its runs
    FILES                    names of the files that its jobs write into a run's folder before the run is there
    prepare(options)         -> Job (hybrid/train/job.py): reads the data; ValueError or OSError for bad data
    load(source, options)    -> (model, facts): goes on from a checkpoint
    evaluate(run, given)     -> figures of a trained run (hybrid/train/runs.py: Trained), JSON-able

and, where it wants them,

    TUNED                    other defaults of options under some readouts: {"tree": {"rate": 0.02}, ...}
    complete(chosen, said)   fills in options that follow from others; ValueError for those that contradict each other
    CPU_ONLY                 why it uses no GPU
    vectors(run)             -> (names, rows): what `hybrid export` writes
    text(report)             -> a report as lines for a person

Importing a module must import neither Numba nor SciPy: the command line reads --threads before them.
"""

from ..registry import Registry

MODELS = Registry("hybrid.models", "hybrid.models", "model")
