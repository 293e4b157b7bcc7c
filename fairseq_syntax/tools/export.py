"""fairseq-syntax export: write a model that translates without this package.

Models with the parameters of fairseq's Transformer can be exported: transformer (also of a multi-task corpus) and
planted_transformer; for CTranslate2 also tag_transformer, whose tokens need their tags. For fairseq, the folder holds
model.pt and dictionaries, which fairseq-generate and -interactive take as they are. For CTranslate2, it is a model of
that library, which needs neither fairseq nor torch. Either includes the text recipe of the data, and fairseq-syntax
translate takes the folder. Some sentences of the validation set are translated before and after, and compared.

examples:
  fairseq-syntax export data-bin --path checkpoints/planted/checkpoint_best.pt --to ctranslate2 --output served
  fairseq-syntax export study --system planted --to ctranslate2 --quantization int8 --output served
  fairseq-syntax export agreement-planted --to fairseq --output plain
  fairseq-syntax translate served < news.en > news.sw
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from ..files import staged_directory
from ..trees.subwords import encode_words
from . import verb

COMPARED = 100
"""Sentences of the validation set that are translated before and after."""
LEAST_EQUAL = 0.98
"""The share of equal translations below which single precision is an error."""
_REASONS = {
    "pascal_transformer": "its heads multiply scores by a density around the parent",
    "lisa_transformer": "one of its heads is a biaffine parser",
    "dasa_transformer": "its heads change scores by tree distance",
    "tag_transformer": "its encoder embeds tags, too; use --to ctranslate2",
}
FEATURE = "\uffe8"
"""What CTranslate2 has between a token and its tags."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    verb.add_system(parser)
    add("--to", required=True, choices=["fairseq", "ctranslate2"], help="program that will translate")
    add("--output", required=True, metavar="FOLDER", help="folder to write")
    add(
        "--quantization",
        choices=["int8", "int16", "float16", "bfloat16"],
        help="number format of CTranslate2's parameters (default: single precision)",
    )
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_model_arguments(parser, args)
    if args.quantization and args.to != "ctranslate2":
        parser.error("--quantization needs --to ctranslate2")


def stock_options(loaded, more: Sequence[str] = ()) -> argparse.Namespace:
    """The options with which fairseq builds the model of a checkpoint.

    Args:
        loaded: a model that has the parameters of fairseq's Transformer.
        more: models that are as good.

    Raises ValueError: it has not.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY
    from fairseq.tasks.translation import TranslationConfig

    from ..checkpoints import load_state
    from ..task import SyntaxTranslationConfig

    name = ARCH_MODEL_NAME_REGISTRY.get(loaded.architecture, loaded.architecture)
    if name not in ("transformer", "planted_transformer", *more):
        why = _REASONS.get(name, "its network is not fairseq's Transformer")
        raise ValueError(f"{loaded.path}: {name} cannot be exported, because {why}")
    options = load_state(loaded.path)["cfg"].model
    if not isinstance(options, argparse.Namespace):
        raise ValueError(f"{loaded.path}: was trained by fairseq-hydra-train; train with fairseq-train to export")
    own = {each.name for each in fields(SyntaxTranslationConfig)} - {each.name for each in fields(TranslationConfig)}
    values = {key: value for key, value in vars(options).items() if key not in own and not key.startswith("planted_")}
    values |= {"arch": loaded.architecture.replace("planted_transformer", "transformer"), "user_dir": None}
    values |= {"task": "translation", "criterion": "label_smoothed_cross_entropy"}
    values |= {"encoder_embed_path": None, "decoder_embed_path": None}  # where training began; not needed any more
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
        name: OmegaConf.to_container(group, enum_to_str=True) if OmegaConf.is_config(group) else group
        for name, group in cfg.items()
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
    from ..data.arrays import manifest_path

    task = loaded.task
    control = getattr(task, "control_tokens", ())
    if to == "fairseq":
        write_plain(loaded, folder)
        if control:
            path = manifest_path(folder, task.cfg.source_lang, task.cfg.target_lang)
            path.write_text(json.dumps({**task.manifest, "splits": {}, "sha256": {}}), encoding="utf-8")
    else:
        with contextlib.redirect_stdout(sys.stderr), _converter(loaded) as converter:
            converter.convert(str(folder), quantization=quantization, force=True)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config |= {"control_tokens": control, "max_positions": loaded.max_positions}
        (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    recipe = getattr(task, "text", None)
    if recipe is not None:
        recipe.write(folder)


@contextlib.contextmanager
def _converter(loaded):
    """CTranslate2's converter of a loaded model."""
    from ctranslate2.converters import FairseqConverter

    cfg = loaded.task.cfg
    if hasattr(loaded.model.encoder.embed_tokens, "tags"):
        yield _tag_converter(loaded)
        return
    with tempfile.TemporaryDirectory() as plain:
        write_plain(loaded, Path(plain), as_namespace=True)
        yield FairseqConverter(str(Path(plain, "model.pt")), plain, cfg.source_lang, cfg.target_lang)


def _tag_converter(loaded):
    """A converter of a model whose encoder embeds tags: they are CTranslate2's source features, side by side."""
    from ctranslate2.converters import fairseq as parts
    from ctranslate2.converters.converter import Converter
    from ctranslate2.specs import common_spec
    from torch import nn

    encoder, decoder, task = loaded.model.encoder, loaded.model.decoder, loaded.task
    tagged, names = encoder.embed_tokens, list(encoder.embed_tokens.tags)
    options = stock_options(loaded, ("tag_transformer",))
    options.arch = options.arch.removeprefix("tag_")

    class TagConverter(Converter):
        """CTranslate2's, of each part."""

        def _load(self):
            for parameter in loaded.model.parameters():
                parameter.requires_grad_(False)
            spec = parts._get_model_spec(options)
            encoder.embed_tokens = nn.Embedding.from_pretrained(tagged.tokens.weight[:, : tagged.token_dim])
            try:
                parts.set_transformer_encoder(spec.encoder, encoder)
            finally:
                encoder.embed_tokens = tagged
            parts.set_transformer_decoder(spec.decoder, decoder)
            spec.register_source_vocabulary(parts._get_vocab(task.source_dictionary))
            for name in names:
                features = common_spec.EmbeddingsSpec()
                # all embeddings are scaled there, tags are not
                features.weight = (tagged.tags[name].weight / encoder.embed_scale).numpy()
                spec.encoder.embeddings.append(features)
                spec.register_source_vocabulary(parts._get_vocab(task.syntax_dictionary(name)))
            spec.register_target_vocabulary(parts._get_vocab(task.target_dictionary))
            spec.config.decoder_start_token, spec.config.add_source_eos = spec.config.eos_token, True
            return spec

    return TagConverter()


def pieces_with_tags(loaded, dataset, number: int) -> list[str]:
    """The pieces of a sentence of a split, with their tags as CTranslate2 reads them if the model embeds tags."""
    from ..data.collating import INPUTS
    from .models import pieces_of

    pieces = pieces_of(loaded.task.src_dict, dataset.src[number])
    for name in getattr(loaded.model.encoder.embed_tokens, "tags", ()):
        dictionary = loaded.task.syntax_dictionary(name)
        tags = INPUTS[name].make(dataset[number]["syntax"])[:-1]
        pieces = [f"{piece}{FEATURE}{dictionary[int(tag)]}" for piece, tag in zip(pieces, tags, strict=True)]
    return pieces


def compared(loaded, folder: Path, to: str) -> tuple[int, int] | None:
    """How many of the first sentences of the validation set both translate alike, and of how many; None: no such set.

    Args:
        folder: of the exported model;  to: as for `export`.

    Raises ValueError: the set is damaged.
    """
    import torch
    from fairseq.data.indexed_dataset import dataset_exists
    from fairseq.utils import split_paths

    from .models import load, pieces_of

    cfg = loaded.task.cfg
    pair = cfg.source_lang, cfg.target_lang
    prefixes = [Path(split_paths(cfg.data)[0], f"valid.{one}-{other}.{pair[0]}") for one, other in (pair, pair[::-1])]
    if not any(dataset_exists(str(prefix), None) for prefix in prefixes):
        return None
    dataset = loaded.load_split("valid")
    numbers = range(min(COMPARED, len(dataset)))
    sources = [pieces_with_tags(loaded, dataset, number) for number in numbers]
    search = {"beam": 5, "max_len_a": 1.5, "max_len_b": 10}

    def by_fairseq(model, split) -> list[list[str]]:
        some = torch.utils.data.Subset(split, numbers)
        some.collater = split.collater
        hyps = model.translate(some, [len(split.src[i]) for i in numbers], **search)
        return [pieces_of(model.task.tgt_dict, hyp["tokens"]) for hyp in hyps]

    before = by_fairseq(loaded, dataset)
    if to == "ctranslate2":
        after = [hyps[0] for hyps in Served(folder).search(sources, **search)]
    else:
        plain = load(str(folder / "model.pt"), str(folder), cpu=True)
        after = by_fairseq(plain, dataset)
    return sum(one == other for one, other in zip(before, after, strict=True)), len(numbers)


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
        self.folder, self.recipe = Path(folder), read_recipe(folder)
        config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        self.control_tokens = config.get("control_tokens", ())
        self.max_positions = tuple(config.get("max_positions", (1024, 1024)))  # EOS included, as in the hub

    def encode(self, lines: Sequence[str]) -> list[list[str]]:
        """The pieces of lines, raw ones if there is a recipe, and EOS. Raises ValueError: the model reads tags, too."""
        if (self.folder / "source_1_vocabulary.json").exists():
            raise ValueError(
                f"{self.folder}: reads tags; give CTranslate2 pieces as word{FEATURE}label (docs/serving.md)"
            )
        encode = self.recipe.source.encode if self.recipe else str
        return [[*encode_words(line, self.control_tokens, encode).split(), "</s>"] for line in lines]

    def decode(self, pieces: Sequence[str]) -> str:
        """The line of the pieces of a translation."""
        line = " ".join(pieces)
        return self.recipe.target.decode(line) if self.recipe else line

    def search(
        self, sources: Sequence[Sequence[str]], beam: int, max_len_a: float, max_len_b: int
    ) -> list[list[list[str]]]:
        """The hypotheses of sentences without EOS, best first."""
        longest = int(max_len_a * (max(map(len, sources), default=0) + 1) + max_len_b)
        found = self.translator.translate_batch(
            [list(source) for source in sources],
            beam_size=beam,
            max_batch_size=2048,
            batch_type="tokens",
            max_decoding_length=min(longest, self.max_positions[1] - 1),
        )
        return [each.hypotheses for each in found]

    def generate(self, sources: Sequence[Sequence[str]], **search) -> list[list[dict]]:
        """The best hypotheses, as the hub interface gives them."""
        return [[{"tokens": hyps[0]}] for hyps in self.search([source[:-1] for source in sources], **search)]


def run(args: argparse.Namespace) -> None:
    from .models import load

    if args.experiment:
        from ..experiment import Experiment

        args.data, args.path = Experiment(args.data).model(args.system)
    if Path(args.output).exists() and not args.overwrite:
        raise FileExistsError(f"{args.output}: exists already; give another name, or --overwrite to replace the folder")
    loaded = load(args.path, args.data, cpu=True)
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
