"""Rooms only get smaller, and the package calls its own functions, not its own programs."""

import ast
import tomllib
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.cli.program import VERBS

PACKAGE = REPOSITORY / "fairseq_syntax"
ROOMS = tomllib.loads(Path(__file__).with_name("rooms.toml").read_text(encoding="utf-8"))
CODE = {".py", ".sh", ".toml", ".yaml", ".md", ".css", ".js", ".jinja2"}
SLACK = 300


def lines(room: str) -> int:
    """Lines of the texts in a room; the room `fairseq_syntax` is the files beside its folders."""
    paths = PACKAGE.iterdir() if room == "fairseq_syntax" else (REPOSITORY / room).rglob("*")
    return sum(len(path.read_bytes().splitlines()) for path in paths if path.is_file() and path.suffix in CODE)


def test_every_room_has_a_number():
    rooms = {f"fairseq_syntax/{path.name}" for path in PACKAGE.iterdir() if list(path.glob("*.py"))}
    assert ROOMS.keys() == rooms | {"fairseq_syntax", "benchmarks", "docs", "examples", "tests"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_does_not_grow(room):
    """A larger number needs a line in CHANGELOG.md that says what users get for it."""
    now = lines(room)
    assert now <= ROOMS[room], f"{room}: {now} lines, but rooms.toml allows {ROOMS[room]}; remove some"
    assert now >= ROOMS[room] - SLACK, f"{room}: {now} lines; write that into tests/contract/rooms.toml"


def offenders() -> tuple[set[str], set[str]]:
    """Files that start a program of the package, and those that import a file by its path."""
    programs, imports = set(), set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.List, ast.Tuple)):
                words = [word.value for word in node.elts if isinstance(word, ast.Constant)]
                if "-m" in words or (words[:1] == ["fairseq-syntax"] and set(words[1:2]) & VERBS.keys()):
                    programs.add(name)
            elif isinstance(node, (ast.Attribute, ast.Name, ast.alias)):
                called = ast.unparse(node).rpartition(".")[2]
                if called in ("spec_from_file_location", "SourceFileLoader", "runpy"):
                    imports.add(name)
    return programs, imports


def test_no_program_of_ours_is_started_and_nothing_is_imported_by_path():
    assert offenders() == (set(), set())
