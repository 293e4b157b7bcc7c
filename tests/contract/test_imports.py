"""What options look like, habits that the package does without, and what an import does."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
import types
from enum import Enum, StrEnum
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY
from fairseq.dataclass import FairseqDataclass

import fairseq_syntax

PACKAGE = REPOSITORY / "fairseq_syntax"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


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


def test_checkpoints_are_loaded_safely_and_devices_are_not_assumed():
    """Other habits are ruff's to find."""
    habit = re.compile(r"(?<!`)weights_only=(?!True)|\.cuda\(\)")
    assert all(map(habit.search, ["torch.load(x, weights_only=False)", "model.cuda()"]))
    assert not [relative(path) for path in SOURCES if habit.search(path.read_text(encoding="utf-8"))]


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
import sys
assert not [finder for finder in sys.meta_path if "fairseq_syntax" in type(finder).__module__]
print(*sorted(names))
"""
# fairseq itself cannot be imported by two threads at a time
THREAD = """
import importlib, threading
import fairseq_syntax
thread = threading.Thread(target=importlib.import_module, args=["fairseq_syntax.systems.parser.model"])
thread.start(), thread.join()
"""


@pytest.fixture(scope="module")
def registered() -> str:
    """Names in fairseq's registries that are ours, where fairseq is there first."""
    done = python(f"import fairseq, fairseq_syntax{REGISTERED}")
    assert done.returncode == 0, done.stderr[-1000:]
    assert "pascal_transformer" in done.stdout
    return done.stdout


@pytest.mark.parametrize(
    "first",
    [
        "import fairseq_syntax",
        # imports fairseq while it is halfway, and others that are registered need it
        "from fairseq_syntax.systems.parser.model import LatentGraphParserModel",
        "import fairseq_syntax; fairseq_syntax.register(); fairseq_syntax.register()",
        THREAD,
    ],
    ids=["package", "system", "register", "thread"],
)
def test_everything_is_registered_with_fairseq(first, registered):
    done = python(first + REGISTERED)
    assert (done.returncode, done.stdout) == (0, registered), done.stderr[-2000:]


SPAWN = """
import multiprocessing
from fairseq_syntax.systems.pascal import PascalTransformerModel

def names(cls):
    # what the worker has imported is what unpickling the class has
    from fairseq.models import ARCH_MODEL_REGISTRY
    return sum(cls.__module__.startswith("fairseq_syntax.") for cls in ARCH_MODEL_REGISTRY.values())

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(names, [PascalTransformerModel]) == names(None) > 11
"""


def test_workers_that_are_spawned_register_everything(tmp_path):
    path = tmp_path / "spawn.py"
    path.write_text(SPAWN, encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-1000:]


def test_a_module_that_fails_does_not_keep_others_from_being_registered():
    done = python(
        "import fairseq_syntax, sys\n"
        "sys.modules['fairseq.data'] = None\n"
        "try:\n    import fairseq_syntax.data.dataset\nexcept ImportError:\n    del sys.modules['fairseq.data']\n"
        f"else:\n    sys.exit('no error'){REGISTERED}"
    )
    assert done.returncode == 0 and "pascal_transformer" in done.stdout, done.stderr[-2000:]
