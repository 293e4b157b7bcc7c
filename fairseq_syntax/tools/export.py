"""fairseq-syntax export: write a model that translates without this package.

What has the parameters of fairseq's Transformer is exported: transformer (of a multi-task corpus, too) and
planted_transformer. For fairseq, the folder holds model.pt and dictionaries, which fairseq-generate and -interactive
take as they are. For CTranslate2, it is a model of that library, which needs neither fairseq nor torch. The text recipe
of the data goes with either, and fairseq-syntax translate takes the folder. Some sentences of the validation set are
translated before and after, and compared.

examples:
  fairseq-syntax export data-bin --path checkpoints/planted/checkpoint_best.pt --to ctranslate2 --output served
  fairseq-syntax export study --system planted --to ctranslate2 --quantization int8 --output served
  fairseq-syntax export agreement-planted --to fairseq --output plain
  fairseq-syntax translate served < news.en > news.sw
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from ..files import staged_directory
from . import verb

COMPARED = 100
"""Sentences of the validation set that are translated before and after."""
LEAST_EQUAL = 0.98
"""The share of equal translations below which single precision is an error."""
_REASONS = {
    "pascal_transformer": "its heads multiply scores by a density around the parent",
    "lisa_transformer": "one of its heads is a biaffine parser",
    "dasa_transformer": "its heads change scores by tree distance",
    "sdatt_transformer": "its decoder attends by tree distance",
    "tag_transformer": "its encoder embeds tags, too",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    verb.add_system(parser)
    add("--to", required=True, choices=["fairseq", "ctranslate2"], help="what is to translate")
    add("--output", required=True, metavar="FOLDER", help="folder to write")
    add(
        "--quantization",
        choices=["int8", "int16", "float16", "bfloat16"],
        help="of parameters, by CTranslate2 (default: single precision)",
    )
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_model_arguments(parser, args)
    if args.quantization and args.to != "ctranslate2":
        parser.error("--quantization needs --to ctranslate2")


def stock_options(loaded) -> argparse.Namespace:
    """The options with which fairseq builds the model of a checkpoint.

    Args:
        loaded: a model that has the parameters of fairseq's Transformer.

    Raises ValueError: it has not.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY
    from fairseq.tasks.translation import TranslationConfig

    from ..checkpoints import load_state
    from ..task import SyntaxTranslationConfig

    name = ARCH_MODEL_NAME_REGISTRY.get(loaded.architecture, loaded.architecture)
    if name not in ("transformer", "planted_transformer"):
        why = _REASONS.get(name, "its network is not fairseq's Transformer")
        raise ValueError(f"{loaded.path}: {name} cannot be exported, because {why}")
    options = load_state(loaded.path)["cfg"].model
    if not isinstance(options, argparse.Namespace):
        raise ValueError(f"{loaded.path}: of fairseq-hydra-train; train it with fairseq-train to export it")
    own = {each.name for each in fields(SyntaxTranslationConfig)} - {each.name for each in fields(TranslationConfig)}
    values = {key: value for key, value in vars(options).items() if key not in own and not key.startswith("planted_")}
    values |= {"arch": loaded.architecture.replace("planted_transformer", "transformer"), "user_dir": None}
    values |= {"task": "translation", "criterion": "label_smoothed_cross_entropy"}
    values |= {"source_lang": loaded.task.cfg.source_lang, "target_lang": loaded.task.cfg.target_lang, "data": "."}
    return argparse.Namespace(**values)


def write_plain(loaded, folder: Path, as_namespace: bool = False) -> None:
    """Write model.pt and dictionaries, which fairseq loads without this package, into a folder.

    Args:
        as_namespace: write options as older checkpoints have them, and as CTranslate2 reads them; torch refuses to load
            these where fairseq is not repaired.
    """
    import torch
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import OmegaConf

    options = stock_options(loaded)
    cfg = convert_namespace_to_omegaconf(options)
    groups = {
        name: OmegaConf.to_container(cfg[name], enum_to_str=True) for name in cfg if name != "model" and cfg[name]
    }
    groups["model"] = {**vars(options), "_name": options.arch}
    # of training, of which nothing is kept
    history = {"criterion_name": "LabelSmoothedCrossEntropyCriterion", "optimizer_name": "FairseqAdam"}
    state = {
        "args": options if as_namespace else None,
        "cfg": None if as_namespace else groups,
        "model": loaded.model.state_dict(),
        "optimizer_history": [{**history, "lr_scheduler_state": {}, "num_updates": 0}],
        "extra_state": {},
    }
    torch.save(state, folder / "model.pt")
    languages = loaded.task.cfg.source_lang, loaded.task.cfg.target_lang
    for language, dictionary in zip(languages, (loaded.task.src_dict, loaded.task.tgt_dict), strict=True):
        dictionary.save(str(folder / f"dict.{language}.txt"))


def export(loaded, folder: Path, to: str, quantization: str | None = None) -> None:
    """Write a loaded model, and the recipe of its text, into a new folder.

    Args:
        to: fairseq or ctranslate2.
        quantization: of CTranslate2's parameters; None: single precision.

    Raises ValueError: what is to translate cannot compute it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        plain = folder if to == "fairseq" else Path(temporary)
        write_plain(loaded, plain, as_namespace=to == "ctranslate2")
        if to == "ctranslate2":
            from ctranslate2.converters import FairseqConverter

            cfg = loaded.task.cfg
            converter = FairseqConverter(str(plain / "model.pt"), str(plain), cfg.source_lang, cfg.target_lang)
            with contextlib.redirect_stdout(sys.stderr):
                converter.convert(str(folder), quantization=quantization, force=True)
    recipe = getattr(loaded.task, "text", None)
    if recipe is not None:
        recipe.write(folder)


def compared(loaded, folder: Path, to: str) -> tuple[int, int] | None:
    """How many of the first sentences of the validation set both translate alike, and of how many; None: no such set.

    Args:
        folder: of the exported model;  to: as for `export`.
    """
    from fairseq.data import Dictionary

    from .models import load, pieces_of

    try:
        dataset = loaded.load_split("valid")
    except ValueError:
        return None
    ids = [dataset.src[i] for i in range(min(COMPARED, len(dataset)))]
    sources = [pieces_of(loaded.task.src_dict, each) for each in ids]
    search = {"beam": 5, "max_len_a": 1.5, "max_len_b": 10}

    def by_fairseq(model, dictionary: Dictionary) -> list[list[str]]:
        hyps = model.translate(model.as_dataset(ids), [len(each) for each in ids], **search)
        return [pieces_of(dictionary, hyp["tokens"]) for hyp in hyps]

    before = by_fairseq(loaded, loaded.task.tgt_dict)
    if to == "ctranslate2":
        after = [hyps[0] for hyps in Served(folder).search(sources, **search)]
    else:
        plain = load(str(folder / "model.pt"), str(folder), cpu=True)
        after = by_fairseq(plain, plain.task.tgt_dict)
    return sum(one == other for one, other in zip(before, after, strict=True)), len(ids)


class Served:
    """A folder that CTranslate2 translates with, which takes and gives what the hub interface does.

    Args:
        folder: from `export`.
        cpu: whether to leave a GPU alone.
    """

    def __init__(self, folder: str | Path, cpu: bool = False):
        import ctranslate2

        from ..data.text.recipe import read_recipe

        self.translator = ctranslate2.Translator(str(folder), device="cpu" if cpu else "auto")
        self.recipe = read_recipe(folder)
        self.max_positions = (1024, 1024)

    def encode(self, lines: Sequence[str]) -> list[list[str]]:
        """The pieces of lines: raw ones if there is a recipe."""
        return [(self.recipe.source.encode(line) if self.recipe else line).split() for line in lines]

    def decode(self, pieces: Sequence[str]) -> str:
        """The line of the pieces of a translation."""
        line = " ".join(pieces)
        return self.recipe.target.decode(line) if self.recipe else line

    def search(
        self, sources: Sequence[Sequence[str]], beam: int, max_len_a: float, max_len_b: int
    ) -> list[list[list[str]]]:
        """The hypotheses of sentences, best first."""
        longest = int(max_len_a * (max(map(len, sources), default=0) + 1) + max_len_b)
        found = self.translator.translate_batch(
            [list(source) for source in sources],
            beam_size=beam,
            max_batch_size=2048,
            batch_type="tokens",
            max_decoding_length=longest,
        )
        return [each.hypotheses for each in found]

    def generate(self, sources: Sequence[Sequence[str]], **search) -> list[list[dict]]:
        """The best hypotheses, as the hub interface gives them."""
        return [[{"tokens": hyps[0]}] for hyps in self.search(sources, **search)]


def run(args: argparse.Namespace) -> None:
    from .models import load

    if args.experiment:
        from ..experiment import Experiment

        args.data, args.path = Experiment(args.data).model(args.system)
    if Path(args.output).exists() and not args.overwrite:
        raise FileExistsError(f"{args.output}: exists already; give another name, or --overwrite to replace the folder")
    loaded = load(args.path, args.data, args.cpu)
    with staged_directory(args.output) as folder:
        export(loaded, folder, args.to, args.quantization)
        equal = compared(loaded, folder, args.to)
        if equal is None:
            said = f"not compared with the checkpoint: {args.data} has no validation set"
        else:
            said = f"{equal[0]} of {equal[1]} translations equal those of the checkpoint"
            if equal[0] < LEAST_EQUAL * equal[1] and not args.quantization:
                raise ValueError(f"{args.path}: only {said}; nothing was written")
    print(f"{args.output}: {said}", file=sys.stderr)


main = verb.Verb(__doc__, add_arguments, run, check)
