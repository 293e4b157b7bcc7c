"""Missing and broken parses through the commands: refused before training, counted, and the same wherever they come."""

import pytest
from integration import commands
from integration.commands import DECODING, OPTIONS, assert_same_hypotheses, binarize

from fairseq_syntax.systems.sdatt.model import SyntaxDirectedModel
from fairseq_syntax.trees.conllu import TreeFormatError

ARCH = "sdatt_tiny"
BRIEF = [*OPTIONS[ARCH], "--max-update", "1"]
LINES = 14
MISSING, BROKEN = 3, 9
SEARCH = {"beam": 3, "max_len_a": 0, "max_len_b": 25}


def no_heads(row):
    cells = row.split("\t")
    return "\t".join([*cells[:6], "_", *cells[7:]])


@pytest.fixture(scope="module")
def text(corpus, tmp_path_factory):
    """Prefix of some sentences, of which one has no parse and one a cycle; `lacking.conllu` has neither's tree."""
    folder = tmp_path_factory.mktemp("missing")
    for language in ("en", "de"):
        lines = (corpus / f"test.{language}").read_text(encoding="utf-8").splitlines(keepends=True)[:LINES]
        assert language == "de" or (lines.count(lines[MISSING]), lines.count(lines[BROKEN])) == (1, 1)
        (folder / f"text.{language}").write_text("".join(lines), encoding="utf-8")
    blocks = (corpus / "test.en.conllu").read_text(encoding="utf-8").split("\n\n")[:LINES]
    rest = [block for number, block in enumerate(blocks) if number not in (MISSING, BROKEN)]
    (folder / "lacking.conllu").write_text("".join(f"{block}\n\n" for block in rest), encoding="utf-8")
    rows = blocks[MISSING].split("\n")
    blocks[MISSING] = "\n".join(row if row[0] == "#" else no_heads(row) for row in rows)
    rows = blocks[BROKEN].split("\n")
    words = [i for i, row in enumerate(rows) if row[0] != "#"]
    for here, there in ((0, 1), (1, 0)):
        cells = rows[words[here]].split("\t")
        rows[words[here]] = "\t".join([*cells[:6], str(there + 1), *cells[7:]])
    blocks[BROKEN] = "\n".join(rows)
    (folder / "text.en.conllu").write_text("".join(f"{block}\n\n" for block in blocks), encoding="utf-8")
    return folder / "text"


@pytest.fixture(scope="module")
def data(text, data_bin):
    """The text as `train` and as `test`, in the dictionaries of `data_bin`."""
    options = ["--srcdict", data_bin / "dict.en.txt", "--tgtdict", data_bin / "dict.de.txt", "--syntax-dicts", data_bin]
    splits = {"train": text, "test": text}
    return binarize(splits, text.parent / "data", *options, "--allow-unparsed", "--allow-broken", 10)


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    directory = tmp_path_factory.mktemp(ARCH)
    log = commands.train(data_bin, directory, ARCH, *BRIEF)
    assert "split 'train': 0 of 403 sentences have no parse (0.00%)" in log
    return commands.scatter(directory / "checkpoint_last.pt")


@pytest.fixture(scope="module")
def expected(data, checkpoint):
    """Translations of the binarized data."""
    return commands.generate(data, checkpoint)


def test_raw_text_that_cannot_be_parsed_is_translated_alike(data_bin, text, checkpoint, expected):
    options = [*DECODING, "--parser", "conllu", "--parser-model", text.parent / "lacking.conllu"]
    arguments = [data_bin, "--path", checkpoint, "--input", f"{text}.en", *options]
    with pytest.raises(TreeFormatError, match="no tree for the sentence"):
        commands.run("fairseq-interactive", *arguments)
    arguments += ["--parser-unparsed", "accept"]
    output = commands.run("fairseq-interactive", *arguments, "--buffer-size", 100, "--batch-size", 5)
    assert_same_hypotheses(commands.hypotheses(output), expected)
    assert output.count("translated without a parse: ") == 2
    assert f"2 of {LINES} sentences had no parse" in output


def test_the_hub_translates_what_cannot_be_parsed(data_bin, text, checkpoint, expected):
    options = {"parser": "conllu", "parser_model": str(text.parent / "lacking.conllu"), "parser_unparsed": "accept"}
    hub = SyntaxDirectedModel.from_pretrained(str(checkpoint.parent), checkpoint.name, str(data_bin), **options).eval()
    lines = text.with_suffix(".en").read_text(encoding="utf-8").splitlines()
    assert hub.translate(lines, **SEARCH) == [expected[i][1] for i in range(LINES)]
    assert (hub.task.live.unparsed, hub.task.live.sentences) == (2, LINES)
