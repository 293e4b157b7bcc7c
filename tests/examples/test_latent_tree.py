"""The recipe of latent trees over characters: what it would run, the artificial language, and a quick run."""

import importlib.util
import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest
from contract.command_lines import parse
from contract.test_examples import EXAMPLES, dry_run, fairseq_commands

FOLDER = EXAMPLES / "latent_tree"
LATENT = {
    "latent": {},
    "shallow": {"tree_preset": "shallow"},
    "paper": {"tree_preset": "paper"},
    "pf": {"tree_preset": "pf"},
    "literal": {"tree_preset": "literal"},
    "flat": {"forced_trees": "flat", "action_xent": 1.0},
    "words": {"forced_trees": "words", "action_xent": 1.0},
    "no_reward": {"policy_weight": 0.0},
    "no_coverage": {"coverage_weight": 0.0},
    "head": {"policy_grad": "head"},
}
WITHOUT = ("char_lstm", "lstm")


def commands(script: str, *arguments: str, **variables: str) -> list[list[str]]:
    return dry_run(FOLDER / f"{script}.sh", *arguments, **{"OUT": "nowhere/out", **variables})


def only(found: list[list[str]]) -> list[str]:
    (command,) = found
    return command


@pytest.mark.parametrize("local", [False, True])
def test_data_are_accepted(tmp_path, local):
    more = {}
    if local:
        for split, language in product(("train", "val", "test_2016_flickr", "test_2017_flickr"), ("de", "en")):
            (tmp_path / f"{split}.{language}{'.gz' * (split == 'train')}").touch()
        more = {"DATA": str(tmp_path)}
    found = commands("prepare", **more)
    *characters, binarized = fairseq_commands(found)
    args = [parse(command) for command in characters]
    assert [Path(a.output).name for a in args] == [
        f"{split}.{language}" for split in ("train", "valid", "test", "test1") for language in ("de", "en")
    ]
    texts = {Path(a.input[0]).name: a.input[0] for a in args}
    assert all(path.startswith("nowhere/out/text/") for path in texts.values())
    # the text is where evaluation takes its references
    scored = [command for command in commands("evaluate", "latent") if command[0] == "sacrebleu"]
    assert {command[1] for command in scored} == {texts["test.en"]}
    data = parse(binarized)
    assert (data.source_lang, data.target_lang, data.padding_factor) == ("de", "en", 1)
    assert [Path(a.output).with_suffix("") for a in args][::2] == [
        Path(p) for p in (data.trainpref, data.validpref, *data.testpref.split(","))
    ]
    urls = [word for command in found for word in command if word.startswith("https://")]
    assert len(urls) == (0 if local else 8)
    unpacked = [command[-1] for command in found if command[0] == "gzip"]
    assert sum(path.endswith(".gz") for path in unpacked) == (2 if local else 8)


@pytest.mark.parametrize("size", ["cpu", "paper"])
@pytest.mark.parametrize("system", [*LATENT, *WITHOUT])
def test_systems_are_accepted(system, size):
    training = parse(only(fairseq_commands(commands("train", system, SIZE=size))))
    generation, *restored = map(parse, fairseq_commands(commands("evaluate", system, SIZE=size)))
    assert training.data == generation.data
    assert Path(generation.path).parent == Path(training.save_dir)
    hidden = {"cpu": 128, "paper": 384}[size]
    if system in LATENT:
        assert (training.arch, training.criterion) == ("latent_tree_rnng", "reinforce_tree")
        assert training.rnng_size == hidden
        assert training.task == generation.task == "tree_translation"
        assert generation.tree_output == f"nowhere/out/{system}-1.test.trees"
        changed = {"tree_preset": "default", "forced_trees": "none", "action_xent": 0.0, "policy_weight": None}
        changed |= {"coverage_weight": None, "policy_grad": "full", **LATENT[system]}
        # without presets, defaults of a model are filled in when it is built
        assert {name: getattr(training, name, changed[name]) for name in changed} == changed
    else:
        assert (training.arch, training.criterion, training.dropout) == (system, "cross_entropy", 0.1)
        assert training.task == generation.task == "translation"
        sizes = ("encoder_embed_dim", "decoder_embed_dim", "decoder_hidden_size")
        assert {getattr(training, name) for name in sizes} == {hidden}
        assert training.encoder_hidden_size == (hidden if system == "lstm" else hidden // 2)
        assert (training.encoder_layers, training.decoder_layers) == (2, 2)
    assert training.eval_bleu_detok == generation.bpe == "syntax_char"
    # greedy, in validation too
    assert generation.beam == 1 and '"beam": 1' in training.eval_bleu_args
    assert f'"max_len_a": {generation.max_len_a}, "max_len_b": {generation.max_len_b}' in training.eval_bleu_args
    assert [args.dedup for args in restored] == ["none", "adjacent"]
    assert all(args.restore for args in restored)


def test_settings_of_the_paper():
    """One budget for all; fairseq would make 8 of 10 sentences."""
    found = [parse(only(fairseq_commands(commands("train", name, SIZE="paper")))) for name in ("latent", "lstm")]
    for args in found:
        assert (args.batch_size, args.required_batch_size_multiple, args.max_epoch) == (10, 1, 12)
        assert (args.optimizer, args.lr, args.clip_norm, args.cpu) == ("adam", [1e-3], 5.0, False)


def test_variables_and_options_of_the_user_win():
    args = parse(only(fairseq_commands(commands("train", "latent", "--max-epoch", "3", LR="1e-2", HIDDEN="32"))))
    assert (args.max_epoch, args.lr, args.rnng_size) == (3, [1e-2], 32)


def test_what_looks_at_the_trees_is_accepted():
    stats, draw = map(parse, fairseq_commands(commands("trees", "latent", "valid", IDS="5 7")))
    generation = parse(fairseq_commands(commands("evaluate", "latent", "valid"))[0])
    assert stats.trees == draw.trees == generation.tree_output
    assert (generation.gen_subset, draw.ids) == ("valid", [5, 7])
    assert commands("trees", "lstm", status=2) == []


@pytest.mark.parametrize("script", ["train", "evaluate", "trees"])
def test_what_does_not_exist_is_refused(script):
    assert commands(script, "bogus", status=2) == []
    if script != "train":
        assert commands(script, "latent", "bogus", status=2) == []


@pytest.mark.parametrize("spaces", ["1", "0"])
def test_the_quick_run_is_accepted(spaces):
    found = dry_run(FOLDER / "quick.sh", "--lr", "1e-2", OUT="nowhere/quick", UPDATES="5", SPACES=spaces)
    ours = fairseq_commands(found)
    trainings = [parse(c) for c in ours if c[0] == "fairseq-train"]
    assert {args.arch for args in trainings} == {"latent_tree_rnng", "char_lstm"}
    budget = ("data", "batch_size", "max_update", "lr", "seed", "optimizer", "clip_norm")
    one, other = ({name: getattr(args, name) for name in budget} for args in trainings)
    assert one == other and (one["max_update"], one["lr"]) == (5, [1e-2])
    generations = [parse(c) for c in ours if c[0] == "fairseq-generate"]
    assert {Path(a.path).parent for a in generations} == {Path(a.save_dir) for a in trainings}
    (trees,) = (args.tree_output for args in generations if getattr(args, "tree_output", None))
    looked = [parse(c) for c in ours if c[0] == "fairseq-syntax-constituents"]
    assert [args.trees for args in looked] == [trees, trees]
    (corpus,) = (c for c in found if c[0] == "python")
    assert ("--spaces" in corpus) == (spaces == "1")
    # without spaces, words are known of the source alone
    known = f"{corpus[corpus.index('--output') + 1]}/test.src.words" if spaces == "0" else None
    assert looked[0].gold == known
    assert not (EXAMPLES.parent / "nowhere").exists(), "DRY_RUN=1 has made a folder"


# --- the artificial language ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def artificial():
    """The script: function folder, options -> exit status."""
    spec = importlib.util.spec_from_file_location("artificial", FOLDER / "artificial.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return lambda folder, *options: script.main(["--output", str(folder), *options])


def lines(path: Path) -> list[list[str]]:
    return [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("order", ["same", "reversed"])
def test_words_of_the_artificial_language(artificial, tmp_path, order):
    sizes = ["--train", "300", "--valid", "20", "--test", "10", "--words", "30"]
    assert artificial(tmp_path / "one", *sizes, "--order", order) == 0
    translations, lexicons = {}, {"src": set(), "tgt": set()}
    for split, size in (("train", 300), ("valid", 20), ("test", 10)):
        words = {language: lines(tmp_path / "one" / f"{split}.{language}.words") for language in lexicons}
        for language in lexicons:
            characters = lines(tmp_path / "one" / f"{split}.{language}")
            assert characters == [list("".join(line)) for line in words[language]] and len(characters) == size
            lexicons[language].update(word for line in words[language] for word in line)
        for source, target in zip(words["src"], words["tgt"], strict=True):
            assert 2 <= len(source) == len(target) <= 6
            for word, other in zip(source, target if order == "same" else target[::-1], strict=True):
                assert translations.setdefault(word, other) == other
    for language, alphabet in (("src", "abcdefgh"), ("tgt", "ijklmnop")):
        assert len(lexicons[language]) == 30
        assert all(3 <= len(word) <= 6 and set(word) <= set(alphabet) for word in lexicons[language])
        # a sentence can be cut in one way only
        assert not any(a != b and a.startswith(b) for a, b in product(lexicons[language], repeat=2))


def test_the_same_seed_gives_the_same_files(artificial, tmp_path, capsys):
    sizes = ["--train", "20", "--valid", "5", "--test", "5"]
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert artificial(tmp_path / name, *sizes, "--seed", seed) == 0
    a, b, c = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in "abc")
    assert len(a) == 12 and a == b != c
    assert artificial(tmp_path / "spaces", *sizes, "--seed", "3", "--spaces") == 0
    spaces = {p.name: p.read_bytes() for p in (tmp_path / "spaces").iterdir()}
    assert {name: text.replace("▁ ".encode(), b"") for name, text in spaces.items()} == a
    assert all(("▁".encode() in text) != name.endswith(".words") for name, text in spaces.items())
    assert artificial(tmp_path / "a", *sizes) == 1
    assert "exists already; give --overwrite" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        artificial(tmp_path / "d", *sizes, "--longest", "1")
    assert caught.value.code == 2 and not (tmp_path / "d").exists()


# --- the quick run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_quick_run_scores_both_systems_and_looks_at_the_trees(repository, tmp_path):
    out = tmp_path / "quick"
    done = subprocess.run(
        ["bash", FOLDER / "quick.sh"],
        cwd=repository,
        env={**os.environ, "OUT": str(out), "UPDATES": "30"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for system in ("latent_tree_rnng", "char_lstm"):
        part = done.stdout.split(f"== {system}\n")[1]
        assert re.search(r"^BLEU\|nrefs:1\|.*version:[\d.]+ = [\d.]+ ", part, re.MULTILINE)
    trees = (out / "latent_tree_rnng.test.trees").read_text(encoding="utf-8")
    assert len(re.findall(r"^(?:TS|TT|TA)-\d+\t", trees, re.MULTILINE)) == 600
    assert all(len(re.findall(rf"^{side} +found ", done.stdout, re.MULTILINE)) == 3 for side in ("source", "target"))
    assert len(list((out / "trees").glob("*-trees.svg"))) == 3


@pytest.mark.slow
def test_recipe_from_text_to_scores_and_trees(repository, tmp_path):
    """On a few pairs, with small models."""
    text = tmp_path / "text"
    text.mkdir()
    pairs = [(f"Ein Hund ({i}) bellt .", f"A dog ({i}) barks .") for i in range(24)]
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for place, language in enumerate(("de", "en")):
            chosen = pairs if split == "train" else pairs[:5]
            (text / f"{split}.{language}").write_text("".join(f"{pair[place]}\n" for pair in chosen), encoding="utf-8")
    settings = {"OUT": str(tmp_path / "out"), "DATA": str(text), "HIDDEN": "16", "MAX_EPOCH": "1", "BATCH_SIZE": "8"}

    def run(script, *arguments):
        done = subprocess.run(
            ["bash", FOLDER / f"{script}.sh", *arguments],
            cwd=repository,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run("prepare")
    for system in ("latent", "words", "char_lstm", "lstm"):
        run("train", system)
        scores = run("evaluate", system)
        for line in ("== (?:cased|lowercase), repeated pairs of words removed: ", "BLEU\\|", "chrF2\\|"):
            assert len(re.findall(f"^ *{line}", scores, re.MULTILINE)) == 4
    assert set(re.findall(r"^(source|target) +found ", run("trees", "latent"), re.MULTILINE)) == {"source", "target"}
    # flat trees have no attention to draw
    drawn = {path.name for path in (tmp_path / "out" / "latent-1.test.trees.d").iterdir()}
    assert {f"{i}-trees.svg" for i in range(4)} <= drawn
