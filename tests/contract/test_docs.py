"""The pages: their code runs, and the programs and options they name exist; their links: test_site.py."""

import contextlib
import io
import logging
import re
import shlex
import sys
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import pytest
from contract.command_lines import FAIRSEQ, REPOSITORY, console_scripts, make_options, program_parser
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from integration.commands import run_process

from fairseq_syntax.cli.program import build_parser

OURS = make_options.ours(MODEL_REGISTRY)

DOCS = sorted((REPOSITORY / "docs").rglob("*.md"))
FOLDERS = ("examples", "benchmarks", "preprocess")
PAGES = [
    *sorted(REPOSITORY.glob("*.md")),
    *DOCS,
    *(page for folder in FOLDERS for page in sorted((REPOSITORY / folder).rglob("*.md"))),
]
TUTORIAL = REPOSITORY / "docs" / "adding-a-model.md"

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"[`\n|] *(fairseq-syntax [a-z]+(?:-[a-z]+)*)([^`|\n]*)")
OPTION = re.compile(r"(?<![\w#-])--[a-z][\w-]*")

# options of programs that are neither ours nor fairseq's: ruff, pytest, pip, git, curl and make; sacrebleu, subword-nmt
# and sentencepiece; fairseq-hydra-train and sbatch
FOREIGN = set(
    """
    --fix --dist --run-slow --upgrade --no-build-isolation --no-deps --index-url --extra-index-url
    --recurse-submodules --fail --location --help --version
    --echo --input --output --metrics --tokenize --language-pair --format --paired-ar --paired-bs
    --write-vocabulary --vocabulary --split_by_whitespace
    --config-dir --config-name --multirun
    --nodes --ntasks-per-node --gpus-per-node --array --cpus-per-task
    """.split()
)


def name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, content) of every fenced block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


# --- code ---------------------------------------------------------------------------------------------------------


def run_blocks(page: Path, folder: Path) -> None:
    """Run the Python blocks of a page in `folder`, one after the other, in one namespace.

    A block that begins with `# path.py` is saved there instead. What a block prints must be in the `text` block that
    follows; where none follows, it must print nothing.
    """
    names: dict = {}
    for (language, content), (following, expected) in pairwise([*blocks(page), ("", "")]):
        if language != "python":
            continue
        file = re.match(r"# ([\w/.-]+\.py)\n", content)
        if file:
            (folder / file[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / file[1]).write_text(content.removeprefix(file[0]), encoding="utf-8")
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(content, str(page), "exec"), names)
        assert output.getvalue() == (expected if following == "text" else "")


@pytest.fixture
def quiet_logging():
    """Put back what programs do to the root logger."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level


@pytest.mark.parametrize("page", [p for p in DOCS if any(one == "python" for one, _ in blocks(p))], ids=name)
def test_python_on_the_page_runs(page, tmp_path, monkeypatch, quiet_logging):
    # a block that needs more than the package and an empty folder is marked ```py, and not run
    monkeypatch.chdir(tmp_path)
    run_blocks(page, tmp_path)


@pytest.mark.full
def test_the_model_of_the_tutorial_trains_and_translates(tmp_path):
    run_blocks(TUTORIAL, tmp_path)
    generate = [sys.executable, REPOSITORY / "examples" / "agreement" / "generate.py", "--output", "corpus"]
    run_process(*generate, *"--train 60 --valid 10 --test 10 --challenge 0".split(), cwd=tmp_path)
    splits = [f"--{split}pref=corpus/{split}" for split in ("train", "valid", "test")]
    preprocess = ["fairseq-syntax", "preprocess", "-s", "en", "-t", "de", "--joined-dictionary", *splits]
    run_process(*preprocess, "--destdir", "data-bin", cwd=tmp_path)
    (block,) = (content for language, content in blocks(TUTORIAL) if language == "bash")
    lines = block.replace("\\\n", "").splitlines()
    for line, found in zip(lines, (r"^2 passed", r"num_updates[ =|]*2\b", r"^H-9\t"), strict=True):
        printed = run_process(*shlex.split(line), cwd=tmp_path)
        assert re.search(found, printed, re.MULTILINE), printed[-2000:]


# --- programs and options -----------------------------------------------------------------------------------------


@cache
def known() -> set[str]:
    """Options of fairseq's programs and models, of our verbs, and of the Python scripts beside the package."""
    parsers = [make() for make in FAIRSEQ.values()] + [program_parser(name) for name in console_scripts()]
    parsers += [make_options.parser_of(MODEL_REGISTRY[name].add_args) for name in ("transformer", *OURS)]
    registries = [registry["dataclass_registry"] for registry in REGISTRIES.values()]
    for dataclass in (cls for registry in (TASK_DATACLASS_REGISTRY, *registries) for cls in registry.values()):
        parsers.append(make_options.parser_of(partial(gen_parser_from_dataclass, dataclass_instance=dataclass())))
    found = {option for parser in (*parsers, build_parser()) for option in parser._option_string_actions}
    scripts = [path for folder in (*FOLDERS, "docs") for path in (REPOSITORY / folder).rglob("*.py")]
    return found.union(*(re.findall(r"""["'](--[a-z][\w-]*)["']""", path.read_text("utf-8")) for path in scripts))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_and_options_exist(page):
    """That programs take them: test_sessions.py and test_examples.py, of the commands that pages and recipes run."""
    text = page.read_text(encoding="utf-8")
    own = re.findall(r"^    (\w+): \w+ = (?:field|option)\(", text, re.MULTILINE)  # of a model on the page itself
    allowed = known() | FOREIGN | {f"--{field.replace('_', '-')}" for field in own}
    assert sorted({*OPTION.findall(text)} - allowed) == []
    for verb, rest in COMMAND.findall(text.replace("\\\n", " ")):
        assert verb in console_scripts()
        assert {*OPTION.findall(rest)} <= program_parser(verb)._option_string_actions.keys(), f"{verb} {rest}"
