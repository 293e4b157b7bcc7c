"""The house: who may import whom, one folder a system, functions of a size that can be read."""

import ast
import dataclasses
import importlib
import pkgutil
import re
import shutil
import subprocess

import pytest
from contract.command_lines import REPOSITORY
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.dataclass import FairseqDataclass
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.translation import TranslationConfig

from fairseq_syntax import systems
from fairseq_syntax.systems.recurrent import RecurrentOptions

PACKAGE = REPOSITORY / "fairseq_syntax"
SYSTEMS = [system.name for system in pkgutil.iter_modules(systems.__path__)]
BASES = ["recurrent", "transformer"]


# room, a line that has no place there, the contract that it breaks
WRONG = [
    ("trees", "from ..data.arrays import ArrayReader", "Arrows go down"),
    ("trees", "def f():\n    from fairseq.data import Dictionary", "Algorithms work without fairseq"),
    ("training", "from ..systems.pascal.model import PascalTransformerModel", "Arrows go down"),
    ("systems/tags", "from ...task import SyntaxTranslationTask", "Arrows go down"),
    ("systems/tags", "from ..pascal.model import PascalTransformerModel", "A system imports its base"),
    ("systems/recurrent", "from ..sdatt.model import SyntaxDirectedModel", "A system imports its base"),
]


def test_wrong_imports_break_the_contracts(tmp_path):
    """That the package itself keeps them says `make lint`."""
    shutil.copytree(PACKAGE, tmp_path / "fairseq_syntax", ignore=shutil.ignore_patterns("__pycache__"))
    for number, (room, line, _) in enumerate(WRONG):
        (tmp_path / "fairseq_syntax" / room / f"extra_{number}.py").write_text(f"{line}\n", encoding="utf-8")
    command = ["lint-imports", "--no-cache", "--config", REPOSITORY / "pyproject.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    for number, (_, _, contract) in enumerate(WRONG):
        assert re.search(rf"{contract}[^.]*?BROKEN", done.stdout, re.DOTALL), done.stdout
        assert re.search(rf"\bextra_{number}\b", done.stdout), (number, done.stdout)


def registered(room: str) -> set[str]:
    """Names of architectures, tasks and criterions that a system registers, in full size."""
    home = f"fairseq_syntax.systems.{room}."
    found = {name for name, cls in ARCH_MODEL_REGISTRY.items() if cls.__module__.startswith(home)}
    for registry in (TASK_REGISTRY, CRITERION_REGISTRY, MODEL_REGISTRY):
        found |= {name for name, cls in registry.items() if cls.__module__.startswith(home)}
    return found


@pytest.mark.parametrize("room", SYSTEMS)
def test_a_system_says_what_it_is(room):
    module = importlib.import_module(f"fairseq_syntax.systems.{room}")
    text = module.__doc__
    assert re.search(r"\((?=[^()]*\d{4}\))", text) or room == "transformer", "the paper"
    if room != "transformer":  # fairseq's own equations
        assert re.search(r"\n    .*[=σ].*\n", text), "the equation, in lines of its own"
        assert "\nNeeds: " in text and "\nArchitectures: " in text
    for name in registered(room):
        base = re.sub(r"_(tiny|iwslt_de_en|wmt_en_de|wmt_en_de_big)$", "", name)
        assert f"`{base}`" in text or f"`{name}`" in text, f"{name} is registered here, but not named"
    for name in re.findall(r"`(\w+_(?:transformer|nmt|att|rnng|parser|lstm)\w*)`", text):
        assert name in ARCH_MODEL_REGISTRY, f"{name} is named, but is no architecture"
    # users import from it
    assert module.__all__ and all(hasattr(module, name) for name in module.__all__)
    own = {cls.__name__ for cls in ARCH_MODEL_REGISTRY.values() if cls.__module__.startswith(f"{module.__name__}.")}
    assert own <= set(module.__all__)


def test_all_architectures_are_of_systems():
    ours = {cls.__module__ for cls in ARCH_MODEL_REGISTRY.values() if cls.__module__.startswith("fairseq_syntax")}
    assert len(ours) >= 11 and all(name.startswith("fairseq_syntax.systems.") for name in ours)


# where it is not the name of the room
PREFIXES = {
    "parser": "lgp",
    "sa_nmt": "sa",
    "tags": "tag",
    "latent_tree": "rnng",
    "distance_transformers": "dasa|sdatt",
}
# of fairseq, and of the recurrent base
BASE_OPTIONS = (FairseqDataclass, TranslationConfig, LabelSmoothedCrossEntropyCriterionConfig, RecurrentOptions)
GENERAL = {"recurrent_dropout", "variational_dropout", "momentum", "weight_decay", "lr_shrink", "share_all_embeddings"}


@pytest.mark.parametrize("room", sorted({*SYSTEMS} - {*BASES}))
def test_options_have_the_prefix_of_their_system(room):
    """Those that fairseq or a base does not have under the same name."""
    home = f"fairseq_syntax.systems.{room}."
    names = set()
    for info in pkgutil.walk_packages(importlib.import_module(home[:-1]).__path__, home):
        for cls in vars(importlib.import_module(info.name)).values():
            if isinstance(cls, type) and issubclass(cls, FairseqDataclass) and cls.__module__.startswith(home):
                own = {each.name for each in dataclasses.fields(cls) if each.metadata.get("help")}
                names |= own.difference(*({f.name for f in dataclasses.fields(b)} for b in BASE_OPTIONS))
    assert names - GENERAL or room not in PREFIXES
    wrong = [name for name in names - GENERAL if not re.match(rf"({PREFIXES.get(room, room)})_", name)]
    assert not wrong


def test_functions_can_be_read():
    long = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60:
                long.append(f"{path.name}:{node.lineno} {node.name}")
    assert not long


def test_tests_mirror_the_rooms():
    units = REPOSITORY / "tests" / "unit"
    assert not [path for path in units.rglob("test_*.py") if not (PACKAGE / path.relative_to(units)).parent.is_dir()]
