"""A new experiment.toml: settings for the size of the corpus, and the requested systems with their baselines."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..data.text.languages import language_of
from ..files import written
from ..trees.text import read_lines
from .corpus import check, text_path
from .plan import NAME, CorpusSettings, Plan, PlanError, TextSettings, read_plan


@dataclass(frozen=True)
class Size:
    """Settings that depend on the number of training pairs.

    Fields:
        pairs: largest number of pairs for which they hold.
        merges: number of merges of subword-nmt, of both sides together.
        updates: number of updates, of 2,048 tokens each, on one core.
        warmup: number of updates until the learning rate is highest.
        dropout: dropout of the Transformers.
        validate: number of epochs between validations.
    """

    pairs: float
    merges: int
    updates: int
    warmup: int
    dropout: float
    validate: int


# docs/corpus.md says which were measured
SIZES = (
    Size(2_000, 1_000, 2_000, 200, 0.3, 5),
    Size(6_000, 4_000, 2_000, 200, 0.3, 5),
    Size(20_000, 4_000, 4_000, 400, 0.3, 3),
    Size(60_000, 4_000, 8_000, 1_000, 0.3, 2),
    Size(float("inf"), 8_000, 16_000, 1_000, 0.1, 1),
)


@dataclass(frozen=True)
class KnownSystem:
    """A system of `SYSTEMS`: its family, its options, and whether it reads trees, at least in training."""

    family: str
    options: str
    parsed: bool = False


SYSTEMS = {
    "transformer": KnownSystem("transformer", "--arch transformer_iwslt_de_en"),
    "pascal": KnownSystem(
        "transformer", "--arch pascal_transformer_iwslt_de_en --pascal-heads 2 0 0 0 --pascal-parent-ignoring 0.1", True
    ),
    "tag": KnownSystem("transformer", "--arch tag_transformer_iwslt_de_en", True),
    "dasa": KnownSystem("transformer", "--arch dasa_transformer_iwslt_de_en", True),
    "lisa": KnownSystem(
        "transformer", "--arch lisa_transformer_iwslt_de_en --criterion label_smoothed_cross_entropy_with_heads", True
    ),
    "planted": KnownSystem(
        "transformer",
        "--arch planted_transformer_iwslt_de_en --criterion label_smoothed_cross_entropy_with_planted_heads",
        True,
    ),
    "nmt_lstm": KnownSystem("recurrent", "--arch nmt_lstm"),
    "fa_nmt_shared": KnownSystem("recurrent", "--arch fa_nmt_shared --sa-scaled-heads"),
    "sa_nmt_shared": KnownSystem("recurrent", "--arch sa_nmt_shared --sa-scaled-heads --sa-root-scores query"),
    "global_att": KnownSystem("directed", "--arch global_att"),
    "sdatt": KnownSystem("directed", "--arch sdatt", True),
    "chen17": KnownSystem("directed", "--arch chen17", True),
}
"""Systems of `experiment --systems`; others can be added to the file."""
BASELINES = {"transformer": "transformer", "recurrent": "nmt_lstm", "directed": "global_att"}
"""Family -> baseline with which its systems are compared."""
_CONTROLS = {"linear": "the head of every word is the word before it", "random": "trees are random"}

_FILE = """\
# An experiment of fairseq-syntax with {pairs:,} training pairs. Everything here can be edited before
# the first training; afterwards, a run that was begun with other settings is refused. See docs/corpus.md.
name = {name}
seeds = [1, 2, 3]                # each system is trained with these
tokenize = {tokenize}            # sacrebleu's, for BLEU of detokenized text

[corpus]
{corpus}
[cleaning]                       # of training pairs; nothing is left out of the other sets
longest = 1000                   # characters per side, at most
ratio = 4                        # one side this much longer than usual is left out

[text]                           # options of fairseq-syntax preprocess --raw
{text}"""
_VALIDATION = """\
    --validate-interval {size.validate} --eval-bleu --eval-tokenized-bleu --eval-bleu-remove-bpe
    --eval-bleu-args '{{"beam": 1, "max_len_a": 1.5, "max_len_b": 10}}'
    --best-checkpoint-metric bleu --maximize-best-checkpoint-metric"""
_TRANSFORMER = """
[families.transformer]
baseline = "transformer"
max_updates = {size.updates}
annealed = true                  # the learning rate falls to zero at the last update
train = \"\"\"{shared} --encoder-normalize-before --decoder-normalize-before
    --encoder-layers 4 --decoder-layers 4 --encoder-embed-dim 128 --decoder-embed-dim 128
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4
    --dropout {size.dropout} --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr 3e-3
    --lr-scheduler polynomial_decay --warmup-updates {size.warmup} --total-num-update {{updates}}
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 2048
{validation}\"\"\"
generate = "--beam 5 --max-len-a 1.5 --max-len-b 10 --max-tokens 4096 --remove-bpe"
""".replace("{validation}", _VALIDATION)
_RECURRENT = """
[families.{name}]
baseline = "{baseline}"
max_updates = {size.updates}
annealed = true
train = \"\"\"{shared_all}--encoder-embed-dim 200 --encoder-hidden-size 160 --decoder-embed-dim 200
    --encoder-layers 1 --decoder-layers 1 --decoder-hidden-size 320 --init-range 0.15
    --embedding-dropout 0.3 --annotation-dropout 0.3 --dropout 0.3 --optimizer adam --clip-norm 1.0 --lr 2e-3
    --lr-scheduler polynomial_decay --warmup-updates {size.warmup} --total-num-update {{updates}}
    --criterion cross_entropy --batch-size 64
{validation}\"\"\"
generate = "--beam 5 --max-len-a 1.5 --max-len-b 10 --batch-size 64 --remove-bpe"
""".replace("{validation}", _VALIDATION)


def named_test_sets(prefixes: Sequence[str]) -> dict[str, str]:
    """Name of each test set, which is that of its files -> prefix. Raises PlanError: two have the same name."""
    named = {Path(prefix).name: str(Path(prefix).resolve()) for prefix in prefixes}
    if len(named) < len(prefixes) or {"train", "valid"} & named.keys():
        raise PlanError("--test: give files with different names, other than train and valid")
    return named


def with_rivals(systems: Sequence[str], controls: bool, parsed: bool) -> list[str]:
    """The systems, each after the baseline of its family and, with `controls`, before its controls.

    Raises PlanError: a system is unknown, or needs trees though there is no parser.
    """
    free = ", ".join(name for name, known in SYSTEMS.items() if not known.parsed)
    names: list[str] = []
    for name in systems:
        if name not in SYSTEMS:
            raise PlanError(f"--systems {name}: choose from {', '.join(SYSTEMS)}; others are added in {NAME}")
        known = SYSTEMS[name]
        if known.parsed and not parsed:
            raise PlanError(
                f"--systems {name}: learns from trees; give a --parser for the source, or choose from {free}"
            )
        names += [BASELINES[known.family], name]
        if controls and known.parsed:
            names += [f"{name}-{kind}" for kind in _CONTROLS]
    return list(dict.fromkeys(names))


def begin(folder: Path, corpus: dict, text: dict, systems: Sequence[str] = (), controls: bool = False) -> list[str]:
    """Write experiment.toml, or add systems to an existing one; returns messages about what was done.

    Args:
        folder: folder of the experiment, or the path of such a file.
        corpus, text: fields of `CorpusSettings` and `TextSettings`; others have their defaults, or stay as they are.
        systems: names from `SYSTEMS`; empty for pascal, or for those in the file.
        controls: whether to add controls of the systems, too.

    Raises ValueError: the training text is not parallel, there is no such system, or the file has another text;
    FileNotFoundError: a text is missing.
    """
    path = folder / NAME if folder.suffix != ".toml" else folder
    if not path.exists():
        text = TextSettings(**{"parser": "stanza"} | text)
        write_plan(path, CorpusSettings(**corpus), text, systems or ["pascal"], controls)
        return [f"{path}: written; edit it to change what is trained"]
    plan = read_plan(path)
    for options, settings in ((corpus, plan.corpus), (text, plan.text)):
        for name, value in options.items():
            if (old := getattr(settings, name, None)) != value:
                option = {"tests": "test"}.get(name, name.replace("_", "-"))
                raise PlanError(
                    f"--{option}: {path} has {name} = {_toml(old)}; leave the option out, edit the file before data "
                    "are made, or name another folder"
                )
    if not (systems or controls):
        return []
    if plan.corpus is None:
        raise PlanError(f"--systems, --controls: {path} has no [corpus]; add systems to the file")
    asked = [*(name for name in plan.systems if name in SYSTEMS and controls), *systems]
    names = [name for name in with_rivals(asked, controls, plan.text.parser != "none") if name not in plan.systems]
    if not names:
        return []
    pairs = sum(1 for _ in read_lines(text_path(plan.corpus.train, plan.corpus.source)))
    content = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    with written(str(path)) as file:
        file.write(content + _tables(names, _size(pairs), plan.text.joined, plan))
    return [f"{path}: added {', '.join(names)}"]


def write_plan(path: Path, corpus: CorpusSettings, text: TextSettings, systems: Sequence[str], controls: bool) -> None:
    """Write the file of a new experiment; see `begin`."""
    language = re.match("([a-z]{2,3})_", text.parser_model or "")
    if text.parser == "spacy" and language and language[1] not in (language_of(corpus.source).own, "xx"):
        raise PlanError(
            f"--parser-model {text.parser_model}: parses {language[1]}, but the source is {corpus.source}; give "
            f"--source {language[1]}, or a pipeline of {corpus.source}"
        )
    names = with_rivals(systems, controls, text.parser != "none")
    pairs = len(check(corpus, path.parent)["train"])
    size, target = _size(pairs), language_of(corpus.target)
    joined = language_of(corpus.source).script == target.script  # in which case they share subwords
    # without spaces between words, there are thousands of characters, which are pieces already
    merges = size.merges if target.spaced else max(size.merges, 4_000)
    settings = {name: value for name, value in asdict(text).items() if value}
    content = _FILE.format(
        pairs=pairs,
        name=_toml(path.resolve().parent.name),
        tokenize=_toml(target.scoring),
        corpus=_settings(asdict(corpus)),
        text=_settings(settings | {"subword_size": merges, "joined": joined}),
    )
    with written(str(path)) as file:
        file.write(content + _tables(names, size, joined))


def _tables(names: Collection[str], size: Size, joined: bool, plan: Plan | None = None) -> str:
    """TOML tables of systems and their families; a control has the options of its system in the plan, if there."""
    families = dict.fromkeys(SYSTEMS[name.partition("-")[0]].family for name in names)
    shared = "--share-all-embeddings" if joined else "--share-decoder-input-output-embed"
    more = {"shared": shared, "shared_all": "--share-all-embeddings " * joined, "size": size}
    content = "".join(
        (_TRANSFORMER if name == "transformer" else _RECURRENT).format(name=name, baseline=BASELINES[name], **more)
        for name in families
        if not plan or name not in plan.families
    )
    for name in names:
        system, _, kind = name.partition("-")
        known = plan.systems[system] if plan and system in plan.systems else SYSTEMS[system]
        trees = kind or ("parser" if SYSTEMS[system].parsed else "")
        settings = {"family": known.family, "options": known.options} | ({"trees": trees} if trees else {})
        content += f"\n[systems.{name}]" + (f"  # {_CONTROLS[kind]}" if kind else "") + f"\n{_settings(settings)}"
    return content


def _toml(value: object) -> str:
    """A value in TOML, whose syntax is that of JSON except for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _settings(values: dict) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items())


def _size(pairs: int) -> Size:
    return next(size for size in SIZES if pairs <= size.pairs)
