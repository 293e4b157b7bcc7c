"""The recipe of latent graph parsing from beginning to end, on a little real data."""

import os
import re
import subprocess

import pytest


@pytest.mark.slow
def test_all_systems_from_text_to_scores(repository, real_data, tmp_path):
    out = tmp_path / "lgp"
    settings = {
        **{"OUT": str(out), "DATA": str(real_data / "tanaka"), "UD": str(real_data / "ud"), "PAIRS": "500"},
        **{"FIRST_K": "100", "PARSER_EPOCHS": "2", "MAX_EPOCH": "2", "ARCH": "lgp_tiny", "BEAM": "3"},
    }
    # a parser of the translator's size
    tiny = ["--lgp-parser-size", "16", "--lgp-pos-size", "8"]

    def run(verb, *arguments, **more):
        done = subprocess.run(
            ["bash", repository / "examples" / "recipe.sh", verb, "lgp", *arguments],
            cwd=repository,
            env={**os.environ, **settings, **more},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    run("prepare")
    run("pretrain", *tiny)
    systems = ("seq", "lgp", "lgp_plus", "seq_plus", "dep", "uni")
    for system in systems:
        run("train", system)
        run("evaluate", system, PRIOR="raw")
    run("average", "lgp")
    run("evaluate", "lgp", AVERAGED="1", COPY_UNKNOWN="1", PRIOR="off")
    compared = run("compare", "test", "--baseline", "seq_plus", PRIOR="raw")
    for system in systems:
        assert re.search(rf"^{system} +[\d.]+ ", compared, re.MULTILINE), compared[-2000:]
    assert "against seq_plus" in compared

    folder = out / "500"
    trained = ("seq-1", "lgp-1", "lgp_plus-100-1-1")
    paths = ":".join(str(folder / "checkpoints" / name / "checkpoint_last.pt") for name in trained)
    output = subprocess.run(
        [
            *("fairseq-generate", folder / "data-bin", "--user-dir", repository / "fairseq_syntax", "--cpu"),
            *("--task", "syntax_translation", "-s", "en", "-t", "ja", "--path", paths, "--length-prior", "auto"),
            *("--beam", "3", "--max-len-b", "20"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len(re.findall(r"^H-\d+\t", output, re.MULTILINE)) == 500


def test_more_pairs_than_there_are(repository, tmp_path):
    for name in ("train", "dev", "test"):
        for language in ("en", "ja"):
            (tmp_path / f"{name}.{language}").write_text("a b\n" * 3)
    done = subprocess.run(
        ["bash", repository / "examples" / "recipe.sh", "prepare", "lgp"],
        cwd=repository,
        env={**os.environ, "OUT": str(tmp_path / "out"), "DATA": str(tmp_path), "PAIRS": "5"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert re.search(r"recipe.sh prepare lgp: PAIRS=5: .*/full/train.en has 3 lines$", done.stderr, re.MULTILINE)
