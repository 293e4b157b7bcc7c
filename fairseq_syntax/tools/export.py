"""fairseq-syntax export: write a model that translates without this package.

Models with the parameters of fairseq's Transformer can be exported: transformer (also of a multi-task corpus) and
planted_transformer. For fairseq, the folder holds model.pt and dictionaries, which fairseq-generate and -interactive
take as they are. For CTranslate2, it is a model of that library, which needs neither fairseq nor torch, as a folder for
fairseq-syntax translate. Either includes the text recipe of the data and the options of the search. Some sentences of
the validation set are translated, and both models score these translations.

examples:
  fairseq-syntax export data-bin --path checkpoints/planted/checkpoint_best.pt --to ctranslate2 --output served
  fairseq-syntax export study --system planted --to ctranslate2 --quantization int8 --output served
  fairseq-syntax export agreement-planted --to fairseq --output plain
  fairseq-syntax translate served < news.en > news.sw
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ..files import staged_directory
from . import verb

COMPARED = 100
"""Number of sentences of the validation set whose translations both models score."""
TOLERANCE = 1e-3
"""Largest difference, in nats per token, that single precision explains; docs/serving.md has measurements."""
_SEARCH = {
    "beam": "beam_size",
    "lenpen": "length_penalty",
    "min_len": "min_decoding_length",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
}
"""Search option of fairseq -> that of CTranslate2, except for the longest translation."""
_SYMBOLS = {"<s>", "<pad>", "</s>"}  # a word of this spelling is unknown, as in the hub


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    verb.add_system(parser)
    add("--to", required=True, choices=["fairseq", "ctranslate2"], help="program that will translate")
    add("--output", required=True, metavar="FOLDER", help="folder to write")
    formats = ["int8", "int16", "float16", "bfloat16"]
    add("--quantization", choices=formats, help="number format of CTranslate2's parameters (default: single precision)")
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_model_arguments(parser, args)
    if args.quantization and args.to != "ctranslate2":
        parser.error("--quantization needs --to ctranslate2")


def write_plain(loaded, folder: Path) -> None:
    """Write model.pt and dictionaries, which fairseq loads without this package, into a folder."""
    import torch
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.tasks.translation import TranslationConfig
    from omegaconf import OmegaConf

    from ..checkpoints import load_state
    from ..decoding.search import write_search
    from ..options import as_namespace
    from ..task import SyntaxTranslationConfig

    task, options = loaded.task, as_namespace(load_state(loaded.path)["cfg"].model)
    own = vars(SyntaxTranslationConfig()).keys() - vars(TranslationConfig()).keys()
    ours = [key for key in vars(options) if key in own or key.startswith(("planted_", "parser_"))]
    values = {key: value for key, value in vars(options).items() if key not in ours}
    arch = loaded.architecture.removeprefix("planted_")
    values |= {"arch": arch, "_name": arch, "user_dir": None, "data": "."}
    values |= {"task": "translation", "criterion": "label_smoothed_cross_entropy"}
    values |= {"encoder_embed_path": None, "decoder_embed_path": None}  # only needed to start training
    values |= {"source_lang": task.cfg.source_lang, "target_lang": task.cfg.target_lang}
    groups = OmegaConf.to_container(convert_namespace_to_omegaconf(argparse.Namespace(**values)), enum_to_str=True)
    groups["model"] = values
    groups["generation"] |= loaded.search
    # without the state of training
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    state = {"args": None, "cfg": groups, "optimizer_history": history, "extra_state": {}}
    torch.save({**state, "model": loaded.model.state_dict()}, folder / "model.pt")
    write_search(folder, loaded.search)
    languages = task.cfg.source_lang, task.cfg.target_lang
    for language, dictionary in zip(languages, (task.src_dict, task.tgt_dict), strict=True):
        dictionary.save(str(folder / f"dict.{language}.txt"))


def write_served(loaded, folder: Path, quantization: str | None = None) -> None:
    """Convert a model to CTranslate2 with that library's converter, into a folder.

    Raises ValueError: CTranslate2 does not support a layer or a search option.
    """
    import torch
    from ctranslate2.converters import FairseqConverter

    if unknown := loaded.search.keys() - _SEARCH.keys() - {"max_len_a", "max_len_b"}:
        raise ValueError(f"{loaded.path}: CTranslate2's search has no {', '.join(sorted(unknown))}; --to fairseq has")
    with TemporaryDirectory() as plain:
        write_plain(loaded, Path(plain))
        path = Path(plain, "model.pt")
        state = torch.load(path, weights_only=True)
        # the converter changes `args`
        torch.save({**state, "args": argparse.Namespace(**state["cfg"]["model"])}, path)
        try:
            FairseqConverter(str(path), plain).convert(f"{plain}/served", quantization=quantization)
        except ValueError as error:
            raise ValueError(f"{loaded.path}: {' '.join(str(error).split())}; --to fairseq takes it") from None
        shutil.copytree(f"{plain}/served", folder, dirs_exist_ok=True)
    config = folder / "config.json"
    more = {"max_positions": loaded.max_positions, "generation": loaded.search}
    config.write_text(json.dumps({**json.loads(config.read_text(encoding="utf-8")), **more}), encoding="utf-8")


def export(loaded, folder: Path, to: str, quantization: str | None = None) -> None:
    """Write a loaded model, and the recipe of its text, into a folder; see `write_plain` and `write_served`.

    Raises ValueError: these programs do not have its architecture.
    """
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    name = ARCH_MODEL_NAME_REGISTRY.get(loaded.architecture, loaded.architecture)
    if name not in ("transformer", "planted_transformer"):
        raise ValueError(f"{loaded.path}: {name} cannot be exported, because {to} has no such network")
    if to == "fairseq":
        write_plain(loaded, folder)
    else:
        write_served(loaded, folder, quantization)
    if recipe := getattr(loaded.task, "text", None):
        recipe.write(folder)


def compare_scores(loaded, folder: Path, to: str) -> tuple[float, str]:
    """Compare the exported with the loaded model: largest difference of scores in nats per token, and a message.

    Both score the loaded model's translations of the first sentences of the validation set. Raises ValueError: the set
    is damaged.
    """
    import numpy as np  # not at the top, because --help does not need it

    from .loaded_model import load_model, to_pieces

    try:
        loaded.task.load_dataset("valid")
    except FileNotFoundError as error:
        if not str(error).startswith("Dataset not found"):
            raise
        return 0.0, f"not compared with the checkpoint: {loaded.task.cfg.data} has no validation set"
    dataset = loaded.task.dataset("valid")
    sources = [dataset[number]["source"] for number in range(min(COMPARED, len(dataset)))]
    search = {"beam": 1, "max_len_a": 1.5, "max_len_b": 10}  # any translations will do
    best = loaded.translate(loaded.as_dataset(sources), [len(ids) for ids in sources], **search)
    hyps = [hyp["tokens"].cpu() for hyp in best]
    if to == "ctranslate2":
        pieces = [
            [to_pieces(loaded.task.src_dict, ids) for ids in sources],
            [to_pieces(loaded.task.tgt_dict, h) for h in hyps],
        ]
        after = [sum(result.log_probs) for result in Served(folder, True, "default").translator.score_batch(*pieces)]
    else:
        after = load_model(str(folder / "model.pt"), str(folder), cpu=True).total_scores(sources, hyps, 4000)
    lengths = np.array([len(ids) for ids in hyps])
    before, after = loaded.total_scores(sources, hyps, 4000) / lengths, np.array(after) / lengths
    worst = int(abs(before - after).argmax())
    apart = float(abs(before - after)[worst])
    return apart, (
        f"scores of {len(hyps)} translations differ by at most {apart:.1e} nats per token (sentence {worst} of valid: "
        f"{before[worst]:.4f} by the checkpoint, {after[worst]:.4f} as exported)"
    )


class Served:
    """A CTranslate2 model, with the methods of the hub interface.

    Args:
        folder: folder from `write_served`.
        cpu: whether to use the CPU even if there is a GPU.
        on_cpu: number format on a CPU; "default" is that of the folder.
    """

    def __init__(self, folder: str | Path, cpu: bool = False, on_cpu: str = "int8"):
        import ctranslate2

        from ..data.text.recipe import read_recipe

        kinds = {"cpu": on_cpu, "cuda": "default"}
        self.translator = ctranslate2.Translator(str(folder), device="cpu" if cpu else "auto", compute_type=kinds)
        self.folder, self.recipe = Path(folder), read_recipe(folder)
        config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        self.generation = config.get("generation", {})
        self.max_positions = tuple(config.get("max_positions", (1024, 1024)))  # EOS included, as in the hub

    def encode(self, lines: Sequence[str]) -> list[list[str]]:
        """The pieces of each line, with EOS; lines are raw text if there is a recipe."""
        encode = self.recipe.source.encode if self.recipe else str
        pieces = ([piece if piece not in _SYMBOLS else "<unk>" for piece in encode(line).split()] for line in lines)
        return [[*line, "</s>"] for line in pieces]

    def decode(self, pieces: Sequence[str]) -> str:
        """The text of a translation in pieces."""
        line = " ".join(pieces)
        return self.recipe.target.decode(line) if self.recipe else line

    def generate(self, sources: Sequence[Sequence[str]], **search) -> list[list[dict]]:
        """Best hypotheses of sentences, as the hub interface returns them; `search` overrides the model's options."""
        search = {"beam": 5, "max_len_a": 0, "max_len_b": 200, **self.generation, **search}
        longest = int(search["max_len_a"] * max(map(len, sources), default=0) + search["max_len_b"])
        results = self.translator.translate_batch(
            [list(source[:-1]) for source in sources],
            max_batch_size=32,  # of similar lengths
            max_decoding_length=min(longest, self.max_positions[1] - 1),
            **{theirs: search[ours] for ours, theirs in _SEARCH.items() if ours in search},
        )
        return [[{"tokens": result.hypotheses[0]}] for result in results]


def run(args: argparse.Namespace) -> None:
    from .loaded_model import load_model

    verb.find_model(args)
    for used in (args.data, args.path):
        if Path(used).resolve().is_relative_to(Path(args.output).resolve()):
            raise ValueError(f"--output {args.output}: would replace {used}; name a new folder")
    if Path(args.output).exists() and not args.overwrite:
        raise FileExistsError(f"{args.output}: exists already; give another name, or --overwrite to replace the folder")
    loaded = load_model(args.path, args.data, cpu=True)
    with staged_directory(args.output) as folder:
        export(loaded, folder, args.to, args.quantization)
        apart, message = compare_scores(loaded, folder, args.to)
        if not apart <= TOLERANCE and not args.quantization:
            raise ValueError(f"{args.path}: {message}, more than rounding explains; nothing was written")
    print(f"{args.output}: {message}", file=sys.stderr)


main = verb.Verb(__doc__, add_arguments, run, check)
