"""What options look like, and what an import does."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import types
from enum import Enum, StrEnum

import pytest
from contract import forks
from contract.command_lines import REPOSITORY
from fairseq.dataclass import FairseqDataclass

import fairseq_syntax

PACKAGE = REPOSITORY / "fairseq_syntax"


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
        if isinstance(field.type, type) and issubclass(field.type, Enum) and not issubclass(field.type, StrEnum):
            problems.append(f"{where}: a choice is a StrEnum")
        if not field.metadata.get("help"):
            problems.append(f"{where}: no help text")
    return problems


def test_options():
    classes = option_classes()
    assert len(classes) > 15
    assert not [problem for cls in classes for problem in option_problems(cls)]
    assert all(pickle.loads(pickle.dumps(cls())) == cls() for cls in classes)


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
trees = fairseq_syntax.trees
assert all(callable(getattr(trees, name)) for name in trees.__all__)
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


LIGHT = """
import sys
import fairseq_syntax, fairseq_syntax.cli.program
from fairseq_syntax.trees import read_conllu
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "fairseq", "numpy", "matplotlib", "scipy"}))
"""


def test_importing_loads_nothing_heavy():
    done = python(LIGHT)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr[-1000:]


REGISTERED = """
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq.criterions import CRITERION_REGISTRY
registries = ARCH_MODEL_REGISTRY, TASK_REGISTRY, CRITERION_REGISTRY
ours = "fairseq_syntax."
names = [str(name) for known in registries for name, cls in known.items() if cls.__module__.startswith(ours)]
print(*sorted(names))
"""
FIRST = {
    "fairseq": "import fairseq, fairseq_syntax",
    # as spawned workers do that unpickle a model
    "model": "from fairseq_syntax.systems.pascal import PascalTransformerModel",
    # others that are registered need it while it is halfway
    "system": "from fairseq_syntax.systems.parser.model import LatentGraphParserModel",
    "register": "import fairseq_syntax; fairseq_syntax.register(); fairseq_syntax.register()",
    "hub": """
from fairseq_syntax.hub import HubModel
try:
    HubModel.from_pretrained("nowhere")
except FileNotFoundError:
    pass
""",
    "checkpoint": """
from fairseq_syntax.checkpoints import load_state
try:
    load_state("")
except FileNotFoundError:
    pass
""",
}
# fairseq logs at level DEBUG
LEVEL = "import fairseq, fairseq_syntax, logging; print(logging.getLogger().level == logging.INFO)"


@pytest.fixture(scope="module")
def imported() -> dict[str, tuple[int, str, str]]:
    """Exit status, stdout and stderr of the programs above."""
    programs = {name: first + REGISTERED for name, first in FIRST.items()} | {"level": LEVEL}
    return dict(zip(programs, forks.run(*programs.values()), strict=True))


@pytest.mark.parametrize("name", FIRST)
def test_everything_is_registered_with_fairseq_whatever_comes_first(imported, name):
    status, printed, said = imported[name]
    assert status == 0 and "pascal_transformer" in printed, said[-1000:]
    assert printed == imported["fairseq"][1]


def test_the_log_is_not_left_at_level_debug(imported):
    assert imported["level"][:2] == (0, "True\n")
