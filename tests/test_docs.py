"""The documentation is true: its Python runs, and it names every public thing."""

import re
from pathlib import Path

import pytest

import featgeo

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = sorted(ROOT.glob("docs/**/*.md"))


def names_after(page):
    """What the Python on a page leaves."""
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_python_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    names_after(page)


@pytest.mark.parametrize("name", featgeo.__all__)
def test_public_names_are_documented(name):
    item = getattr(featgeo, name)
    assert f"`{name}`" in (ROOT / "docs/api.md").read_text()
    assert item.__doc__
    if isinstance(item, type):
        members = [attribute for attribute in vars(item) if not attribute.startswith("_")]
        methods = [getattr(item, member) for member in members if callable(getattr(item, member))]
        assert all(method.__doc__ for method in methods)


def test_names_in_the_table_of_symbols_exist():
    for reference in re.findall(r"`([A-Za-z_.]+)(?:\([^`]*\))?`", (ROOT / "docs/symbols.md").read_text()):
        first, *rest = reference.split(".")
        if hasattr(featgeo, first):
            target = getattr(featgeo, first)
            for attribute in rest:
                assert hasattr(target, attribute) or attribute in target.__dataclass_fields__, reference
        else:
            assert first in {"None", "x_space"}, reference


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: page.name)
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_runs_and_its_numbers_are_those_of_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, readme = names_after(README), README.read_text()
    model, parts = found["model"], found["parts"]
    for numbers in (
        f"sigma {model.singular_values_[0]:.3f}, {model.held_out_singular_values_[0]:.3f} on held-out rows",
        f"{parts.bivariate.energy:.3f} by single sources, {parts.interaction.energy:.3f} only together",
    ):
        assert numbers in readme
