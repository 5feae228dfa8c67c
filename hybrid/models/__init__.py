"""Models of the command line: every module of this package is one, discovered by its name.

A module has

    Options                  a frozen dataclass of `settings.option` fields: the options of `hybrid train NAME`
    Evaluation               likewise: the options of `hybrid eval` for its runs
    FILES                    names of the files that its jobs write into a run's folder before the run exists
    prepare(options)         -> Job (hybrid/train/job.py): reads the data; ValueError or OSError for bad data
    load(source, options)    -> (model, facts): resumes from a checkpoint
    evaluate(run, given)     -> JSON-compatible figures of a trained run (hybrid/train/runs.py: Trained)

and optionally

    TUNED                    other defaults of options for some readouts: {"tree": {"rate": 0.02}, ...}
    complete(chosen, explicit)   fills in dependent options; ValueError for contradictory ones
    CPU_ONLY                 the reason for not using a GPU
    RANKS                    True: several ranks train a model together, see `Job` and `Model` in hybrid/train/job.py
    vectors(run)             -> (names, rows): the output of `hybrid export`; likewise outputs(run), users(run) with --side
    text(report)             -> a report as human-readable lines
    Use(run)                 a class: a trained run in use, as returned by `hybrid.open_run`. Its optional methods define the
                             commands available for its runs:

        recommend(users, k, ...)             hybrid recommend: see hybrid/use/recommender.py, whose methods the command calls
        similar(names, k)                    in Python alone: see hybrid/use/vectors.py
        next(text, k), continue_text(...)    hybrid next: see hybrid/use/language.py
        predict(texts, k)                    hybrid predict: see hybrid/models/labels.py

`hybrid neighbours` calls `vectors`, as `hybrid export` does. A command is rejected, with a message that names it, if the model
of the run lacks a required attribute.

A module must import neither Numba nor SciPy on import: the command line reads --threads before them.
"""
