"""What options look like, how files are loaded, and what an import does."""

import ast
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from enum import Enum, StrEnum
from typing import get_args

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


def test_options():
    """Flags can be switched on, choices are checked, and each has a help text; they survive pickling."""
    classes = option_classes()
    assert len(classes) > 15
    for cls in classes:
        own = inspect.get_annotations(cls)  # an option of another component has a default that begins with $
        for field in (f for f in dataclasses.fields(cls) if f.name in own and not str(f.default).startswith("${")):
            where = f"{cls.__name__}.{field.name}"
            assert field.metadata.get("help"), where
            assert field.type is not bool or field.default is False, where
            kinds = [kind for kind in (field.type, *get_args(field.type)) if isinstance(kind, type)]
            assert all(issubclass(kind, StrEnum) for kind in kinds if issubclass(kind, Enum)), where
        assert pickle.loads(pickle.dumps(cls())) == cls()


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
