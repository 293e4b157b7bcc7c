"""The recurrent systems through fairseq's commands: schedule and resuming, ensembles, raw text, no trees anywhere."""

import math
import re
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from integration import commands
from integration.commands import DECODING, PACKAGE, assert_same_hypotheses, run_process

from fairseq_syntax.systems.recurrent.model import RecurrentModel
from fairseq_syntax.systems.sa_nmt.model import SyntaxAttentionModel

SHARED = "sa_nmt_shared_tiny"
VALID = list(range(61))


@pytest.fixture(scope="module")
def made(trained):
    """Function: architecture -> checkpoint."""
    return lambda arch: trained(arch) / "checkpoint_last.pt"


# --- the published schedule -------------------------------------------------------------------------------------------

# halved whenever the validation loss is no better than its best. Here better is larger, so that falling losses halve it
SCHEDULE = [
    *("--lr", "1e-3", "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5", "--lr-patience", "0"),
    *("--lr-threshold", "0", "--stop-min-lr", "3.2e-5", "--maximize-best-checkpoint-metric"),
    *("--dropout", "0.3", "--max-tokens", "4000", "--max-epoch", "20", "--save-interval-updates", "100"),
]


def train(data_bin, directory, arch, *options):
    """(records, log)."""
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    given = [*arguments, *SCHEDULE, "--save-dir", directory, *options]
    log = commands.run("fairseq-train", data_bin, "--arch", arch, *given)
    return commands.records(log), log


@pytest.fixture(scope="module")
def uninterrupted(data_bin, tmp_path_factory):
    """(records, log, parameters) of a run by the published schedule."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    return *train(data_bin, directory, SHARED), commands.parameters(directory / "checkpoint_last.pt")


def rates(records):
    """Learning rate at the end of every epoch."""
    return {record["epoch"]: float(record["train_lr"]) for record in records if "train_lr" in record}


def test_training_ends_with_the_fifth_halving(uninterrupted):
    records, log, _ = uninterrupted
    # the first validation is the best so far; of the five that follow, each halves
    expected = {1: 1e-3, 2: 1e-3, 3: 5e-4, 4: 2.5e-4, 5: 1.25e-4, 6: 6.25e-5}
    assert rates(records) == pytest.approx(expected)
    assert "stopping training because current learning rate (3.125e-05)" in log


@pytest.mark.parametrize("stops", [["--max-epoch", 3], ["--max-update", 18]], ids=["between epochs", "in an epoch"])
def test_a_resumed_run_is_the_uninterrupted_one(data_bin, tmp_path, uninterrupted, stops):
    """Every loss and halving, and in the end every parameter, bit by bit."""
    expected, _, parameters = uninterrupted
    first, _ = train(data_bin, tmp_path, SHARED, *stops)
    second, log = train(data_bin, tmp_path, SHARED)
    assert "stopping training because current learning rate (3.125e-05)" in log
    start = int(next(record for record in second if "loss" in record)["num_updates"])
    assert start == 1 + int([record for record in first if "loss" in record][-1]["num_updates"]) > 10

    def updates(records, since):
        return [record for record in records if "loss" in record and int(record["num_updates"]) >= since]

    assert updates(second, start) == updates(expected, start)
    assert [*updates(first, 1), *updates(second, 1)] == updates(expected, 1)
    valid = [record for record in expected if "valid_loss" in record]
    found = [record for record in second if "valid_loss" in record]
    assert [record["valid_loss"] for record in found] == [record["valid_loss"] for record in valid[-len(found) :]]
    assert rates(second) == {epoch: rate for epoch, rate in rates(expected).items() if epoch in rates(second)}
    resumed = commands.parameters(tmp_path / "checkpoint_last.pt")
    assert resumed.keys() == parameters.keys()
    assert all(torch.equal(resumed[name], value) for name, value in parameters.items())


# --- decoding ---------------------------------------------------------------------------------------------------------


def test_batches_and_padding_sides_translate_alike(data_bin, made):
    commands.assert_batches_translate_alike(data_bin, made(SHARED), ties=1)


def test_alignment_is_printed(data_bin, made):
    output = commands.run(
        *("fairseq-generate", data_bin, "--path", made(SHARED), *DECODING),
        *("--gen-subset", "valid", "--print-alignment", "hard"),
    )
    # a score a token, EOS included; some tokens are not shown in the text
    sources, scores, alignments = (dict(re.findall(rf"^{kind}-(\d+)\t(.*)$", output, re.MULTILINE)) for kind in "SPA")
    assert alignments.keys() == sources.keys() and len(sources) == 61
    for number, line in alignments.items():
        pairs = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        length, made = len(sources[number].split()), len(scores[number].split())
        # EOS is aligned, too
        assert all(source <= length and target < made for source, target in pairs)
    assert any(line for line in alignments.values())


def model_inputs(model) -> tuple:
    """What of the trees a model reads; fairseq's own read nothing."""
    return getattr(model, "syntax_inputs", ())


@pytest.mark.parametrize(
    "architectures",
    [
        pytest.param([SHARED, "nmt_lstm_tiny", "fa_nmt_tiny"], id="recurrent"),
        pytest.param([SHARED, "pascal_transformer_tiny"], id="with a Transformer that needs trees"),
        pytest.param([SHARED, "transformer_tiny"], id="with a Transformer of fairseq"),
        pytest.param(["sdatt_tiny", "global_plus_chen17_tiny", "dasa_transformer_tiny"], id="all kinds of trees"),
        pytest.param(["chen17_tiny", "global_att_tiny", "global_plus_sdatt_tiny"], id="conditional GRUs"),
        pytest.param(
            ["flexible_att_tiny", "local_att_tiny", "global_plus_flexible_tiny", "global_plus_local_tiny"],
            id="conditional GRUs without trees, and an LSTM",
        ),
        pytest.param(["sdatt_transformer_tiny", "dasa_transformer_tiny"], id="Transformers"),
    ],
)
def test_an_ensemble_averages_probabilities(data_bin, made, architectures):
    """Beam search of the ensemble against its members, each given the words that were found."""
    paths = [str(made(a)) for a in architectures]
    overrides = {"data": str(data_bin), "user_dir": str(PACKAGE)}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(paths, arg_overrides=overrides)
    assert len(models) == len(architectures)
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    batch = dataset.collater([dataset[i] for i in range(0, 61, 6)])
    assert set(batch["net_input"].get("src_syntax", ())) == {name for model in models for name in model_inputs(model)}
    for model in models:
        model.eval()
    settings = GenerationConfig()
    settings.beam, settings.max_len_a, settings.max_len_b = 3, 0, 12
    found = task.inference_step(task.build_generator(models, settings), models, batch)
    differences = 0.0
    for row, (number, beam) in enumerate(zip(batch["id"].tolist(), found, strict=True)):
        alone = dataset.collater([dataset[number]])["net_input"]
        tokens = beam[0]["tokens"]
        alone["prev_output_tokens"] = torch.cat([tokens.new_tensor([2]), tokens[:-1]])[None]
        with torch.no_grad():
            chances = [m.get_normalized_probs(m(**alone), log_probs=False)[0].double() for m in models]
        expected = (sum(chances) / len(chances)).gather(1, tokens[:, None]).squeeze(1).log()
        torch.testing.assert_close(beam[0]["positional_scores"].double(), expected, atol=1e-4, rtol=0, msg=str(row))
        differences += float((chances[0].log() - chances[1].log()).abs().max())
    assert differences > 0.1
    # and through the command
    output = commands.generate(data_bin, ":".join(paths), "--gen-subset", "valid", "--max-len-b", 12)
    assert sorted(output) == VALID
    for number, beam in zip(batch["id"].tolist(), found, strict=True):
        assert output[number][0] == pytest.approx(float(beam[0]["score"]) / math.log(2), abs=1e-3)


# --- raw text and data without trees ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(corpus, data_bin, tmp_path_factory) -> Path:
    """Data that plain fairseq-preprocess made; test is an awkward text, `text.en` beside it."""
    folder = tmp_path_factory.mktemp("plain")
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()[:15]
    lines += ["", "zyxw@@ qqqq saw a dog", lines[0], ".", lines[3]]
    (folder / "text.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "text.de").write_text("ein vogel\n" * len(lines), encoding="utf-8")
    prefixes = {"train": corpus / "train", "valid": corpus / "valid", "test": folder / "text"}
    splits = [part for split, prefix in prefixes.items() for part in (f"--{split}pref", prefix)]
    dictionaries = ["--srcdict", data_bin / "dict.en.txt", "--tgtdict", data_bin / "dict.de.txt"]
    languages = ["--source-lang", "en", "--target-lang", "de", "--destdir", folder / "data"]
    run_process("fairseq-preprocess", *languages, *splits, *dictionaries, cwd=folder)
    return folder


@pytest.mark.parametrize(
    ("arch", "cls"),
    [
        (SHARED, SyntaxAttentionModel),
        ("sa_nmt_1set_tiny", SyntaxAttentionModel),
        ("nmt_lstm_tiny", RecurrentModel),
    ],
)
def test_generate_interactive_and_hub_agree_without_a_parser(plain, made, arch, cls):
    """No trees in the data, none of the options that say where trees come from."""
    checkpoint, data, text = made(arch), plain / "data", plain / "text.en"
    lines = text.read_text(encoding="utf-8").splitlines()
    expected = commands.generate(data, checkpoint, "--batch-size", 7)
    assert sorted(expected) == list(range(len(lines))) and expected[0] == expected[17]
    for batches in ([], ["--buffer-size", 100, "--batch-size", 6]):
        assert_same_hypotheses(commands.interactive(data, checkpoint, text, *batches), expected)
    hub = cls.from_pretrained(str(checkpoint.parent), checkpoint.name, str(data)).eval()
    search = {"beam": 3, "max_len_a": 0, "max_len_b": 25}
    assert hub.translate(lines, **search) == [expected[i][1] for i in range(len(lines))]
    assert hub.translate(lines[1], **search) == expected[1][1]
    found = [beam[0] for beam in hub.generate([hub.encode(line) for line in lines], **search)]
    scores = {i: (float(best["score"]) / math.log(2), hub.decode(best["tokens"])) for i, best in enumerate(found)}
    assert_same_hypotheses(scores, expected)


def test_data_without_trees_trains_the_same_model(plain, data_bin, tmp_path):
    """Trees in the data are not read."""
    for data, name in ((plain / "data", "plain"), (data_bin, "trees")):
        commands.train(data, tmp_path / name, "sa_nmt_tiny", "--max-update", 2)
    with_trees, without = (commands.parameters(tmp_path / name / "checkpoint_last.pt") for name in ("trees", "plain"))
    assert with_trees.keys() == without.keys()
    assert all(torch.equal(with_trees[name], value) for name, value in without.items())


# --- options ----------------------------------------------------------------------------------------------------------


def test_pretrained_embeddings(data_bin, tmp_path):
    """Kept as they are by an update with learning rate 0."""
    words = [line.split()[0] for line in (data_bin / "dict.en.txt").read_text(encoding="utf-8").splitlines()]
    table = torch.randn(20, 64, generator=torch.Generator().manual_seed(0))
    rows = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in zip(words, table.tolist(), strict=False)]
    file = tmp_path / "vectors"
    file.write_text(f"20 64\n{''.join(rows)}", encoding="utf-8")
    options = ["--share-all-embeddings", "--encoder-embed-path", file, "--lr", 0, "--max-update", 1]
    commands.train(data_bin, tmp_path / "model", SHARED, *options)
    checkpoint = tmp_path / "model" / "checkpoint_last.pt"
    found = commands.parameters(checkpoint)
    for side in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        torch.testing.assert_close(found[f"{side}.weight"][4:24], table)  # the dictionary has four symbols before
    short = ["--gen-subset", "valid", "--beam", 1, "--max-len-b", 3]
    assert sorted(commands.generate(data_bin, checkpoint, *short)) == VALID


def test_half_precision_of_the_gate_is_collected(data_bin, made):
    """What the tools of analysis read, of a model as it is used on a GPU."""
    overrides = {"data": str(data_bin), "user_dir": str(PACKAGE)}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(made(SHARED))], arg_overrides=overrides)
    task.load_dataset("valid")
    batch = task.dataset("valid").collater([task.dataset("valid")[i] for i in range(9)])
    with torch.no_grad():
        full = models[0].eval()(**batch["net_input"])[1]
        half = models[0].half()(**batch["net_input"])[1]
    real = batch["target"].ne(task.target_dictionary.pad())
    assert half["gate_norm"].shape == real.shape
    torch.testing.assert_close(half["gate_norm"][real], full["gate_norm"][real], atol=0.1, rtol=0)
