"""fairseq-syntax length-prior and --length-prior: the table of a directory, and what fairseq does with it."""

import json
import math
import re
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import programs
import pytest
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from integration import commands
from integration.commands import DECODING, PACKAGE, hypotheses

from fairseq_syntax.data.length_table import length_table_path, read_length_table, write_length_table
from fairseq_syntax.decoding.length_prior import length_table
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
    files = [latent.text.with_name(f"{split}.{language}") for language in ("en", "de")]
    return [np.array([len(line.split()) for line in file.read_text().splitlines()]) for file in files]


# --- the program ------------------------------------------------------------------------------------------------------


def test_the_table_is_that_of_the_text(latent, data, run):
    output = run(data, *LANGUAGES)
    path = data / "length_prior.en-de.npz"
    source, target = lengths_of(latent, "train")
    table = read_length_table(path, "en", "de")
    assert table.dtype == np.float32
    np.testing.assert_allclose(table, length_table(source, target), rtol=1e-6)
    valid = lengths_of(latent, "valid")
    seen = set(zip(source.tolist(), target.tolist(), strict=True))
    unseen = sum(pair not in seen for pair in zip(*(side.tolist() for side in valid), strict=True))
    assert f"valid, unseen in training: {unseen} of {len(valid[0])} pairs of lengths" in output
    assert f"wrote {path}" in output and run.said == ""


def test_all_training_data_count_binarized_or_not(latent, data, run):
    """train, train1 and those of a second directory; a directory without a valid split."""
    for path in data.glob("valid.*"):
        path.unlink()
    for language in ("en", "de"):
        shutil.copy(latent.text.with_name(f"test.{language}"), data / f"train1.en-de.{language}")
    assert "valid" not in run(f"{data}:{latent.data}", *LANGUAGES)
    train, test = lengths_of(latent, "train"), lengths_of(latent, "test")
    both = [np.concatenate([a, b, a]) for a, b in zip(train, test, strict=True)]
    table = read_length_table(data / "length_prior.en-de.npz", "en", "de")
    np.testing.assert_allclose(table, length_table(*both), rtol=1e-6)
    assert not (latent.data / "length_prior.en-de.npz").exists()


def test_the_other_direction_and_another_name(latent, data, run, capsys):
    options = [data, "-s", "de", "-t", "en", "--output", data / "new" / "other.npz"]
    run(*options)
    assert "give -s and -t" in run.said
    expected = length_table(*reversed(lengths_of(latent, "train")))
    np.testing.assert_allclose(read_length_table(options[-1], "de", "en"), expected, rtol=1e-6)
    assert not list(data.glob("length_prior.*")), "which `auto` reads"
    assert f"{options[-1]}: exists already" in refused(capsys, *options)


# --- the task ---------------------------------------------------------------------------------------------------------


def write_sloped(data, slope):
    """No probabilities, but clear: EOS is the last resort (positive slope), or comes as soon as it may (negative)."""
    table = np.tile(slope * np.arange(30.0), (2, 1)) - math.copysign(3000, slope)
    write_length_table(data / "length_prior.en-de.npz", table, {"source": "en", "target": "de"})


def test_generate_and_interactive_use_it(latent, data, trained):
    write_sloped(data, -90.0)
    given = ["--path", trained("nmt_lstm_tiny"), *DECODING, "--max-len-b", "12"]

    def lengths(output):
        # with EOS; of scores, as a model that has learned little writes symbols that no text shows
        return [len(scores.split()) for scores in re.findall(r"^P-\d+\t(.*)$", output, re.MULTILINE)]

    short = commands.run("fairseq-generate", data, *given, "--length-prior", "auto")
    plain = commands.run("fairseq-generate", data, *given)
    assert set(lengths(short)) == {2} and set(lengths(plain)) != {2}
    table = (data / "length_prior.en-de.npz").rename(data.with_name("elsewhere.npz"))
    more = ["--input", f"{latent.text}.en", "--length-prior", table, *LANGUAGES]
    output = commands.run("fairseq-interactive", data, *given, *more)
    assert {n: t for n, (_, t) in hypotheses(output).items()} == {n: t for n, (_, t) in hypotheses(short).items()}


def test_validation_in_training_does_without(data, trained, tmp_path):
    """There is no table, which is told to fairseq-generate; --eval-bleu never asks for it, nor minds other searches."""
    with pytest.raises(OSError, match=r"length_prior\.en-de\.npz: no table of lengths; make it with fairseq-syntax"):
        commands.run("fairseq-generate", data, "--path", trained("nmt_lstm_tiny"), "--length-prior", "auto", "--cpu")
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    log = commands.run(
        *("fairseq-train", data, "--arch", "nmt_lstm_tiny", *arguments, "--max-update", "2", "--save-dir", tmp_path),
        *("--length-prior", "auto", "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "lenpen": 0.5, "max_len_b": 5}'),
    )
    assert re.search(r"valid_bleu", log)


def test_unknown_words_are_aligned_in_hypotheses_that_the_prior_has_chosen(data, trained):
    write_sloped(data, 90.0)
    overrides = {"data": str(data), "user_dir": str(PACKAGE), "length_prior": "auto"}
    paths = [str(trained("nmt_lstm_tiny"))]
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(paths, arg_overrides=overrides)
    task.load_dataset("test")
    dataset, more = task.dataset("test"), {"beam": 3, "max_len_a": 0, "max_len_b": 12, "replace_unk": ""}
    generator = task.build_generator([models[0].eval()], SimpleNamespace(**{**vars(GenerationConfig()), **more}))
    for beam in task.inference_step(generator, models, dataset.collater([dataset[0], dataset[1]])):
        # "<s>", which a model that has learned little may write, is in no text
        shown = beam[0]["tokens"].ne(task.target_dictionary.bos())
        assert len(shown) == 13 and len(beam[0]["alignment"]) == shown.sum()
    task.build_generator(models, SimpleNamespace(**{**vars(GenerationConfig()), "score_reference": True}))  # contrast


RIGHT, TABLE = {"format_version": 1, "source": "en", "target": "de"}, np.zeros((2, 2))
CHANGES = ({"source": "de", "target": "en"}, *({"format_version": version} for version in (9, None, [])))
WRONG = [(table, RIGHT) for table in (np.full((2, 2), "a"), 1j * TABLE, TABLE - math.inf, TABLE[:0], TABLE[0])]


@pytest.mark.parametrize(("table", "meta"), [*WRONG, *((TABLE, RIGHT | change) for change in CHANGES)])
def test_what_another_program_may_have_written_is_no_table(tmp_path, table, meta):
    path = length_table_path(tmp_path, "en", "de")
    np.savez_compressed(path, table=table, meta=np.array(json.dumps(meta)))
    damaged = path.read_bytes()
    for content in (damaged, damaged[: len(damaged) // 2], b"", damaged.replace(b"table", b"elbat")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"not a table of lengths of de given en .*make it again.*--overwrite"):
            read_length_table(path, "en", "de")
