"""fairseq-syntax length-prior and --length-prior: the table of a directory, and what fairseq does with it."""

import json
import math
import random
import re
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import programs
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from integration import commands
from integration.commands import DECODING, PACKAGE, hypotheses

from fairseq_syntax.data.length_table import length_table_path, read_length_table, write_length_table
from fairseq_syntax.decoding.length_prior import LengthPriorBeamSearch, length_table, log_probabilities
from fairseq_syntax.tools import length_prior

refused = partial(programs.refused, length_prior)

LANGUAGES = ["-s", "en", "-t", "de"]


@pytest.fixture
def data(latent, tmp_path):
    """The corpus, in a directory of its own."""
    return shutil.copytree(latent.data, tmp_path / "bin")


run = programs.runner(length_prior)


def lengths_of(latent, split):
    """Lengths of the text itself."""
    return [
        np.array([len(line.split()) for line in latent.text.with_name(f"{split}.{language}").read_text().splitlines()])
        for language in ("en", "de")
    ]


# --- the program ------------------------------------------------------------------------------------------------------


def test_a_table_of_another_name(latent, data, run, capsys):
    """Beside the one that `auto` reads, which it leaves alone."""
    run(data, *LANGUAGES)
    path = data / "new" / "raw.npz"
    smoothed = (data / "length_prior.en-de.npz").read_bytes()
    raw = ["--smoothing", "raw", "--unseen", "author", "--output", path]
    assert f"wrote {path}" in run(data, *LANGUAGES, *raw)
    expected = length_table(*lengths_of(latent, "train"), "raw", "author")
    np.testing.assert_allclose(read_length_table(path, "en", "de"), expected, rtol=1e-6)
    assert (data / "length_prior.en-de.npz").read_bytes() == smoothed
    assert f"{path}: exists already" in refused(capsys, data, *LANGUAGES, *raw)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], []),
        (["--smoothing", "raw"], ["raw"]),
        (["--smoothing", "raw", "--unseen", "author", "--bin", "2"], ["raw", "author", 2]),
        (["--bin", "3"], ["kernel", "floor", 3]),
    ],
)
def test_the_table_is_that_of_the_text(latent, data, run, options, arguments):
    output = run(data, *LANGUAGES, *options)
    path = data / "length_prior.en-de.npz"
    source, target = lengths_of(latent, "train")
    table = read_length_table(path, "en", "de")
    assert table.dtype == np.float32
    np.testing.assert_allclose(table, length_table(source, target, *arguments), rtol=1e-6)
    with np.load(path, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
    assert (meta["pairs"], meta["source"], meta["target"]) == (len(source), "en", "de")
    assert f"training pairs: {len(source)}\n" in output
    assert f"longest source: {source.max()} tokens\nlongest target: {target.max()} tokens\n" in output
    valid = lengths_of(latent, "valid")
    known = [side[[length in source for length in valid[0]]] for side in valid]
    for kind in ("raw", "kernel"):
        bins = arguments[2] if len(arguments) > 2 else 1
        nats = -log_probabilities(length_table(source, target, kind, "floor", bins), *known).mean()
        assert f"valid, {kind}: {nats:.4f} nats per sentence\n" in output
    seen = set(zip(source.tolist(), target.tolist(), strict=True))
    unseen = sum(pair not in seen for pair in zip(*(side.tolist() for side in valid), strict=True))
    assert f"valid, unseen in training: {unseen} of {len(valid[0])} pairs of lengths" in output
    assert f"wrote {path}" in output and not list(data.glob("*.tmp"))


def test_all_training_data_count(latent, data, run, tmp_path):
    """train, train1 and those of a second directory; a directory without a valid split."""
    for path in data.glob("valid.*"):
        path.unlink()
    for path in latent.data.glob("test.en-de.*"):
        shutil.copy(path, data / path.name.replace("test", "train1"))
    assert "no valid split" in run(f"{data}:{latent.data}", *LANGUAGES)
    train, test = lengths_of(latent, "train"), lengths_of(latent, "test")
    both = [np.concatenate([a, b, a]) for a, b in zip(train, test, strict=True)]
    table = read_length_table(data / "length_prior.en-de.npz", "en", "de")
    np.testing.assert_allclose(table, length_table(*both), rtol=1e-6)
    assert not (latent.data / "length_prior.en-de.npz").exists()


def test_plain_text_counts_as_binarized(latent, data, run):
    run(data, *LANGUAGES)
    expected = read_length_table(data / "length_prior.en-de.npz", "en", "de")
    for language in ("en", "de"):
        shutil.copy(latent.text.with_name(f"train.{language}"), data / f"train.en-de.{language}")
        for kind in ("bin", "idx"):
            (data / f"train.en-de.{language}.{kind}").unlink()
    run(data, *LANGUAGES, "--overwrite")
    assert (read_length_table(data / "length_prior.en-de.npz", "en", "de") == expected).all()


def test_the_other_direction(latent, data, run):
    run(data, *LANGUAGES)
    assert run.said == ""
    run(data, "-s", "de", "-t", "en")
    assert "give -s and -t" in run.said
    expected = length_table(*reversed(lengths_of(latent, "train")))
    np.testing.assert_allclose(read_length_table(data / "length_prior.de-en.npz", "de", "en"), expected, rtol=1e-6)


def test_bad_data(data, run, capsys):
    run(data, *LANGUAGES)
    before = (data / "length_prior.en-de.npz").read_bytes()
    assert "give --overwrite" in refused(capsys, data, *LANGUAGES)
    assert (data / "length_prior.en-de.npz").read_bytes() == before
    assert "no split train of en and fr" in refused(capsys, data, "-s", "en", "-t", "fr")
    for kind in ("bin", "idx"):
        (data / f"train.en-de.de.{kind}").unlink()
    assert "train.en-de.de: no such data" in refused(capsys, data, *LANGUAGES, "--overwrite")
    for side in ("bin", "idx"):
        shutil.copy(data / f"valid.en-de.de.{side}", data / f"train.en-de.de.{side}")
    assert "80 sentences, but 10 in" in refused(capsys, data, *LANGUAGES, "--overwrite")
    (data / "dict.de.txt").unlink()
    assert "dict.de.txt: not found" in refused(capsys, data, *LANGUAGES, "--overwrite")


# --- the task ---------------------------------------------------------------------------------------------------------


def write_sloped(data, slope):
    """No probabilities, but clear: EOS is the last resort (positive slope), or comes as soon as it may (negative)."""
    table = np.tile(slope * np.arange(30.0), (2, 1)) - math.copysign(3000, slope)
    write_length_table(data / "length_prior.en-de.npz", table, {"source": "en", "target": "de"})


def load(paths, data, **overrides):
    overrides = {"data": str(data), "user_dir": str(PACKAGE), **overrides}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(p) for p in paths], arg_overrides=overrides)
    task.load_dataset("test")
    return [model.eval() for model in models], task, task.dataset("test")


def settings(**options):
    return SimpleNamespace(**{**vars(GenerationConfig()), "beam": 3, "max_len_a": 0, "max_len_b": 12, **options})


def model_score(models, task, example, dataset, tokens):
    """Sum of the ensemble's log p of a translation, by itself."""
    batch = dataset.collater([example])["net_input"]
    previous = torch.cat([torch.tensor([task.target_dictionary.eos()]), tokens[:-1]])[None]
    with torch.no_grad():
        outputs = [
            model.get_normalized_probs(model(**{**batch, "prev_output_tokens": previous}), log_probs=False)
            for model in models
        ]
    return float(torch.stack(outputs).mean(dim=0)[0].log().gather(1, tokens[:, None]).sum())


@pytest.mark.parametrize(
    ("architectures", "left_pad"),
    [
        *((["nmt_lstm_tiny"], False), (["pascal_transformer_tiny"], True)),
        *((["sdatt_tiny"], False), (["nmt_lstm_tiny", "sa_nmt_shared_tiny"], True)),
    ],
)
def test_scores_of_any_system(latent, data, trained, run, architectures, left_pad):
    run(data, *LANGUAGES)
    table = read_length_table(data / "length_prior.en-de.npz", "en", "de")
    paths = [trained(arch) for arch in architectures]
    models, task, dataset = load(paths, data, left_pad_source=left_pad, length_prior="auto")
    generator = task.build_generator(models, settings())
    examples = [dataset[number] for number in range(6)]
    batch = dataset.collater(examples)
    compared = 0
    for number, beam in zip(batch["id"].tolist(), task.inference_step(generator, models, batch), strict=True):
        for hypothesis in beam:
            tokens = hypothesis["tokens"]
            words = len(examples[number]["source"]) - 1
            (prior,) = log_probabilities(table, np.array([words]), np.array([len(tokens) - 1]))
            expected = model_score(models, task, examples[number], dataset, tokens) + prior
            assert float(hypothesis["score"]) * len(tokens) == pytest.approx(expected, abs=1e-3)
            compared += 1
    assert compared == 18


def test_generate_and_interactive_use_it(latent, data, trained):
    def translate(*options):
        given = [data, "--path", trained("nmt_lstm_tiny"), *DECODING, "--max-len-b", "12", *options]
        return commands.run("fairseq-generate", *given)

    def lengths(output):
        # with EOS; of scores, as a model that has learned little writes symbols that no text shows
        return [len(scores.split()) for scores in re.findall(r"^P-\d+\t(.*)$", output, re.MULTILINE)]

    plain = hypotheses(translate())
    write_sloped(data, 90.0)
    assert hypotheses(translate("--length-prior", "off")) == plain
    long = translate("--length-prior", "auto")
    assert set(lengths(long)) == {13}
    table = (data / "length_prior.en-de.npz").rename(data.with_name("elsewhere.npz"))
    assert hypotheses(translate("--length-prior", table)) == hypotheses(long)
    write_sloped(data, -90.0)
    short = translate("--length-prior", "auto")
    assert set(lengths(short)) == {2}
    # only among what the search finds anyway
    reranked = translate("--length-prior", "auto", "--length-prior-rerank")
    assert sum(lengths(short)) <= sum(lengths(reranked)) <= sum(lengths(long))
    assert hypotheses(reranked) not in (hypotheses(short), hypotheses(long))

    source = f"{latent.text}.en"
    given = ["--path", trained("nmt_lstm_tiny"), "--input", source, *DECODING, "--max-len-b", "12"]
    output = commands.run("fairseq-interactive", data, *given, "--length-prior", "auto", "-s", "en", "-t", "de")
    assert {n: t for n, (_, t) in hypotheses(output).items()} == {n: t for n, (_, t) in hypotheses(short).items()}


def test_validation_in_training_does_without(latent, data, tmp_path):
    """There is no table: the generator of --eval-bleu never asks for it; nor does it mind other searches."""
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    log = commands.run(
        *("fairseq-train", data, "--arch", "nmt_lstm_tiny", *arguments, "--max-update", "2", "--save-dir", tmp_path),
        *("--length-prior", "auto", "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "lenpen": 0.5, "max_len_b": 5}'),
    )
    assert re.search(r"valid_bleu", log)


def test_what_is_built(latent, data, trained):
    write_sloped(data, 1.0)
    models, task, _ = load([trained("nmt_lstm_tiny")], data, length_prior="auto", length_prior_rerank=True)
    search = task.build_generator(models, settings()).search
    assert isinstance(search, LengthPriorBeamSearch) and search.rerank
    models, task, _ = load([trained("nmt_lstm_tiny")], data)
    assert not isinstance(task.build_generator(models, settings()).search, LengthPriorBeamSearch)


def test_both_options_together(latent, data, trained):
    """Unknown words are aligned in hypotheses that the prior has chosen."""
    write_sloped(data, 90.0)
    models, task, dataset = load([trained("nmt_lstm_tiny")], data, length_prior="auto")
    generator = task.build_generator(models, settings(replace_unk=""))
    for beam in task.inference_step(generator, models, dataset.collater([dataset[0], dataset[1]])):
        # "<s>", which a model that has learned little may write, is in no text
        shown = beam[0]["tokens"].ne(task.target_dictionary.bos())
        assert len(shown) == 13 and len(beam[0]["alignment"]) == shown.sum()


def test_bad_tables(data, trained):
    def built(value="auto", **meta):
        models, task, _ = load([trained("nmt_lstm_tiny")], data, length_prior=str(value))
        return task.build_generator(models, settings())

    path = data / "length_prior.en-de.npz"
    command = f"fairseq-syntax length-prior {data} -s en -t de"
    with pytest.raises(FileNotFoundError, match=re.escape(f"make it with {command}")):
        built()
    with pytest.raises(FileNotFoundError, match="fairseq-syntax length-prior DATA -s en"):
        built(data / "other.npz")
    languages = {"source": "en", "target": "de"}
    for table, meta in (
        (np.zeros((3, 3)), {"source": "de", "target": "en"}),
        (np.full((3, 3), -math.inf), languages),
        (np.zeros((0, 3)), languages),
        (np.zeros(3), languages),
        (np.zeros((3, 3)), {**languages, "format_version": 9}),
    ):
        write_length_table(path, table, meta)
        with pytest.raises(ValueError, match=f"not a table of lengths of de given en .* {re.escape(command)} --over"):
            built()
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="not a table of lengths"):
        built()


def test_damaged_tables(data):
    """Whatever bytes are wrong, and whatever another program may have written: one short message, or a table."""
    path = length_table_path(data, "en", "de")
    rng = random.Random(1)
    write_length_table(path, np.log(np.random.default_rng(1).random((20, 20))), {"source": "en", "target": "de"})
    good = path.read_bytes()
    refused = 0
    for _ in range(400):
        content = bytearray(good)
        # headers of the archive are at its ends
        content[rng.choice([rng.randrange(len(good)), rng.randrange(80), -rng.randrange(1, 250)])] = rng.randrange(256)
        path.write_bytes(content)
        try:
            assert read_length_table(path, "en", "de").dtype == np.float32
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ") and len(str(error)) < len(str(path)) + 300
    assert refused > 200
    for table, version in [("a", 1), (1j, 1), (0.0, None), (0.0, [])]:
        meta = json.dumps({"format_version": version, "source": "en", "target": "de"})
        np.savez_compressed(path, table=np.full((2, 2), table), meta=np.array(meta))
        with pytest.raises(ValueError, match=r"not a table of lengths .*--overwrite"):
            read_length_table(path, "en", "de")
