"""docs/fidelity.md: the code, options and tests that it names exist, and every system is on it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY, make_options
from fairseq.models import MODEL_REGISTRY

PAGE = (REPOSITORY / "docs" / "fidelity.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([^`\n]+)`", PAGE)
TESTS = sorted({part for part in NAMED if "::test_" in part})
CODE = sorted({part for part in NAMED if "::" in part} - set(TESTS))
FILES = sorted({part for part in NAMED if re.fullmatch(r"(docs|examples|tests|benchmarks)/[\w/.]+", part)})
OPTIONS = sorted({option for part in NAMED for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", part)})


@cache
def names_in(path: Path) -> set[str]:
    """Functions and classes of a module, also those that are assigned."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {
        node.targets[0].id for node in tree.body if isinstance(node, ast.Assign) and hasattr(node.targets[0], "id")
    }


def test_something_is_named():
    assert len(CODE) > 50 and len(TESTS) > 70 and len(OPTIONS) > 40 and len(FILES) > 1


@pytest.mark.parametrize("named", CODE)
def test_code_exists(named):
    path, name = named.split("::")
    assert name in names_in(REPOSITORY / "fairseq_syntax" / path)


@pytest.mark.parametrize("named", TESTS)
def test_tests_exist(named):
    path, name = named.split("::")
    assert name in names_in(REPOSITORY / "tests" / path)


@pytest.mark.parametrize("named", FILES)
def test_files_exist(named):
    assert (REPOSITORY / named).is_file()


@pytest.mark.parametrize("option", OPTIONS)
def test_options_exist(option):
    listed = make_options.page() + make_options.verbs_page()
    assert f"`{option}`" in listed or option == "--share-decoder-input-output-embed", "fairseq's"


def test_equations_and_defects_have_a_test():
    """In tables with a column for it."""
    checked = 0
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        head, _, *rows = table.splitlines()
        if head.endswith(("| test |", "| ours |")) and "the paper's" not in head:
            for row in rows:
                assert re.search(r"::test_\w+` \|$", row), row
                checked += 1
    assert checked > 60


@pytest.mark.parametrize("page", ["docs/systems/pascal.md", *(f"examples/{name}/README.md" for name in
    ("nc11", "wmt16", "pascal_wmt17", "pascal_wmt18", "pascal_wat"))])  # fmt: skip
def test_published_scores_of_pascal_are_quoted_with_what_they_are(page):
    text = " ".join((REPOSITORY / page).read_text(encoding="utf-8").split())
    link = r"\[does not compute the published equations\]\(\.\./\.\./docs/fidelity\.md#defects-in-published-code\)"
    assert re.search(rf"is as published, but the released code(, [^.]*,)? {link}", text)


# section -> its last equation
EQUATIONS = {"PASCAL": 3, "SA-NMT": 24, "Syntax-directed attention": 14, "Latent graph parsing": 10, "Latent trees": 5}


@pytest.mark.parametrize("section", EQUATIONS)
def test_every_equation_has_a_row(section):
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    found = set()
    for row in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE):
        for numbers in re.findall(r"\beqs?\. ([\d–, ]+)", row):
            for first, last in re.findall(r"(\d+)(?:–(\d+))?", numbers):
                found.update(range(int(first), int(last or first) + 1))
    assert found == set(range(1, EQUATIONS[section] + 1))


def test_every_system_is_on_the_page():
    ours = [name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("fairseq_syntax.")]
    assert ours and not [name for name in ours if f"`{name}" not in PAGE]
