"""What options look like, how files are loaded, and what an import does."""

import ast
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import types
from enum import Enum, StrEnum

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


def test_nothing_loads_unsafely():
    """No `weights_only=False`, no pickle, no other `torch.load` put in the place of torch's."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.keyword) and node.arg == "weights_only":
                assert getattr(node.value, "value", None) is True, place
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                if names == {"pickle", "UnpicklingError"}:
                    continue  # an exception to catch loads nothing
                assert not names & {"pickle", "dill", "cloudpickle", "joblib"}, place
            if isinstance(node, ast.Assign):
                assert "torch.load" not in {ast.unparse(target) for target in node.targets}, place


REGISTERED = """
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq.criterions import CRITERION_REGISTRY
registries = ARCH_MODEL_REGISTRY, TASK_REGISTRY, CRITERION_REGISTRY
ours = "fairseq_syntax."
names = [str(name) for known in registries for name, cls in known.items() if cls.__module__.startswith(ours)]
print(*sorted(names))
"""
FIRST = (
    # the log of fairseq is at level DEBUG
    "import fairseq, fairseq_syntax, logging; assert logging.getLogger().level == logging.INFO",
    # as spawned workers do that unpickle a model
    "from fairseq_syntax.systems.pascal import PascalTransformerModel",
    "from fairseq_syntax.hub import HubModel; HubModel.from_pretrained('agreement-tag', parser='none')",
)


def test_everything_is_registered_with_fairseq_whatever_comes_first():
    given = {"cwd": REPOSITORY, "stdout": subprocess.PIPE, "text": True}
    programs = [subprocess.Popen([sys.executable, "-c", f"{first}\n{REGISTERED}"], **given) for first in FIRST]
    printed = [program.communicate(timeout=120)[0].splitlines()[-1] for program in programs]
    assert "pascal_transformer" in printed[0].split() and len(set(printed)) == 1
