"""Trained models, loaded to look inside: sentences in, scores and translations out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line
from torch import Tensor

import fairseq_syntax  # noqa: F401  (registers the models)

from .. import pretrained
from ..checkpoints import architecture_of, build, load_state
from ..data.arrays import read_manifest
from ..data.parsers import ParserOptions
from ..progress import progress_bar
from ..trees.conllu import Sentence
from ..trees.subwords import SPACE, SubwordType, join_subwords


class NothingToShow(ValueError):
    """A model has no weights of the kind that is asked for."""


@dataclass(frozen=True)
class ForcedScores:
    """Of N pairs of a source and a translation."""

    total: np.ndarray  # (N,) log-probability of the translation, its end included; natural logarithm
    tokens: np.ndarray  # (N,) tokens of the translation, its end included
    unknown: np.ndarray  # (N,) how many of them the model does not know

    @property
    def mean(self) -> np.ndarray:
        """(N,) log-probability of a token."""
        return self.total / self.tokens


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode, its task, and where it came from."""

    task: FairseqTask
    model: BaseFairseqModel
    architecture: str
    path: str
    device: torch.device

    @property
    def name(self) -> str:
        """What messages and titles call the model."""
        return f"{Path(self.path).name} ({self.architecture})"

    def subword_type(self, given: str | None) -> str:
        """How the text of the data is cut: `given`, or else what the data directory says, or else subword_nmt."""
        if given:
            return given
        cfg = self.task.cfg
        manifest = read_manifest(utils.split_paths(cfg.data)[0], cfg.source_lang, cfg.target_lang) or {}
        return manifest.get("subword_type", str(SubwordType.subword_nmt))

    def load_split(self, subset: str):
        """A split of the data directory. Raises ValueError: there is no such split."""
        try:
            if subset not in self.task.datasets:
                self.task.load_dataset(subset)
        except FileNotFoundError as error:
            raise ValueError(
                f"--subset {subset}: {self.task.cfg.data} has no such split ({error}); give one that was preprocessed"
            ) from None
        return self.task.dataset(subset)

    def to_device(self, batch: dict) -> dict:
        """The tensors of a batch where the model is."""
        return utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)

    def choose_parser(self, parser: str | None, options: ParserOptions) -> None:
        """Have the model's task parse raw text; without a parser and options, as its checkpoint says."""
        given = {option.name: getattr(options, option.name) for option in fields(ParserOptions)}
        if hasattr(self.task, "attach_syntax") and (parser or any(given.values())):
            self.task.cfg.parser = parser or "stanza"
            for name, value in given.items():
                setattr(self.task.cfg, name, value)

    def encode(self, sources: Sequence[str], trees: Sequence[Sentence] | None = None) -> list[Tensor]:
        """Token ids of source sentences, EOS included; they carry their trees if the model needs these.

        Args:
            sources: sentences as the model reads them: pieces, separated by spaces.
            trees: of their words, for a model that reads trees; None to have them parsed.

        Raises:
            TreeFormatError: a sentence cannot be parsed.
        """
        task = self.task
        if hasattr(task, "learn_source_words"):
            task.learn_source_words(sources)
        ids = [encode_line(task.source_dictionary, source) for source in sources]
        # trees are given out in the order of the sentences, so all are asked for at once
        if hasattr(task, "attach_syntax"):
            task.attach_syntax(sources, ids, trees)
        return ids

    def check_lengths(self, lengths: Sequence[tuple[int, int]], places: Sequence[str]) -> None:
        """Raise ValueError if a source or target is longer than the model reads.

        Args:
            lengths: tokens of each, EOS included; 0 for none.
            places: of the sentences, for messages.
        """
        most = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        most = most if isinstance(most, tuple) else (most, most)
        for pair, place in zip(lengths, places, strict=True):
            for side, length, longest in zip(("source", "target"), pair, most, strict=True):
                if length > longest:
                    raise ValueError(
                        f"{place}: the {side} has {length - 1} tokens and the end of the sentence, but the model reads "
                        f"{longest}; leave it out"
                    )

    def as_dataset(self, of_source: Sequence[Tensor], of_target: Sequence[Tensor] | None = None) -> LanguagePairDataset:
        """Encoded sentences, with their translations if there are some, as fairseq batches them."""
        dataset = self.task.build_dataset_for_inference(list(of_source), [len(ids) for ids in of_source])
        if of_target is not None:
            dataset.tgt = list(of_target)
        return dataset

    def batches(
        self, dataset: LanguagePairDataset, lengths: Sequence[int], max_tokens: int, each: int = 1
    ) -> Iterator[dict]:
        """Batches of sentences of about one length, the longest first: memory that is not enough is soon found out.

        Args:
            lengths: tokens of each sentence, of the longer side.
            max_tokens: of a batch, padding included; one sentence makes a batch in any case.
            each: so many sentences, one after the other, share a batch.
        """
        groups = [range(start, start + each) for start in range(0, len(lengths), each)]
        groups.sort(key=lambda group: -max(lengths[i] for i in group))
        chosen: list[int] = []
        longest = 0
        for group in groups:
            if chosen and (len(chosen) + each) * longest > max_tokens:
                yield self.to_device(dataset.collater([dataset[i] for i in chosen]))
                chosen = []
            longest = longest if chosen else max(lengths[i] for i in group)
            chosen += group
        if chosen:
            yield self.to_device(dataset.collater([dataset[i] for i in chosen]))

    def translate(
        self, dataset: LanguagePairDataset, lengths: Sequence[int], max_tokens: int = 4000, **search
    ) -> list[dict]:
        """The best hypothesis of each sentence of a dataset, as fairseq's generator returns it.

        Args:
            lengths, max_tokens: see `batches`.
            search: options of fairseq-generate: `beam`, `max_len_a`, `max_len_b`.
        """
        found: list[dict] = [{} for _ in lengths]
        generator = self.task.build_generator([self.model], GenerationConfig(**search))
        with progress_bar(total=len(lengths), unit="sent") as bar:
            for sample in self.batches(dataset, lengths, max_tokens):
                numbers = sample["id"].tolist()
                hypotheses = self.task.inference_step(generator, [self.model], sample)
                for number, best in zip(numbers, hypotheses, strict=True):
                    found[number] = best[0]
                bar.update(len(numbers))
        return found

    def forced_scores(
        self, sources: Sequence[str], targets: Sequence[Sequence[str]], places: Sequence[str], max_tokens: int = 4000
    ) -> ForcedScores:
        """Scores of the K translations of each of M sources, side by side; those of about one length share a batch.

        Args:
            sources, targets: sentences as the model reads and writes them: pieces, separated by spaces.
            places: of each source, for messages.
            max_tokens: of a batch, padding included, on either side; one source makes a batch in any case.

        Raises ValueError: a sentence is longer than the model reads; TreeFormatError: a source cannot be parsed.
        """
        task = self.task
        of_source = self.encode(sources)
        of_target = [[encode_line(task.target_dictionary, text) for text in texts] for texts in targets]
        self.check_lengths(
            [(len(s), max(map(len, texts))) for s, texts in zip(of_source, of_target, strict=True)], places
        )
        each = len(of_target[0])
        flat = [ids for texts in of_target for ids in texts]
        total = self.total_scores([ids for ids in of_source for _ in range(each)], flat, max_tokens, each)
        unknown = task.target_dictionary.unk()
        return ForcedScores(
            total, np.array([len(ids) for ids in flat]), np.array([int((ids == unknown).sum()) for ids in flat])
        )

    def total_scores(
        self, of_source: Sequence[Tensor], of_target: Sequence[Tensor], max_tokens: int, each: int = 1
    ) -> np.ndarray:
        """(N,) log-probabilities of N given translations, their ends included; natural logarithm.

        Args:
            of_source: N sentences, token ids that carry their trees.
            of_target: their translations, token ids with EOS.
            max_tokens, each: see `batches`.
        """
        task = self.task
        config = GenerationConfig()
        config.score_reference = True
        generator = task.build_generator([self.model], config)
        total = np.empty(len(of_target))
        lengths = [max(map(len, pair)) for pair in zip(of_source, of_target, strict=True)]
        with progress_bar(total=len(of_target) // each, unit="pair") as bar:
            for sample in self.batches(self.as_dataset(of_source, of_target), lengths, max_tokens, each):
                numbers = sample["id"].tolist()
                for number, found in zip(numbers, task.inference_step(generator, [self.model], sample), strict=True):
                    total[number] = found[0]["positional_scores"].double().sum().item()
                bar.update(len(numbers) // each)
        return total


def load(path: str, data: str | None = None, cpu: bool = False, **options) -> Loaded:
    """Load a model from a checkpoint, with the dictionaries in `data`; `cpu` leaves a GPU alone.

    Without `data`, `path` is the name of a bundled model. Other options of the training are overridden. Raises
    ValueError: not a checkpoint, or not one of a model with these dictionaries; OSError: a file is missing.
    """
    if data is None:
        path, data = pretrained.checkpoint(path), str(pretrained.folder(path))
    state = load_state(path, data=data, **options)
    cfg = state["cfg"].task
    first = utils.split_paths(data)[0]
    if not (cfg.source_lang and cfg.target_lang) and Path(first).is_dir():
        # fairseq-train was not told the languages, and found them in the names of the splits
        if None in data_utils.infer_language_pair(first):
            raise ValueError(f"{data}: no split tells the languages of the model; give the data it was trained on")
    model, task = build(path, state)
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    return Loaded(task, model.to(device), architecture_of(state), path, device)


def architectures(declared: str) -> str:
    """Names of the architectures whose models declare something, or that it lists; without those for tests."""
    names = set()
    for name, model in ARCH_MODEL_REGISTRY.items():
        found = getattr(model, declared, ())
        names.update(found if isinstance(found, tuple) else (name,))
    return ", ".join(sorted(name for name in names if not name.endswith("_tiny")))


def encode_line(dictionary: Dictionary, line: str | Sequence[str]) -> Tensor:
    """Token ids of a line or of its pieces, EOS included. Text such as `</s>` is an unknown word, not a sign.

    A piece stays one, though it were a kind of space.
    """
    split = tokenize_line if isinstance(line, str) else list
    ids = dictionary.encode_line(line, line_tokenizer=split, add_if_not_exist=False).long()
    ids[:-1][ids[:-1] < dictionary.nspecial] = dictionary.unk()
    return ids


def pieces_of(dictionary: Dictionary, ids: Tensor) -> list[str]:
    """The pieces of a sentence, without the signs at its ends."""
    signs = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
    return [dictionary[i] for i in ids.tolist() if i not in signs]


def words_of(pieces: Sequence[str], subword_type: str) -> tuple[list[str], list[int]]:
    """Words, and the word of each piece, as `join_subwords`; also of what a search has left in the middle of a word.

    Raises:
        ValueError: a piece spans several words.
    """
    pieces = list(pieces)
    if subword_type == SubwordType.subword_nmt and pieces:
        pieces[-1] = pieces[-1].removesuffix("@@")
    if pieces and not "".join(pieces).strip(SPACE):
        return [" ".join(pieces)], [0] * len(pieces)
    return join_subwords(pieces, subword_type)
