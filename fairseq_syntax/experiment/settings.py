"""The first file of an experiment: settings for a corpus of this size, and the systems that are asked for."""

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..data.text.languages import language_of
from ..files import staged
from ..trees.text import read_lines
from .corpus import check, text_of
from .plan import NAME, Budget, Corpus, Plan, PlanError, Text, read_plan
from .run import Run
from .schedule import duration, minutes_left


@dataclass(frozen=True)
class Size:
    """What depends on the number of training pairs.

    Fields:
        pairs: up to so many.
        merges: of subword-nmt, both sides together.
        updates: of 2,048 tokens, on one core.
        warmup: updates until the learning rate is highest.
        dropout: of the Transformers.
        validate: epochs between two validations.
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
class Known:
    """A system of `SYSTEMS`: its family, its options, and whether it reads trees, while it is trained at least."""

    family: str
    options: str
    parsed: bool = False


SYSTEMS = {
    "transformer": Known("transformer", "--arch transformer_iwslt_de_en"),
    "pascal": Known(
        "transformer",
        "--arch pascal_transformer_iwslt_de_en --pascal-heads 2 0 0 0 --pascal-parent-ignoring 0.1",
        True,
    ),
    "tag": Known("transformer", "--arch tag_transformer_iwslt_de_en", True),
    "dasa": Known("transformer", "--arch dasa_transformer_iwslt_de_en", True),
    "lisa": Known(
        "transformer",
        "--arch lisa_transformer_iwslt_de_en --criterion label_smoothed_cross_entropy_with_heads",
        True,
    ),
    "planted": Known(
        "transformer",
        "--arch planted_transformer_iwslt_de_en --criterion label_smoothed_cross_entropy_with_planted_heads",
        True,
    ),
    "nmt_lstm": Known("recurrent", "--arch nmt_lstm"),
    "fa_nmt_shared": Known("recurrent", "--arch fa_nmt_shared --sa-scaled-heads"),
    "sa_nmt_shared": Known("recurrent", "--arch sa_nmt_shared --sa-scaled-heads --sa-root-scores query"),
    "global_att": Known("directed", "--arch global_att"),
    "sdatt": Known("directed", "--arch sdatt", True),
    "chen17": Known("directed", "--arch chen17", True),
}
"""Systems that `experiment --systems` knows; others are added in the file."""
BASELINES = {"transformer": "transformer", "recurrent": "nmt_lstm", "directed": "global_att"}
"""Family -> the system that its others are compared with."""
_CONTROLS = {"linear": "the head of every word is the word before it", "random": "trees are random"}

_FILE = """\
# An experiment of fairseq-syntax with {pairs:,} training pairs. Everything here can be edited before
# the first training; afterwards, a run that was begun with other settings is refused. See docs/corpus.md.
name = {name}
seeds = [1, 2, 3]                # each system is trained with these
tokenize = {tokenize}            # sacrebleu's, for BLEU of detokenized text
{budget}
[corpus]
{corpus}
[cleaning]                       # of training pairs; nothing is left out of the other sets
longest = 1000                   # characters per side, at most
ratio = 4                        # one side this much longer than usual is left out
copies = true                    # leave out pairs whose sides are the same
repeated = true                  # leave out repeated pairs

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


def names_of_tests(prefixes: Sequence[str]) -> dict[str, str]:
    """Names of test sets, those of their files -> prefixes. Raises PlanError: two have the same name."""
    named = {Path(prefix).name: str(Path(prefix).resolve()) for prefix in prefixes}
    if len(named) < len(prefixes) or {"train", "valid"} & named.keys():
        raise PlanError("--test: give files with different names, other than train and valid")
    return named


def with_rivals(systems: Sequence[str], controls: bool, parsed: bool) -> list[str]:
    """The systems, each family's baseline before them, and with `controls` those without their syntax after each.

    Raises PlanError: an unknown one, or one that needs trees where there is no parser.
    """
    free = ", ".join(name for name, known in SYSTEMS.items() if not known.parsed)
    found: list[str] = []
    for name in systems:
        if name not in SYSTEMS:
            raise PlanError(f"--systems {name}: choose from {', '.join(SYSTEMS)}; others are added in {NAME}")
        known = SYSTEMS[name]
        if known.parsed and not parsed:
            raise PlanError(
                f"--systems {name}: learns from trees; give a --parser for the source, or choose from {free}"
            )
        found += [BASELINES[known.family], name]
        if controls and known.parsed:
            found += [f"{name}-{kind}" for kind in _CONTROLS]
    return list(dict.fromkeys(found))


def begin(
    folder: Path, corpus: dict, text: dict, systems: Sequence[str] = (), controls: bool = False, budget: str = ""
) -> list[str]:
    """Write the file of an experiment, or change the one in its folder; returns what was done, for the user.

    Args:
        folder: of the experiment, or a file like its experiment.toml.
        corpus, text: fields of `Corpus` and of `Text`; what is not among them has its default, or stays.
        systems: of `SYSTEMS`; none: pascal, or those of the file.
        controls: those of the systems, too.
        budget: see `Budget`.

    Raises ValueError: the training text is not parallel, there is no such system, or the file is of another text;
    FileNotFoundError: a text is not there.
    """
    path = folder / NAME if folder.suffix != ".toml" else folder
    if budget:
        Budget(budget).minutes()
    if not path.exists():
        write_plan(path, Corpus(**corpus), Text(**{"parser": "stanza"} | text), systems or ["pascal"], controls, budget)
        return [f"{path}: written; edit it to change what is trained"]
    plan, said = read_plan(path, whole=True), []
    made = (path.parent / "prepared").exists()
    for given, own in ((corpus, plan.corpus), (text, plan.text)):
        for name, value in given.items():
            if (there := getattr(own, name, None)) != value:
                content = path.read_text(encoding="utf-8")
                line = re.search(rf"^{name} = .*$", content, re.MULTILINE)
                if own is plan.text and line and not made:  # the first check of it may have failed
                    _save(path, content.replace(line[0], f"{name} = {_toml(value)}"))
                    said.append(f"{path}: {name} = {_toml(value)}")
                    continue
                option = {"tests": "test"}.get(name, name.replace("_", "-"))
                raise PlanError(
                    f"--{option}: {path} is of {_toml(there)}, of which the data are made; leave the option out, or "
                    "name another folder"
                )
    if systems or controls:
        said += _add_systems(plan, systems, controls)
    if budget and budget != plan.budget.time:
        _save(path, _with_budget(path, Budget(budget, 0, plan.budget.updates)))
        said.append(f"{path}: budget {budget}")
    return said


def _add_systems(plan: Plan, systems: Sequence[str], controls: bool) -> list[str]:
    """Add systems to the file of a plan, with what they need, unless they are there; returns what was added."""
    if plan.corpus is None:
        raise PlanError(f"--systems, --controls: {plan.path} has no [corpus]; add systems to the file")
    asked = [*(name for name in plan.systems if name in SYSTEMS and controls), *systems]
    names = [name for name in with_rivals(asked, controls, plan.text.parser != "none") if name not in plan.systems]
    families = {SYSTEMS[name].family for name in names if name in SYSTEMS} - plan.families.keys()
    content = plan.path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    if families:
        pairs = sum(1 for _ in read_lines(text_of(plan.corpus.train, plan.corpus.source)))
        content += _families(families, _size(pairs), plan.text.joined)
    content += "".join(f"\n[systems.{name}]\n" + _settings(_values(name, plan)) for name in names)
    if names:
        _save(plan.path, content)
        if plan.budget.seeds:  # it is fitted again
            _save(plan.path, _with_budget(plan.path, replace(plan.budget, seeds=0)))
    return [f"{plan.path}: added {', '.join(names)}"] if names else []


def write_plan(path: Path, corpus: Corpus, text: Text, systems: Sequence[str], controls: bool, budget: str) -> None:
    """Write the file of a new experiment; see `begin`."""
    language = re.match("([a-z]{2,3})_", text.parser_model)
    if text.parser == "spacy" and language and language[1] not in (language_of(corpus.source).own, "xx"):
        raise PlanError(
            f"--parser-model {text.parser_model}: parses {language[1]}, but the source is {corpus.source}; give "
            f"--source {language[1]}, or a pipeline of {corpus.source}"
        )
    names = with_rivals(systems, controls, text.parser != "none")
    pairs = len(check(corpus)["train"])
    size, target = _size(pairs), language_of(corpus.target)
    joined = language_of(corpus.source).script == target.script  # and so they have subwords in common
    # without spaces between words, characters alone are thousands of pieces
    merges = size.merges if target.spaced else max(size.merges, 4_000)
    settings = {name: value for name, value in vars(text).items() if value not in ("", (), False)}
    content = _FILE.format(
        pairs=pairs,
        name=_toml(path.resolve().parent.name),
        tokenize=_toml(target.scoring),
        budget=_budget(Budget(budget)) if budget else "",
        corpus=_settings(vars(corpus)),
        text=_settings(settings | {"subword_size": merges, "joined": joined}),
    )
    families = {SYSTEMS[name].family for name in names if name in SYSTEMS}
    content += _families(families, size, joined) + "\n[systems]\n"
    for name in names:
        of, _, kind = name.partition("-")
        content += (f"# {of}, but {_CONTROLS[kind]}\n" if kind else "") + f"{name} = {_toml(_values(name))}\n"
    _save(path, content)


def _save(path: Path, content: str) -> None:
    """Write the file of an experiment. Raises PlanError, and leaves it as it is: it could not be read then."""
    with staged(path) as partial:
        partial.write_text(content, encoding="utf-8")
        try:
            read_plan(partial)
        except PlanError as error:
            raise PlanError(f"{path}: cannot be changed; edit it ({error})") from None


def _with_budget(path: Path, budget: Budget) -> str:
    """The text of a file of an experiment with a budget."""
    text = path.read_text(encoding="utf-8")
    line = _budget(budget)
    text, found = re.subn(r"^budget\s*=.*\n", lambda _: line, text, count=1, flags=re.MULTILINE)
    return text if found else re.sub(r"^(?=\[)", lambda _: f"{line}\n", text, count=1, flags=re.MULTILINE)


def _budget(budget: Budget) -> str:
    return f"budget = {_toml(vars(budget))}  # time limit, and what fits: the first seeds, percent of the updates\n"


def fit_budget(plan: Plan, runs: Sequence[Run], jobs: int) -> str:
    """Write into the file of an experiment how many seeds, and then how many updates, its budget has time for.

    Runs that have been begun keep their updates, and are not left out. Returns what was chosen.

    Args:
        plan: the whole one, with a budget.
        runs: all of it; their updates were timed.
        jobs: trainings at a time.

    Raises PlanError: too little time.
    """
    budget = plan.budget
    begun = [plan.seeds.index(run.seed) + 1 for run in runs if run.begun and run.seed in plan.seeds]

    def needed(seeds: int, percent: int) -> float:
        minutes = minutes_left([run for run in runs if run.seed in plan.seeds[:seeds]], jobs, percent / 100)
        if minutes is None:
            raise PlanError("--budget: some system could not be timed; remove budget from the file to learn why")
        return minutes

    percents = [budget.updates] if begun else range(100, 9, -1)
    least = max(begun, default=1)
    seeds = next((n for n in range(len(plan.seeds), least, -1) if needed(n, percents[0]) <= budget.minutes()), least)
    percent = next((percent for percent in percents if needed(seeds, percent) <= budget.minutes()), None)
    if percent is None:
        short = needed(least, percents[-1])
        raise PlanError(
            f"--budget {budget.time}: {least} of {len(plan.seeds)} seeds with {percents[-1]} % of the updates take "
            f"{duration(short)}; give --budget {math.ceil(short)}m or more, or begin again with fewer --systems"
        )
    _save(plan.path, _with_budget(plan.path, Budget(budget.time, seeds, percent)))
    return f"{seeds} of {len(plan.seeds)} seeds" + (f", {percent}% of the updates" if percent < 100 else "")


def _toml(value: object) -> str:
    """A value as in TOML, which is that of JSON but for tables."""
    if isinstance(value, dict):
        keys = (name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name) for name in value)
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in zip(keys, value.values(), strict=True)) + " }"
    return json.dumps(value, ensure_ascii=False)


def _size(pairs: int) -> Size:
    return next(size for size in SIZES if pairs <= size.pairs)


def _settings(values: dict) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in values.items())


def _families(needed: Collection[str], size: Size, joined: bool) -> str:
    shared = "--share-all-embeddings" if joined else "--share-decoder-input-output-embed"
    more = {"shared": shared, "shared_all": "--share-all-embeddings " * joined, "size": size}
    return "".join(
        (_TRANSFORMER if name == "transformer" else _RECURRENT).format(name=name, baseline=baseline, **more)
        for name, baseline in BASELINES.items()
        if name in needed
    )


def _values(name: str, plan: Plan | None = None) -> dict:
    """Settings of a system, or of a control, which is called after its system (of a plan, if it is there) and trees."""
    of, _, kind = name.partition("-")
    known = SYSTEMS[of]
    trees = kind or ("parser" if known.parsed else "")
    if plan and of in plan.systems:
        known = plan.systems[of]
    return {"family": known.family, "options": known.options, **({"trees": trees} if trees else {})}
