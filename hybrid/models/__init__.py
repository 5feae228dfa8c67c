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
    RANKS                    True: several ranks train a model together, as `Job` and `Model` in hybrid/train/job.py say
    vectors(run)             -> (names, rows): what `hybrid export` writes; outputs(run), users(run) so too, with --side
    text(report)             -> a report as lines for a person
    Use(run)                 a class: a trained run to be used, as `hybrid.open_run` gives it. Its methods, those that it has,
                             are what the command line can do with its runs:

        recommend(users, k, ...)             hybrid recommend: see hybrid/use/recommender.py, whose methods the command calls
        similar(names, k)                    in Python alone: see hybrid/use/vectors.py
        next(text, k), continue_text(...)    hybrid next: see hybrid/use/language.py
        predict(texts, k)                    hybrid predict: see hybrid/models/labels.py

`hybrid neighbours` and `hybrid analogy` ask `vectors`, as `hybrid export` does. A command on a run whose model lacks what it
needs is refused by name.

Importing a module must import neither Numba nor SciPy: the command line reads --threads before them.
"""
