"""Options as fields of dataclasses, what their texts on a command line mean, and kinds found by name."""

import argparse
import dataclasses

import pytest

from hybrid import settings


@pytest.mark.parametrize(
    ("read", "text"),
    [(settings.positive, text) for text in ("0", "1.5", "1000000001", "\u0661")]
    + [(settings.whole, text) for text in ("-1", " 1", "x", "")]
    + [(settings.number, text) for text in ("-0.1", "inf", "x")],
)
def test_a_text_that_means_no_such_number_is_refused(read, text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"found .*expected"):
        read(text)


@dataclasses.dataclass(frozen=True)
class Typed:
    width: int = settings.option(64, "", type=settings.positive)
    rate: float = settings.option(0.5, "", type=settings.number)
    batch: int = settings.option(0, "0: all", type=settings.positive)
    columns: list[str] | None = settings.option(None, "", type=settings.names)
    at: list[int] | None = settings.option(None, "", type=settings.rising)
    set: list[str] | None = settings.option(None, "", action="append")
    text: str | None = settings.option(None, "", needed=True)
    loss: str = settings.option("nce", "", choices=("nce", "logistic"))
    pin: bool = settings.option(False, "")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("width", (1, 64), (None, 0, 1.5, True, "1", [1], {}, 10**400, float("nan"))),
        ("rate", (0, 1, 0.25), (-1, float("inf"), float("nan"), "0.5", 10**400)),
        ("columns", (["a", "b"], ["a"], None), ("a", [1, 2], [["a"]])),
        ("text", ("a.txt",), (None, 1, ["a.txt"])),
        ("loss", ("nce", "logistic"), ("hinge", 3, ["nce"])),
        ("pin", (True, False), (None, 1, "yes", [])),
    ],
)
def test_what_a_file_may_say_of_an_option(name, good, bad):
    field = settings.fields(Typed)[name]
    assert [value for value in good if not settings.possible(field, value)] == []
    assert [value for value in bad if settings.possible(field, value)] == []


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Of a package of two kinds, beside a distribution that offers three."""
    package = tmp_path / "shelves"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__", "oak", "pine", "_saw", "inner/__init__"):
        (package / f"{name}.py").write_text("whose = 'ours'\n")
    (tmp_path / "foreign.py").write_text("whose = 'theirs'\n")
    facts = tmp_path / "foreign_shelves-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-shelves\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[toy.shelves]\nteak = foreign\noak = foreign\nbroken = foreign_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    return settings.Registry("shelves", "toy.shelves", "shelf")


def test_names_are_modules_of_the_package_and_what_distributions_offer(registry):
    assert registry.names() == ["broken", "oak", "pine", "teak"]


@pytest.mark.parametrize("name", ["ash", "_saw", "inner", ""])
def test_an_unknown_name_is_refused_with_those_that_are_known(registry, name):
    with pytest.raises(ValueError, match=f"^shelf: found '{name}', expected one of broken, oak, pine, teak$"):
        registry.load(name)


def test_a_module_that_cannot_be_imported_names_whose_it_is(registry):
    with pytest.raises(ValueError, match=r"^shelf 'broken', offered by foreign-shelves: No module named"):
        registry.load("broken")
