"""Kinds found by name: modules of a package, and modules that another distribution offers."""

import pytest

from hybrid.settings import Registry


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
    return Registry("shelves", "toy.shelves", "shelf")


def test_names_are_modules_of_the_package_and_what_distributions_offer(registry):
    assert registry.names() == ["broken", "oak", "pine", "teak"]


@pytest.mark.parametrize("name", ["ash", "_saw", "inner", ""])
def test_an_unknown_name_is_refused_with_those_that_are_known(registry, name):
    with pytest.raises(ValueError, match=f"^shelf: found '{name}', expected one of broken, oak, pine, teak$"):
        registry.load(name)


def test_a_module_that_cannot_be_imported_names_whose_it_is(registry):
    with pytest.raises(ValueError, match=r"^shelf 'broken', offered by foreign-shelves: No module named"):
        registry.load("broken")
