"""README from top to bottom: in a slow test it is run; here all of its commands are parsed as their programs would."""

import shlex
import subprocess
import sys
import time

import pytest
import subword_nmt.apply_bpe
import subword_nmt.learn_joint_bpe_and_vocab
from contract import readme
from contract.command_lines import FAIRSEQ, REPOSITORY, parse

# program, and its subcommand -> its parser
SUBWORD_NMT = {
    "learn-joint-bpe-and-vocab": subword_nmt.learn_joint_bpe_and_vocab.create_parser,
    "apply-bpe": subword_nmt.apply_bpe.create_parser,
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> list[list[str]]:
    """The command lines of README as bash makes them: it runs all else, and the maker of the corpus."""
    folder = readme.checkout(tmp_path_factory.mktemp("readme") / "checkout")
    programs = [*FAIRSEQ, "fairseq-syntax", "subword-nmt"]
    # what stands before them in a pipe must not find it closed
    read = "if [[ -p /dev/stdin ]]; then cat > /dev/null; fi"
    record = [f"{name}() {{ {read}; printf '%s\\0' {name} \"$@\" $'\\n' >> record; }}" for name in programs]
    commands = readme.script("\n".join(record), python="").replace(
        "python examples/", f"{shlex.quote(sys.executable)} examples/"
    )
    done = subprocess.run(["bash", "-c", commands], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    text = (folder / "record").read_text(encoding="utf-8")
    return [line.split("\0") for line in text.split("\0\n\0")[:-1]]


def test_every_command_and_option_parses(recorded, monkeypatch):
    monkeypatch.chdir(REPOSITORY)  # for --user-dir fairseq_syntax
    assert len(recorded) >= 40
    for program, *arguments in recorded:
        if program == "subword-nmt":
            parser = SUBWORD_NMT[arguments.pop(0)]()
            for action in parser._actions:
                action.type = None  # files, which it would open
            parser.parse_args(arguments)
        else:
            parse([program, *arguments])


def test_every_python_block_compiles():
    code = [block for block in readme.to_run() if block.language == "python"]
    assert len(code) >= 2
    for block in code:
        compile(block.code, f"README.md:{block.line}", "exec")


def test_no_block_is_left_out():
    """Beside those that show what a command looks like, or set up."""
    everything = readme.blocks((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    left_out = [block for block in everything if block not in readme.to_run()]
    assert [block.heading for block in left_out] == list(readme.LEFT_OUT)
    assert "…" in left_out[0].code and "make demo" in left_out[1].code and "pip install" in left_out[2].code


def test_blocks_of_a_page():
    page = "# A\n\ntext\n\n    one\n    # two\n\n    three\ntext\n\n## B\n```python\n# four\n```\n    five\n"
    assert readme.blocks(page) == [
        (5, "A", "sh", "one\n# two\n\nthree\n"),
        (12, "B", "python", "# four\n"),
        (15, "B", "sh", "five\n"),
    ]


def given(command: list[str]) -> dict[str, str]:
    """Option -> what stands behind it."""
    return {part: " ".join(command[i + 1 : i + 2]) for i, part in enumerate(command) if part.startswith("--")}


def test_every_system_has_a_folder_of_its_own(recorded):
    folders = [given(command)["--save-dir"] for command in recorded if command[0] == "fairseq-train"]
    assert len(folders) >= 7 and len(set(folders)) == len(folders)
    assert all(folder.startswith("checkpoints/") for folder in folders)


def test_transformers_are_trained_alike(recorded):
    """So that what README compares differs in syntax alone."""
    trained = [given(command) for command in recorded if command[0] == "fairseq-train"]
    settings = [
        {option: value for option, value in options.items() if option not in ("--arch", "--save-dir")}
        for options in trained
        if "transformer" in options["--arch"]
    ]
    assert len(settings) >= 2 and all(other == settings[0] for other in settings)


@pytest.mark.slow
def test_readme_runs_from_top_to_bottom(tmp_path, real_data):
    begun = time.monotonic()
    assert readme.run(tmp_path / "checkout", real_data) == 0
    # on two cores that have nothing else to do
    print(f"{time.monotonic() - begun:.0f} s")
    left = {path.name for path in (tmp_path / "checkout").iterdir()}
    assert left >= {"tree.svg", "gates.html", "heads.png", "graph.svg", "test.trees", "trees", "lengths.png", "map.png"}
