"""A leaderboard's table of systems, read from TOML: what is trained on what, for how long, how it is scored."""

import argparse
import shlex
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import get_args, get_origin

import fairseq_syntax

EXAMPLES = Path(__file__).resolve().parents[1]
CHECKOUT = EXAMPLES.parent
# the plug-in; a copy of the examples takes the one that is installed
USER_DIR = CHECKOUT / "fairseq_syntax"
if not USER_DIR.is_dir():
    USER_DIR = Path(fairseq_syntax.__file__).parent
# linear: the head of each word is the one before it; ud: of a parser of Universal Dependencies
TREES = ("gold", "parser", "random", "linear", "ud")
# verb of a probe -> what it needs
VERBS = {"contrast": "pairs", "whatif": "pairs", "attachment": "gold", "unparsed": "inputs"}
_TYPES = {
    str: 'a text, such as "a"',
    int: "a whole number",
    bool: "true or false",
    tuple[str, ...]: 'a list of texts, such as ["a"]',
    tuple[int, ...]: "a list of whole numbers, such as [1]",
    dict[str, str]: 'a table of texts, such as { a = "b" }',
}


class BoardError(Exception):
    """The table, or what is there of an earlier run, is not what it should be. The message is for the user."""


@dataclass(frozen=True)
class Family:
    """What the systems of a family have in common.

    Fields:
        train: options of fairseq-train.
        generate: options of fairseq-generate.
        max_updates: where training ends if it does not end by itself; {updates} in `train`.
        annealed: whether the learning rate is zero there, so that training is then finished, not cut off.
        patience: validations without a better one after which it does; 0: something in `train` ends it.
        average: mean of so many last checkpoints, if validation BLEU says so; 0: the best checkpoint.
        data: data directory below the output folder; {trees} is replaced.
        characters: whether texts are characters, to be joined before they are scored.
        baseline: the system that the others are tested against, or none.
    """

    train: str
    generate: str
    max_updates: int
    annealed: bool = False
    patience: int = 0
    average: int = 0
    data: str = "data-bin-{trees}"
    characters: bool = False
    baseline: str = ""


@dataclass(frozen=True)
class Split:
    """A split to translate.

    Fields:
        subset: its name in the data directory.
        reference: text below the output folder, a sentence a line.
        source: the same in the other language, to tell sentences by their length, or none.
        labels: file with a label a line, to tell sentences by these as well, or none.
        challenge: challenge.tsv of the agreement corpus, below the output folder, or none.
    """

    subset: str
    reference: str
    source: str = ""
    labels: str = ""
    challenge: str = ""


@dataclass(frozen=True)
class Curve:
    """How translations get worse with the parses: a split that some systems translate with parses of another quality.

    Fields:
        split: whose sentences and reference these are.
        gold: its right parses, CoNLL-U below the output folder.
        parses: such files, and the subset of the data directory that has each.
        systems: those that read the parses, and their options of fairseq-generate for it.
    """

    split: str
    gold: str
    parses: dict[str, str]
    systems: dict[str, str]


@dataclass(frozen=True)
class Probe:
    """What trained models are asked besides translating the splits. $VARIABLES are those of the environment, and OUT.

    Fields:
        name: of the folder of its records.
        verb: contrast, whatif or attachment of fairseq-syntax, or unparsed: translate without a parse.
        pairs: folder of minimal pairs, for contrast and whatif.
        gold: treebank, for attachment.
        trees: file of trees for contrast, in the folder of the kind that a system reads; without one, Stanza parses.
        inputs: for unparsed: split -> text of its source, below the output folder.
        options: of the verb.
        of_families: further ones, by family.
        systems: that are asked; default: all.
    """

    name: str
    verb: str
    pairs: str = ""
    gold: str = ""
    trees: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    options: str = ""
    of_families: dict[str, str] = field(default_factory=dict)
    systems: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """A line of the table.

    Fields:
        name: in tables and names of files.
        family: by name.
        options: of fairseq-train, beyond the family's; $OUT is the output folder.
        trees: what it reads: one of TREES, or nothing.
        seeds: instead of the table's.
        paper: what its paper says it gains over the baseline, in BLEU, and where.
        control: a system that lacks its syntax alone, such as one with random trees; it is tested against that as well.
    """

    name: str
    family: str
    options: str
    trees: str = ""
    seeds: tuple[int, ...] = ()
    paper: str = ""
    control: str = ""


@dataclass(frozen=True)
class Board:
    """A table of systems.

    Fields:
        name: of the corpus; of the folder of results.
        path: of the file.
        prepare: script that makes the data, beside the file.
        default_trees: whose data directory systems that read no trees are trained on.
        hashed: files below the output folder that say what was trained on; globs.
        raw: language of references that are raw text, which translations are made, too, before they are scored
            (raw_text.py); nothing where they are in tokens.
        tokenize: sacrebleu's tokenizer, for BLEU.
        curve: over the quality of parses, or none.
        probes: see `Probe`.
    """

    name: str
    path: Path
    prepare: str
    hashed: tuple[str, ...]
    seeds: tuple[int, ...]
    splits: dict[str, Split]
    families: dict[str, Family]
    systems: dict[str, System]
    raw: str = ""
    tokenize: str = "none"
    default_trees: str = "gold"
    curve: Curve | None = None
    probes: dict[str, Probe] = field(default_factory=dict)

    def runs(self) -> list[tuple[System, int]]:
        """All (system, seed), a seed of every system before the next."""
        seeds = sorted({seed for system in self.systems.values() for seed in self.seeds_of(system)})
        return [(system, seed) for seed in seeds for system in self.systems.values() if seed in self.seeds_of(system)]

    def seeds_of(self, system: System) -> tuple[int, ...]:
        return system.seeds or self.seeds


def add_places(parser: argparse.ArgumentParser) -> None:
    """A table, and where its files are."""
    add = parser.add_argument
    add("table", type=Path, metavar="TABLE", help="table of systems, such as examples/leaderboard/agreement.toml")
    add("--output", type=Path, metavar="DIR", help="data, checkpoints, logs (default: outputs/leaderboard/CORPUS)")
    add("--results", type=Path, metavar="DIR", help="records and translations (default: docs/results/CORPUS)")


def places(board: Board, args: argparse.Namespace) -> tuple[Path, Path]:
    """The output folder and the folder of results."""
    out = args.output or CHECKOUT / "outputs" / "leaderboard" / board.name
    results = args.results or CHECKOUT / "docs" / "results" / board.name
    return out.resolve(), results.resolve()


def _fits(value: object, kind: type) -> bool:
    """Whether a value of TOML is of the type of a field."""
    if isinstance(value, list):
        return get_origin(kind) is tuple and all(type(each) is get_args(kind)[0] for each in value)
    if isinstance(value, dict):
        return get_origin(kind) is dict and all(type(each) is get_args(kind)[1] for each in value.values())
    return type(value) is kind  # `true` is a number to isinstance


def _build(kind: type, where: str, values: object, **more):
    """A dataclass from a table of the file; unknown and missing keys, and values of another type, are named."""
    if not isinstance(values, dict):
        raise BoardError(f"{where}: must be a table, such as {{ {fields(kind)[0].name} = … }}")
    known = {field.name for field in fields(kind)}
    unknown = sorted(values.keys() - (known - more.keys()))
    if unknown:
        raise BoardError(
            f"{where}: {unknown[0]} is not a setting; choose among {', '.join(sorted(known - more.keys()))}"
        )
    kinds = {field.name: field.type for field in fields(kind)}
    for key, value in values.items():
        if not _fits(value, kinds[key]):
            raise BoardError(f"{where}: {key} = {value!r}: give {_TYPES[kinds[key]]}")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        return kind(**values, **more)
    except TypeError as error:
        raise BoardError(f"{where}: {str(error).split('__init__() ')[-1]}") from None


def _inherit(path: Path, families: dict) -> None:
    """Give every family with `like` the settings of that one, which is above it, that it does not set itself."""
    for name, values in families.items():
        like = str(values.pop("like", name)) if isinstance(values, dict) else name
        if not isinstance(families.get(like), dict) or "like" in families[like]:
            known = ", ".join(families)
            raise BoardError(f"{path}: families.{name}: like {like}; choose among {known}, above if it is like another")
        families[name] = {**families[like], **values}


def read_board(path: Path) -> Board:
    """Read a table.

    Raises:
        BoardError: it cannot be read, or says something that does not fit; the message names the place.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BoardError(f"{path}: {error}") from None
    for key in ("splits", "families", "systems", "probes"):
        if not isinstance(content.get(key, {}), dict):
            raise BoardError(f"{path}: {key} = {content[key]!r}: give a table, [{key}]")
    _inherit(path, content.get("families", {}))
    parts = {}
    for key, kind in (("splits", Split), ("families", Family), ("systems", System), ("probes", Probe)):
        parts[key] = {
            name: _build(kind, f"{path}: {key}.{name}", values, **({"name": name} if kind in (System, Probe) else {}))
            for name, values in content.pop(key, {}).items()
        }
    curve = content.pop("curve", None)
    if curve is not None:
        parts["curve"] = _build(Curve, f"{path}: curve", curve)
    board = _build(Board, str(path), content, path=path, **parts)
    for name, family in board.families.items():
        _check_family(f"{path}: families.{name}", family)
    for system in board.systems.values():
        _check_system(board, system)
    for probe in board.probes.values():
        _check_probe(board, probe)
    if board.curve and (
        board.curve.split not in board.splits or not board.curve.systems.keys() <= board.systems.keys()
    ):
        raise BoardError(f"{path}: curve: its split and its systems must be among those of the table")
    for options in board.curve.systems.values() if board.curve else ():
        _check_options(f"{path}: curve", options)
    if board.default_trees not in TREES:
        raise BoardError(f"{path}: default_trees = {board.default_trees!r}; choose among {', '.join(TREES)}")
    if "valid" not in board.splits:
        raise BoardError(f"{path}: splits.valid is missing; checkpoints are chosen on it")
    return board


def _check_family(where: str, family: Family) -> None:
    for options in (family.train, family.generate):
        _check_options(where, options)
    if set("{}") & set(family.data.replace("{trees}", "")):
        raise BoardError(f"{where}: data = {family.data!r}: has other braces than {{trees}}")


def _check_system(board: Board, system: System) -> None:
    where = f"{board.path}: systems.{system.name}"
    if system.family not in board.families:
        raise BoardError(f"{where}: family {system.family}; choose among {', '.join(board.families)}")
    if system.trees not in ("", *TREES):
        raise BoardError(f"{where}: trees = {system.trees!r}; choose among {', '.join(TREES)}, or leave it out")
    _check_options(where, system.options)
    if system.control and system.control not in board.systems:
        raise BoardError(f"{where}: control {system.control} is not among the systems")
    if system.control and system.control in {family.baseline for family in board.families.values()}:
        raise BoardError(f"{where}: control {system.control} is a baseline, which others are compared with anyway")
    baseline = board.families[system.family].baseline
    if baseline and baseline not in board.systems:
        raise BoardError(f"{board.path}: families.{system.family}: baseline {baseline} is not among the systems")


def _check_probe(board: Board, probe: Probe) -> None:
    where = f"{board.path}: probes.{probe.name}"
    if probe.verb not in VERBS:
        raise BoardError(f"{where}: verb = {probe.verb!r}; choose among {', '.join(VERBS)}")
    needed = VERBS[probe.verb]
    if not getattr(probe, needed):
        raise BoardError(f"{where}: {needed} is missing; {probe.verb} needs it")
    for what, names, known in (
        ("systems", probe.systems, board.systems),
        ("of_families", probe.of_families, board.families),
        ("inputs", probe.inputs, board.splits),
    ):
        for name in names:
            if name not in known:
                raise BoardError(f"{where}: {what}: {name}; choose among {', '.join(known)}")
    for options in (probe.options, *probe.of_families.values()):
        _check_options(where, options)


def _check_options(where: str, options: str) -> None:
    try:
        shlex.split(options)
    except ValueError as error:
        raise BoardError(f"{where}: options: {error}") from None
