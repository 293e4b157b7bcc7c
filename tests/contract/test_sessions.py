"""The pages of the site from top to bottom: a slow test runs them; here their commands are parsed as programs would."""

import shlex
import subprocess
import sys

import pytest
import subword_nmt.apply_bpe
import subword_nmt.learn_joint_bpe_and_vocab
from contract import sessions
from contract.command_lines import FAIRSEQ, REPOSITORY, parse

# program, and its subcommand -> its parser
SUBWORD_NMT = {
    "learn-joint-bpe-and-vocab": subword_nmt.learn_joint_bpe_and_vocab.create_parser,
    "apply-bpe": subword_nmt.apply_bpe.create_parser,
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> list[list[str]]:
    """The command lines as bash makes them: it runs all else, and the maker of the corpus."""
    folder = sessions.checkout(tmp_path_factory.mktemp("site") / "checkout")
    programs = [*FAIRSEQ, "fairseq-syntax", "subword-nmt"]
    # what stands before them in a pipe must not find it closed
    read = "if [[ -p /dev/stdin ]]; then cat > /dev/null; fi"
    record = [f"{name}() {{ {read}; printf '%s\\0' {name} \"$@\" $'\\n' >> record; }}" for name in programs]
    record.append("cp() { :; }  # of files that they would make")
    commands = sessions.script("\n".join(record), python="").replace(
        "python examples/", f"{shlex.quote(sys.executable)} examples/"
    )
    done = subprocess.run(["bash", "-c", commands], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = (folder / "record").read_text(encoding="utf-8")
    return [line.split("\0") for line in text.split("\0\n\0")[:-1]]


def test_every_command_and_option_parses(recorded, monkeypatch):
    monkeypatch.chdir(REPOSITORY)  # for --user-dir fairseq_syntax
    assert len(recorded) >= 10
    for program, *arguments in recorded:
        if program == "subword-nmt":
            parser = SUBWORD_NMT[arguments.pop(0)]()
            for action in parser._actions:
                action.type = None  # files, which it would open
            parser.parse_args(arguments)
        else:
            parse([program, *arguments])


def test_every_python_block_says_where_its_names_are_from(tmp_path):
    """Each is run by itself, as a reader copies it; what does not compile is found, too."""
    code = [block for block in sessions.to_run() if block.language == "python"]
    assert code
    for block in code:
        (tmp_path / f"{block.page.replace('/', '_')}_{block.line}.py").write_text(block.code, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_no_block_is_left_out():
    """`console` shows what something looks like, sets up, or needs a cluster or the reader's models."""
    for page in sessions.PAGES:
        for block in sessions.blocks(page, (REPOSITORY / page).read_text(encoding="utf-8")):
            assert block.language in (*sessions.RUN, "console", "text"), f"{page}:{block.line}"
    systems = {f"docs/systems/{path.name}" for path in (REPOSITORY / "docs" / "systems").glob("*.md")}
    assert systems - set(sessions.PAGES) == {"docs/systems/index.md"}


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(tmp_path, real_data):
    assert sessions.run(tmp_path / "checkout", real_data) == 0
    made = {"tree.svg", "pictures", "graph.svg", "test.trees", "trees", "map.png"}
    assert {path.name for path in (tmp_path / "checkout").iterdir()} >= made
