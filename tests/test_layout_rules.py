"""The rules of files: none is long, and every module says where it is tested.

A module is tested in its mirrored file (hybrid/x/y.py in tests/hybrid/x/test_y.py) or in the file that TESTED_IN names.
Of bench/ only what its files share has tests: a benchmark holds its own results against an oracle before it times anything.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.support.imports import ROOT, modules

MOST_LINES = 350
SOURCES = ("hybrid", "cpu", "gpu", "bench", "examples", "tests")
ENDINGS = {".py", ".cu", ".cuh", ".cpp", ".h", ".html"}

# Modules without a mirrored test file, and the file that tests them: it imports them or names their path.
TESTED_IN: dict[str, str] = {
    "hybrid/cli/__init__.py": "tests/hybrid/cli/test_command_line.py",
    "hybrid/contract/dense.py": "tests/cpu/test_mlp.py",
    "hybrid/contract/pvm.py": "tests/cpu/test_pvm.py",
    "gpu/pvm_plan.py": "tests/gpu/test_pvm.py",
    "hybrid/contract/sparse.py": "tests/cpu/test_rows.py",
    **{
        f"hybrid/cli/commands/{name}.py": "tests/hybrid/cli/commands/test_use.py"
        for name in ("__init__", "analogy", "neighbours", "next", "recommend", "similar")
    },
    "hybrid/use/similar.py": "tests/hybrid/use/test_recommender.py",
    "hybrid/sweep/asked.py": "tests/hybrid/sweep/test_file.py",
    "hybrid/sweep/child.py": "tests/hybrid/sweep/test_trial.py",
    "hybrid/cli/finding.py": "tests/hybrid/cli/test_doctor.py",
    "hybrid/ranks/process.py": "tests/hybrid/ranks/test_launch.py",
    "hybrid/cli/ranks.py": "tests/hybrid/cli/commands/test_launch.py",
    "hybrid/cli/arguments.py": "tests/hybrid/cli/test_options.py",
    "hybrid/models/_text.py": "tests/hybrid/models/test_language.py",
    "hybrid/models/_labelled.py": "tests/hybrid/models/test_labels.py",
    "hybrid/pvm/caller.py": "tests/bench/test_gpu_imports.py",
    "hybrid/pvm/halo.py": "tests/hybrid/pvm/test_shared.py",
    "hybrid/pvm/joined.py": "tests/hybrid/pvm/test_shared.py",
    "hybrid/pvm/judge/reports.py": "tests/hybrid/models/test_pvm.py",
    "hybrid/pvm/source.py": "tests/hybrid/cli/commands/test_pvm.py",
    "cpu/tree_shard.py": "tests/hybrid/sharded/test_tree.py",
    "hybrid/readout/base/shape.py": "tests/hybrid/readout/test_kinds.py",
    "hybrid/sharded/walk.py": "tests/hybrid/sharded/test_tree.py",
    "hybrid/sharded/rebuilt.py": "tests/hybrid/engine/ranked/test_shards.py",
    "hybrid/sharded/refused.py": "tests/hybrid/sharded/test_embedding.py",
    "hybrid/sklearn/labeller.py": "tests/hybrid/sklearn/test_label_tree_classifier.py",
    "hybrid/train/job.py": "tests/hybrid/train/test_best.py",
    "hybrid/train/stop.py": "tests/hybrid/train/test_loop.py",
    "cpu/bits.py": "tests/cpu/test_halves.py",
    "cpu/brute_force.py": "tests/cpu/test_neighbours.py",
    "cpu/forest.py": "tests/cpu/test_index.py",
    "cpu/graph.py": "tests/cpu/test_index.py",
    "cpu/tuned_index.py": "tests/cpu/test_index.py",
    "cpu/group_tiles.py": "tests/cpu/test_groups.py",
    "cpu/logistic_visit.py": "tests/cpu/test_logistic_rows.py",
    "cpu/batch_rule.py": "tests/cpu/test_rule.py",
    "cpu/shared_negatives.py": "tests/cpu/test_sampled_logistic.py",
    "cpu/online.py": "tests/cpu/test_units.py",
    "cpu/tree_crowds.py": "tests/cpu/test_tree_batch.py",
    "cpu/tile.py": "tests/cpu/test_small_gemm.py",
    "cpu/visit.py": "tests/cpu/test_pvm.py",
    "gpu/errors.py": "tests/gpu/test_device.py",
    "gpu/plan.py": "tests/gpu/test_units.py",
    "gpu/private.py": "tests/cpu/test_private.py",
    "gpu/queues.py": "tests/gpu/test_device.py",
    "hybrid/__init__.py": "tests/hybrid/test_init.py",
    "hybrid/feeds/interactions.py": "tests/hybrid/feeds/test_ratings.py",
    "hybrid/feeds/video/ffmpeg.py": "tests/hybrid/feeds/video/clips/test_video_file.py",
    "hybrid/feeds/video/index.py": "tests/hybrid/feeds/video/clips/test_video_file.py",
    "hybrid/engine/begun.py": "tests/hybrid/engine/test_engine.py",
    "hybrid/engine/__init__.py": "tests/hybrid/engine/test_engine.py",
    "hybrid/engine/trunk/pytorch/attention.py": "tests/hybrid/engine/trunk/test_attention.py",
    "hybrid/engine/trunk/pytorch/module.py": "tests/hybrid/engine/trunk/test_torch.py",
    "hybrid/engine/part.py": "tests/gpu/test_waits.py",
    "hybrid/engine/ranked/__init__.py": "tests/hybrid/engine/ranked/test_failures.py",
    "hybrid/engine/route.py": "tests/gpu/test_waits.py",
    "hybrid/engine/saved.py": "tests/hybrid/train/test_failures.py",
    "hybrid/engine/slot_state.py": "tests/hybrid/engine/test_slot.py",
    "hybrid/engine/trunk/__init__.py": "tests/hybrid/engine/trunk/test_registry.py",
    "hybrid/engine/trunk/_dense.py": "tests/hybrid/engine/trunk/test_mlp.py",
    "hybrid/engine/trunk/_stages.py": "tests/hybrid/train/test_plots.py",
    "hybrid/engine/trunk/_layers.py": "tests/hybrid/engine/trunk/test_mlp.py",
    "hybrid/engine/trunk/_one_hidden.py": "tests/hybrid/engine/trunk/test_mlp.py",
    "hybrid/placement/measure.py": "tests/gpu/test_placement.py",
    "hybrid/placement/readouts.py": "tests/gpu/test_placement.py",
    "hybrid/placement/rows.py": "tests/gpu/test_placement.py",
    "hybrid/readout/__init__.py": "tests/hybrid/readout/test_registry.py",
    "hybrid/readout/base/__init__.py": "tests/hybrid/readout/test_readouts.py",
    "hybrid/readout/base/exclude.py": "tests/hybrid/readout/test_readouts.py",
    "hybrid/readout/base/foreign.py": "tests/gpu/test_torch.py",
    "hybrid/readout/base/halves.py": "tests/hybrid/readout/test_split_tree.py",
    "hybrid/readout/base/place.py": "tests/gpu/test_readouts.py",
    "hybrid/readout/base/slots.py": "tests/hybrid/readout/test_head.py",
    "hybrid/readout/base/stages.py": "tests/gpu/test_waits.py",
    "hybrid/readout/base/still.py": "tests/hybrid/readout/test_readouts.py",
    "hybrid/readout/base/tails.py": "tests/hybrid/readout/test_head.py",
    "hybrid/readout/base/trials.py": "tests/gpu/test_placement.py",
    "hybrid/readout/neighbours.py": "tests/hybrid/readout/test_kinds.py",
    "hybrid/readout/sampled.py": "tests/hybrid/readout/test_kinds.py",
    "hybrid/readout/base/threshold.py": "tests/hybrid/readout/test_mixture.py",
    "hybrid/pvm/judge/latest.py": "tests/hybrid/pvm/judge/test_live.py",
    "hybrid/pvm/originals/recording.py": "tests/hybrid/pvm/originals/test_replay.py",
    "hybrid/pvm/originals/replay_classic.py": "tests/hybrid/pvm/originals/test_replay.py",
    "hybrid/pvm/originals/replay_cuda.py": "tests/hybrid/pvm/originals/test_replay.py",
    "hybrid/pvm/originals/replayer.py": "tests/hybrid/pvm/originals/test_replay.py",
    "hybrid/torch/asked.py": "tests/hybrid/torch/test_loss.py",
    "hybrid/torch/kinds.py": "tests/hybrid/torch/test_loss.py",
    "hybrid/torch/places.py": "tests/gpu/test_torch.py",
    "hybrid/pvm/validate.py": "tests/hybrid/pvm/test_config.py",
}


def long_files() -> set[str]:
    paths = (path for source in SOURCES for path in (ROOT / source).rglob("*") if path.suffix in ENDINGS)
    return {_name(path) for path in paths if path.read_bytes().count(b"\n") > MOST_LINES}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def sources() -> dict[str, str]:
    """The paths of the modules that need a test, with their names: those that define a function or a class."""
    found = {_name(path): name for package in ("hybrid", "cpu", "gpu") for name, path in modules(package).items()}
    return {path: name for path, name in found.items() if _defined(path) and not path.endswith("__main__.py")}


@functools.cache
def _defined(path: str) -> set[str]:
    """The names of the functions and classes that a module defines."""
    body = ast.parse((ROOT / path).read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def mirrored(path: str) -> Path:
    """The test file of a module: that of a package is named after it."""
    source = Path(path)
    source = source.parent if source.name == "__init__.py" else source
    return ROOT / "tests" / source.parent / f"test_{source.stem.removeprefix('_')}.py"


def mentions(test: Path, path: str, module: str) -> bool:
    """Whether a test file names the module or its path, or imports something that the module defines."""
    text = test.read_text()
    if re.search(rf"\b{re.escape(module)}\b", text) or path in text:
        return True
    imported = {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    package, _, stem = module.rpartition(".")
    offered = {name for source, name in imported if source and module.startswith(source)}
    return (package, stem) in imported or bool(offered & _defined(path))


def test_no_file_is_long():
    assert long_files() == set(), f"files over {MOST_LINES} lines"


def test_every_module_says_where_it_is_tested():
    found = sources()
    assert TESTED_IN.keys() <= found.keys(), "modules that are gone"
    untold = {path for path in found if path not in TESTED_IN and not mirrored(path).exists()}
    assert untold == set(), "neither a mirrored test file nor a line in TESTED_IN"


@pytest.mark.parametrize(("path", "test"), TESTED_IN.items())
def test_the_file_named_tests_the_module(path, test):
    assert not mirrored(path).exists(), "it has a mirrored test file; take it out of TESTED_IN"
    assert (ROOT / test).exists(), f"{test} is gone"
    assert mentions(ROOT / test, path, sources()[path]), f"{test} neither imports nor names {path}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"""Also of cpu/tree.py."""', True),
        ("import cpu.tree", True),
        ("from cpu import tree", True),
        ("from cpu.tree import balanced", True),
        ("from cpu.tree_softmax import step", False),
        ("balanced = 1", False),
    ],
)
def test_a_test_file_tells_of_a_module_by_its_path_its_name_or_what_it_defines(tmp_path, text, told):
    test = tmp_path / "test_other.py"
    test.write_text(text)
    assert mentions(test, "cpu/tree.py", "cpu.tree") is told
