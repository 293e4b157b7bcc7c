"""The pages: their code runs, and the programs and options they name exist; their links: test_site.py."""

import contextlib
import io
import logging
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from contract import forks
from contract.command_lines import (
    FAIRSEQ,
    REPOSITORY,
    all_options,
    console_scripts,
    fairseq_options,
    named,
)

from fairseq_syntax.cli.program import build_parser

DOCS = sorted((REPOSITORY / "docs").rglob("*.md"))
FOLDERS = ("examples", "benchmarks", "preprocess")
PAGES = [
    *sorted(REPOSITORY.glob("*.md")),
    *DOCS,
    *(page for folder in FOLDERS for page in sorted((REPOSITORY / folder).rglob("*.md"))),
]
TUTORIAL = REPOSITORY / "docs" / "adding-a-model.md"

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"(?<!this )(?<![\w/.-])(fairseq-syntax[ -][a-z]+(?:-[a-z]+)*)(?![\w-]|\.(?:json|md))")
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
    generate = [REPOSITORY / "examples" / "agreement" / "generate.py", "--output", tmp_path / "corpus"]
    sizes = ["--train", "60", "--valid", "10", "--test", "10", "--challenge", "0"]
    subprocess.run([sys.executable, *generate, *sizes], check=True)
    splits = " ".join(f"--{split}pref corpus/{split}" for split in ("train", "valid", "test"))
    lines = [f"fairseq-syntax preprocess -s en -t de --joined-dictionary {splits} --destdir data-bin"]
    (block,) = (content for language, content in blocks(TUTORIAL) if language == "bash")
    lines += block.replace("\\\n", "").splitlines()
    preprocessed, tested, *ran = forks.run(
        *(forks.command(line, tmp_path) for line in lines), loaded=("fairseq_cli.train", "fairseq_syntax", "pytest")
    )
    assert preprocessed[0] == 0 and "2 passed" in tested[1], tested
    for (status, printed, said), found in zip(ran, (r"num_updates[ =|]*2\b", r"^H-9\t"), strict=True):
        assert status == 0 and re.search(found, printed + said, re.MULTILINE), said[-2000:]


# --- programs and options -----------------------------------------------------------------------------------------


def code(page: Path) -> str:
    """Blocks of commands, and `code`."""
    text = page.read_text(encoding="utf-8")
    fenced = [content for language, content in BLOCK.findall(text) if language in ("", "bash", "sh", "console", "text")]
    return "\n".join([*fenced, *re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))])


def commands(page: Path) -> list[list[str]]:
    """Command lines of ours and fairseq's in blocks and in `code`, as words; the rest of a pipe is cut off."""
    found = []
    for line in code(page).replace("\\\n", " ").splitlines():
        words = re.sub(r"\s#\s.*", "", line).split()
        start = next((i for i, word in enumerate(words) if word.startswith("fairseq-")), None)
        if start is not None:
            end = next((i for i in range(start, len(words)) if words[i] in ("|", "&&", ";", "||", ">", "&")), None)
            found.append(named(words[start:end]))
    return found


def unknown(page: Path) -> list[str]:
    """Programs and options on a page that do not exist."""
    text = page.read_text(encoding="utf-8")
    problems = sorted({program for program in PROGRAM.findall(code(page)) if program not in console_scripts()})
    for program, *words in commands(page):
        given = {option for word in words for option in OPTION.findall(word.split("=")[0])}
        if program in console_scripts():
            problems += sorted(f"{program} {option}" for option in given - all_options(program) - {"--help"})
        elif program in FAIRSEQ:
            problems += sorted(f"{program} {option}" for option in given - fairseq_options() - own_options(text))
    known = own_options(text) | set(fairseq_options()).union(
        *(all_options(program) for program in console_scripts()), FOREIGN
    )
    known |= options_of_scripts()
    known |= set(build_parser()._option_string_actions)
    problems += sorted(set(OPTION.findall(text)) - known)
    return problems


def own_options(text: str) -> set[str]:
    """Options that a model on the page itself defines."""
    return {
        f"--{field.replace('_', '-')}"
        for field in re.findall(r"^    (\w+): \w+ = (?:field|option)\(", text, re.MULTILINE)
    }


def options_of_scripts() -> set[str]:
    """Options that the Python scripts beside the package define."""
    found = set()
    for folder in (*FOLDERS, "docs"):
        for script in (REPOSITORY / folder).rglob("*.py"):
            found |= set(re.findall(r"""["'](--[a-z][\w-]*)["']""", script.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_and_options_exist(page):
    assert unknown(page) == []
