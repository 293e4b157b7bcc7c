"""Who imports whom, what options look like, and habits that the package does without."""

import ast
import dataclasses
import importlib
import inspect
import io
import pickle
import pkgutil
import re
import subprocess
import sys
import tokenize
import types
from enum import Enum, StrEnum
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY
from fairseq.dataclass import FairseqDataclass

import fairseq_syntax

PACKAGE = REPOSITORY / "fairseq_syntax"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# room -> rooms of ours that it may import, besides itself
ROOMS = {
    "trees": set(),
    "data": {"trees", "compat"},
    "modules": {"trees"},
    "models": {"modules", "trees"},
    "search": {"modules", "trees"},
    "tasks": {"data", "trees", "search", "compat"},
    "criterions": {"trees"},
    "optim": set(),
    "analysis": {"trees"},
    "compat": set(),
    "version": set(),
}
ROOMS["cli"] = set(ROOMS)
ROOMS["__init__"] = set(ROOMS) - {"cli"}

# room -> parts of fairseq that it may import; rooms not named here are free
FAIRSEQ = {
    "trees": (),
    "data": ("fairseq.data",),
    "modules": ("fairseq.modules",),
    "version": (),
}


def imports(source: str, package: str) -> list[tuple[int, str]]:
    """(line, module) of everything that is imported, in functions too; relative ones resolved.

    Args:
        package: that the file is in, such as "fairseq_syntax.data".
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            # `from .. import compat` names modules, too
            names = [f"{module}.{alias.name}" for alias in node.names]
            found += [
                (node.lineno, name)
                for name in (names if module in (package, "fairseq_syntax", "fairseq") else [module])
            ]
    return found


def violations(path: str, source: str) -> list[str]:
    """Imports against the rules, as `modules/x.py:12 imports models`.

    Args:
        path: inside the package.
    """
    parts = path.removesuffix(".py").split("/")
    room = parts[0]
    package = ".".join(["fairseq_syntax", *parts[:-1]])
    wrong = []
    for line, module in imports(source, package):
        if module == "fairseq_syntax" or module.startswith("fairseq_syntax."):
            name = module.split(".")[1] if "." in module else ""
            target = name if name in ROOMS else "__init__"  # a name that the package itself has
            allowed = {room, *ROOMS.get(room, ()), *(["__init__"] if room == "cli" else [])}
            if target not in allowed:
                wrong.append(f"{path}:{line} imports {target}")
        elif module.split(".")[0] in ("fairseq", "fairseq_cli") and room in FAIRSEQ:
            if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in FAIRSEQ[room]):
                wrong.append(f"{path}:{line} imports {module}")
    return wrong


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_imports_go_one_way(path):
    assert relative(path).removesuffix(".py").split("/")[0] in ROOMS, "a new room: say in ROOMS what it may import"
    assert not violations(relative(path), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("modules/x.py", "import torch\n\nfrom ..models.y import Z\n", "modules/x.py:3 imports models"),
        ("trees/x.py", "from fairseq import utils\n", "trees/x.py:1 imports fairseq.utils"),
        ("trees/x.py", "def f():\n    import fairseq.data\n", "trees/x.py:2 imports fairseq.data"),
        ("trees/x.py", "from ..data.arrays import ArrayReader\n", "trees/x.py:1 imports data"),
        ("data/x.py", "from fairseq.models import register_model\n", "data/x.py:1 imports fairseq.models"),
        ("data/x.py", "from fairseq import models\n", "data/x.py:1 imports fairseq.models"),
        ("criterions/x.py", "from .. import models\n", "criterions/x.py:1 imports models"),
        ("models/x.py", "import fairseq_syntax.tasks.syntax_translation\n", "models/x.py:1 imports tasks"),
        ("tasks/x.py", "from fairseq_syntax.cli import parse\n", "tasks/x.py:1 imports cli"),
        ("__init__.py", "from .cli import parse\n", "__init__.py:1 imports cli"),
    ],
)
def test_a_wrong_import_is_named(path, source, expected):
    assert violations(path, source) == [expected]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("data/x.py", "from .. import compat\nfrom . import arrays\nfrom fairseq.data import Dictionary\n"),
        ("models/x.py", "from fairseq import utils\nfrom ..modules.y import Z\nfrom .y import Z\n"),
        ("cli/x.py", "import fairseq_syntax\nfrom ..analysis import plots\nfrom .parse import main\n"),
    ],
)
def test_right_imports_pass(path, source):
    assert violations(path, source) == []


# --- options ------------------------------------------------------------------------------------------------------


def option_classes() -> list[type]:
    """Every dataclass of options that the package defines."""
    found = set()
    for info in pkgutil.walk_packages(fairseq_syntax.__path__, "fairseq_syntax."):
        if ".cli" in info.name:
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, FairseqDataclass) and value.__module__ == info.name:
                found.add(value)
    return sorted(found, key=lambda cls: cls.__qualname__)


def option_problems(cls: type) -> list[str]:
    """What is wrong with a dataclass of options; see each line."""
    inherited = {f.name for base in cls.__mro__[1:] if dataclasses.is_dataclass(base) for f in dataclasses.fields(base)}
    problems = []
    for field in dataclasses.fields(cls):
        if field.name in inherited and field.name not in inspect.get_annotations(cls):
            continue
        if str(field.default).startswith("${"):
            continue  # an option of another component, whose value is taken over
        where = f"{cls.__name__}.{field.name}"
        if isinstance(field.type, str):
            problems.append(f"{where}: fairseq needs types, not text; no `from __future__ import annotations`")
            continue
        if field.type is bool and field.default is not False:
            problems.append(f"{where}: a bool that is not False by default cannot be switched on by its flag")
        if isinstance(field.type, types.UnionType):
            problems.append(f"{where}: fairseq cannot read `X | None`; write Optional[X]")
        if isinstance(field.type, type) and issubclass(field.type, Enum):
            module = sys.modules[field.type.__module__]
            if not issubclass(field.type, StrEnum) or getattr(module, field.type.__name__, None) is not field.type:
                problems.append(f"{where}: a choice is a StrEnum at the top of its module, or it cannot be pickled")
        if not field.metadata.get("help"):
            problems.append(f"{where}: no help text")
    return problems


def test_option_classes_are_found():
    names = {cls.__name__ for cls in option_classes()}
    assert {"PascalOptions", "LisaOptions", "TagOptions", "SyntaxTranslationConfig"} <= names


@pytest.mark.parametrize("cls", option_classes(), ids=lambda cls: cls.__name__)
def test_options(cls):
    assert option_problems(cls) == []
    source = Path(sys.modules[cls.__module__].__file__).read_text(encoding="utf-8")
    assert "from __future__ import annotations" not in source
    assert pickle.loads(pickle.dumps(cls())) == cls()


def test_wrong_options_are_found():
    class Local(StrEnum):
        a = "a"

    @dataclasses.dataclass
    class Wrong(FairseqDataclass):
        on: bool = dataclasses.field(default=True, metadata={"help": "x"})
        union: int | None = dataclasses.field(default=None, metadata={"help": "x"})
        choice: Local = dataclasses.field(default=Local.a, metadata={"help": "x"})
        text: "int" = dataclasses.field(default=1, metadata={"help": "x"})
        silent: int = 1

    assert [re.match(r"Wrong\.(\w+)", problem)[1] for problem in option_problems(Wrong)] == [
        *("on", "union", "choice", "text", "silent")
    ]


# --- habits -------------------------------------------------------------------------------------------------------


def bad_habits(source: str) -> list[str]:
    """Line and name of what has no place in the package."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "weights_only" and not getattr(keyword.value, "value", False):
                    found.append(f"{node.lineno}: weights_only=False")
            if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
                found.append(f"{node.lineno}: .cuda()")
        elif isinstance(node, ast.ExceptHandler):
            if node.type is None:
                found.append(f"{node.lineno}: bare except")
            elif getattr(node.type, "id", "") in ("Exception", "BaseException") and (
                len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            ):
                found.append(f"{node.lineno}: except that hides everything")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and re.search(r"\b(TODO|FIXME|XXX)\b", token.string):
            found.append(f"{token.start[0]}: {token.string[:40]}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_habits(path):
    assert bad_habits(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "torch.load(x, weights_only=False)\n",
        "model.cuda()\n",
        "try:\n    x\nexcept:\n    raise\n",
        "try:\n    x\nexcept Exception:\n    pass\n",
        "x = 1  # TODO: more\n",
    ],
)
def test_bad_habits_are_found(source):
    assert len(bad_habits(source)) == 1


# --- what an import does ------------------------------------------------------------------------------------------

WITHOUT_FAIRSEQ = """
import importlib, pkgutil, sys

class Hidden:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in ("fairseq", "fairseq_cli") else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Hidden(finder) for finder in sys.meta_path]
try:
    import fairseq
except ModuleNotFoundError:
    pass
else:
    sys.exit("fairseq is not hidden")
import fairseq_syntax.trees
names = [info.name for info in pkgutil.iter_modules(fairseq_syntax.trees.__path__)]
for name in names:
    importlib.import_module(f"fairseq_syntax.trees.{name}")
from fairseq_syntax.trees.distances import tree_distances
print(len(names), tree_distances([1, -1]).tolist())
"""


def python(code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)


def test_trees_work_without_fairseq():
    done = python(WITHOUT_FAIRSEQ)
    assert done.returncode == 0, done.stderr[-1000:]
    count, distances = done.stdout.split(maxsplit=1)
    assert int(count) >= 6
    assert distances.strip() == "[[0, 1, 2], [1, 0, 1], [2, 1, 0]]"


def test_importing_prints_nothing():
    done = python("import fairseq_syntax")
    assert done.returncode == 0 and done.stdout == ""
