"""Hub interface of the suite's models, which translates raw text and parses it for models that read trees."""

import os
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path

import fairseq.registry
import torch
from fairseq import hub_utils
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from . import pretrained
from .data.parsers import ParserOptions
from .decoding.search import read_search
from .registration import register
from .trees.subwords import without_joiners


class SyntaxHubInterface(hub_utils.GeneratorHubInterface):
    """fairseq's hub interface, with a parser: `translate` takes raw text."""

    def __init__(self, cfg, task, models):
        super().__init__(cfg, task, models)
        self.tokenizer = task.build_tokenizer(cfg.tokenizer)
        self.bpe = task.build_bpe(cfg.bpe)

    def parse(self, sentences):
        """Dependency tree of a sentence, or trees of a list of sentences, by the parser of `translate`."""
        if isinstance(sentences, str):
            return self.parse([sentences])[0]
        return self.task.live.parser.parse([without_joiners(self.tokenize(line).split()) for line in sentences])

    def translate(self, sentences, beam: int | None = None, verbose: bool = False, trees=None, **kwargs):
        """Translate a sentence, or a list of sentences, which are parsed together.

        Defaults of `beam` and other search options are those in generation.json beside the checkpoint, or fairseq's.
        `trees`, a `Sentence` or a list of them, replace the parser's. Raises ValueError: the model reads no trees, or
        the beam is too small.
        """
        if isinstance(sentences, str):
            return self.translate([sentences], beam, verbose, None if trees is None else [trees], **kwargs)[0]
        if beam is not None and (not isinstance(beam, int) or beam < 1):
            raise ValueError(f"beam={beam!r}: must be at least 1")
        hypotheses = self.generate(self._encode(sentences, trees), beam, verbose, **kwargs)
        return [self.decode(best[0]["tokens"]) if best else "" for best in hypotheses]

    def generate(
        self, tokenized_sentences, beam: int | None = None, verbose=False, skip_invalid_size_inputs=False, **kwargs
    ):
        """Hypotheses of encoded sentences, as in fairseq, with the trees that `encode` attached to the tensors.

        With `skip_invalid_size_inputs`, the list of a sentence that is too long is empty. Raises ValueError: `score`
        is called, which is for language models.
        """
        if kwargs.get("score_reference"):
            raise ValueError(
                "score: there are no reference translations; score those of binarized data: fairseq-generate "
                "--score-reference"
            )
        if torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1:
            return self.generate([tokenized_sentences], beam, verbose, skip_invalid_size_inputs, **kwargs)[0]
        _check_names(kwargs, {*vars(GenerationConfig()), *_GENERATE_OPTIONS} - {"prefix_size", "replace_unk"})
        beam = self.cfg.generation.beam if beam is None else beam
        hypotheses = [[] for _ in tokenized_sentences]
        fits = [i for i, ids in enumerate(tokenized_sentences) if len(ids) <= self.max_positions[0]]
        kept = fits if skip_invalid_size_inputs else range(len(hypotheses))
        if len(kept):
            if limit := self.cfg.dataset.max_tokens:  # of training; a longer sentence becomes a batch of its own
                self.cfg.dataset.max_tokens = max(limit, *(len(tokenized_sentences[i]) for i in kept))
            translated = super().generate([tokenized_sentences[i] for i in kept], beam, verbose, **kwargs)
            for i, best in zip(kept, translated, strict=True):
                hypotheses[i] = best
        return hypotheses

    def encode(self, sentence, tree=None):
        """Token ids of a sentence, or of a list of sentences, which are parsed together.

        The tensor carries the tree of the sentence, `tree` or the parser's; copies of the tensor do not.
        """
        if isinstance(sentence, str):
            return self._encode([sentence], None if tree is None else [tree])[0]
        return self._encode(sentence, tree)

    def _encode(self, sentences, trees):
        texts = [self.apply_bpe(self.tokenize(line)) for line in sentences]
        self.task.learn_source_words(texts)
        tokens = [self.binarize(text) for text in texts]
        self.task.attach_syntax(texts, tokens, trees)
        return tokens


_GENERATE_OPTIONS = "inference_step_args", "prefix_allowed_tokens_fn", "score_reference"


def _known_options() -> set[str]:
    """Names of options that `from_pretrained` may override: those of fairseq, and of the suite's models and tasks."""
    parser = ArgumentParser(conflict_handler="resolve")
    for model in {model for model in MODEL_REGISTRY.values() if issubclass(model, HubModel)}:
        model.add_args(parser)
    groups = [group.type for group in fields(FairseqConfig)]
    registered = [*TASK_DATACLASS_REGISTRY.values()]
    for registry in fairseq.registry.REGISTRIES.values():
        registered += registry["dataclass_registry"].values()
    options = [fields(kind) for kind in (*groups, *registered) if is_dataclass(kind)]
    names = {option.name for group in options for option in group} | set(vars(parser.parse_args([])))
    return names | set(fairseq.registry.REGISTRIES) | {group.name for group in fields(FairseqConfig)} | {"arch"}


def _check_names(names: Iterable[str], known: set[str]) -> None:
    """Raise TypeError for an unknown option, which fairseq would ignore."""
    for name in names:
        if name not in known:
            raise TypeError(f"{name}: no such option")


class HubModel:
    """Mixin of all models of the suite, for `from_pretrained`."""

    @classmethod
    def from_pretrained(cls, model_name_or_path, checkpoint_file="model.pt", data_name_or_path=".", **kwargs):
        """Load a model as a `SyntaxHubInterface`, as fairseq's `from_pretrained` does.

        `model_name_or_path` is a folder or, if there is no such folder, a bundled model, such as `agreement-pascal`.
        `data_name_or_path` is the data directory, for its dictionaries; `kwargs` override options: `parser`,
        `bpe_codes`, …; a new `parser` does not inherit the parser options of the checkpoint.

        Raises ValueError: files of a bundled model are damaged; FileNotFoundError: no such folder, model or data.
        """
        register()
        if Path(model_name_or_path).suffix == ".pt":
            folder, file = Path(model_name_or_path).parent, Path(model_name_or_path).name
            raise ValueError(f"{model_name_or_path}: give its folder, {str(folder)!r}, and checkpoint_file={file!r}")
        if not Path(model_name_or_path).exists() and "://" not in str(model_name_or_path):
            if model_name_or_path not in pretrained.names():
                known = ", ".join(pretrained.names())
                raise FileNotFoundError(f"{model_name_or_path}: no such folder or bundled model; choose from {known}")
            model_name_or_path = str(pretrained.folder(model_name_or_path))
        data = str(data_name_or_path)
        # fairseq takes paths that begin with a dot as relative to the model's folder
        paths = [Path(model_name_or_path, path) if path[:1] == "." else Path(path) for path in data.split(os.pathsep)]
        if "://" not in data and not all(path.exists() for path in paths):
            raise FileNotFoundError(f"{data}: no such data directory; give one with the dictionaries of the model")
        _check_names(kwargs, _known_options())
        if "parser" in kwargs:
            kwargs = {**{option.name: option.default for option in fields(ParserOptions)}, **kwargs}
        loaded = hub_utils.from_pretrained(model_name_or_path, checkpoint_file, data_name_or_path, **kwargs)
        if not hasattr(loaded["task"], "attach_syntax"):
            raise ValueError(
                f"{model_name_or_path}: does not translate; give the parser to a model that does, as "
                "parser='checkpoint', parser_model=…"
            )
        for name, value in read_search(Path(model_name_or_path, checkpoint_file.split(os.pathsep)[0]).parent).items():
            loaded["args"].generation[name] = kwargs.get(name, value)
        return SyntaxHubInterface(loaded["args"], loaded["task"], loaded["models"])
