"""A trained model with its task, for scores and translations of sentences."""
# ruff: noqa: E402

from ..registration import register

register()  # before fairseq is imported, whose modules make the root logger print

# isort: split
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from .. import pretrained
from ..checkpoints import architecture_of, build, load_state
from ..data.arrays import read_manifest
from ..data.parsers import ParserOptions
from ..decoding.search import read_search
from ..progress import progress_bar
from ..trees.conllu import Sentence
from ..trees.subwords import SPACE, SubwordType, join_subwords


class NothingToShow(ValueError):
    """A model has no picture or tree of the requested kind."""


@dataclass(frozen=True)
class ForcedScores:
    """Scores of N pairs of a source and a translation."""

    total: np.ndarray  # (N,) natural log-probability of the translation, EOS included
    tokens: np.ndarray  # (N,) number of tokens of the translation, EOS included
    unknown: np.ndarray  # (N,) number of unknown tokens among them

    @property
    def mean(self) -> np.ndarray:
        """The mean log-probability of a token: (N,)."""
        return self.total / self.tokens


@dataclass(frozen=True)
class LoadedModel:
    """A model in evaluation mode, its task, and its checkpoint."""

    task: FairseqTask
    model: BaseFairseqModel
    architecture: str
    path: str
    device: torch.device
    search: dict = field(default_factory=dict)  # see `decoding.search`

    @property
    def name(self) -> str:
        """The model's name in messages and titles."""
        return f"{Path(self.path).name} ({self.architecture})"

    def subword_type(self, subword_type: str | None, target: bool = False) -> str:
        """Segmentation of the text: `subword_type` itself, or that of the data directory, or subword_nmt."""
        if subword_type:
            return subword_type
        if target and (recipe := getattr(self.task, "text", None)):
            return recipe.target.subwords
        cfg = self.task.cfg
        manifest = read_manifest(utils.split_paths(cfg.data)[0], cfg.source_lang, cfg.target_lang) or {}
        return manifest.get("subword_type", str(SubwordType.subword_nmt))

    def pieces(self, line: str, target: bool = False) -> str:
        """Pieces of a line, separated by spaces; the line is raw text if the data have a recipe, otherwise pieces."""
        recipe = getattr(self.task, "text", None)
        side = recipe and (recipe.target if target else recipe.source)
        return side.encode(line) if side else line

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
        """Move a batch to the device of the model."""
        return utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)

    def choose_parser(self, parser: str | None, options: ParserOptions) -> None:
        """Set the parser of raw text; without arguments, it stays that of the model's checkpoint or data."""
        settings = {option.name: getattr(options, option.name) for option in fields(ParserOptions)}
        if hasattr(self.task, "attach_syntax") and (parser or any(settings.values())):
            self.task.cfg.parser = parser
            for name, value in settings.items():
                setattr(self.task.cfg, name, value)

    def encode(self, sources: Sequence[str], trees: Sequence[Sentence] | None = None) -> list[Tensor]:
        """Token ids of source sentences, EOS included, with their trees attached if the model reads trees.

        Args:
            sources: sentences as the model reads them, pieces separated by spaces.
            trees: trees over their words; None to parse them.

        Raises TreeFormatError: a sentence cannot be parsed.
        """
        task = self.task
        if hasattr(task, "learn_source_words"):
            task.learn_source_words(sources)
        ids = [encode_line(task.source_dictionary, source) for source in sources]
        # a single call, because a file of trees is read in the order of the sentences
        if hasattr(task, "attach_syntax"):
            task.attach_syntax(sources, ids, trees)
        return ids

    @property
    def max_positions(self) -> tuple[int, int]:
        """Largest lengths of source and target that the model accepts, in tokens, EOS included."""
        most = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        return most if isinstance(most, tuple) else (most, most)

    def check_lengths(self, lengths: Sequence[tuple[int, int]], places: Sequence[str]) -> None:
        """Raise ValueError if a source or target is too long for the model.

        Args:
            lengths: tokens of source and target, EOS included; 0 for none.
            places: file and line of each sentence, for messages.
        """
        for pair, place in zip(lengths, places, strict=True):
            for side, length, longest in zip(("source", "target"), pair, self.max_positions, strict=True):
                if length > longest:
                    raise ValueError(
                        f"{place}: the {side} has {length - 1} tokens plus the end of the sentence, but the model "
                        f"reads at most {longest}; leave it out"
                    )

    def as_dataset(self, sources: Sequence[Tensor], targets: Sequence[Tensor] | None = None) -> LanguagePairDataset:
        """A dataset of encoded sentences, optionally with translations."""
        dataset = self.task.build_dataset_for_inference(list(sources), [len(ids) for ids in sources])
        if targets is not None:
            dataset.tgt = list(targets)
        return dataset

    def batches(
        self, dataset: LanguagePairDataset, lengths: Sequence[int], max_tokens: int, group_size: int = 1
    ) -> Iterator[dict]:
        """Batches of sentences of similar length, the longest first, so that lack of memory shows early.

        Args:
            lengths: number of tokens of the longer side of each sentence.
            max_tokens: largest batch in tokens, padding included; a single group may be larger.
            group_size: number of consecutive sentences in a group, which is never split.
        """
        groups = [range(start, start + group_size) for start in range(0, len(lengths), group_size)]
        groups.sort(key=lambda group: -max(lengths[i] for i in group))
        chosen: list[int] = []
        longest = 0
        for group in groups:
            if chosen and (len(chosen) + group_size) * longest > max_tokens:
                yield self.to_device(dataset.collater([dataset[i] for i in chosen]))
                chosen = []
            longest = longest if chosen else max(lengths[i] for i in group)
            chosen += group
        if chosen:
            yield self.to_device(dataset.collater([dataset[i] for i in chosen]))

    def translate(
        self, dataset: LanguagePairDataset, lengths: Sequence[int], max_tokens: int = 4000, **search
    ) -> list[dict]:
        """Best hypothesis of each sentence of a dataset, as fairseq's generator returns it.

        Args:
            lengths, max_tokens: see `batches`.
            search: options of fairseq-generate: `beam`, `max_len_a`, `max_len_b`; by default the model's own.
        """
        hyps: list[dict] = [{} for _ in lengths]
        generator = self.task.build_generator([self.model], GenerationConfig(**{**self.search, **search}))
        with progress_bar(total=len(lengths), unit="sent", desc="translating") as bar:
            for sample in self.batches(dataset, lengths, max_tokens):
                numbers = sample["id"].tolist()
                hypotheses = self.task.inference_step(generator, [self.model], sample)
                for number, beam in zip(numbers, hypotheses, strict=True):
                    hyps[number] = beam[0]
                bar.update(len(numbers))
        return hyps

    def forced_scores(
        self, sources: Sequence[str], targets: Sequence[Sequence[str]], places: Sequence[str], max_tokens: int = 4000
    ) -> ForcedScores:
        """Scores of K translations of each of M sources, as N = M K pairs in the order of the targets.

        Args:
            sources, targets: M sentences, and M lists of K sentences, in pieces separated by spaces.
            places: file and line of each source, for messages.
            max_tokens: see `batches`.

        Raises ValueError: a sentence is too long for the model; TreeFormatError: a source cannot be parsed.
        """
        task = self.task
        source_ids = self.encode(sources)
        target_ids = [[encode_line(task.target_dictionary, text) for text in texts] for texts in targets]
        self.check_lengths(
            [(len(s), max(map(len, texts))) for s, texts in zip(source_ids, target_ids, strict=True)], places
        )
        group_size = len(target_ids[0])
        flat = [ids for texts in target_ids for ids in texts]
        total = self.total_scores([ids for ids in source_ids for _ in range(group_size)], flat, max_tokens, group_size)
        unknown = task.target_dictionary.unk()
        return ForcedScores(
            total, np.array([len(ids) for ids in flat]), np.array([int((ids == unknown).sum()) for ids in flat])
        )

    def total_scores(
        self, sources: Sequence[Tensor], targets: Sequence[Tensor], max_tokens: int, group_size: int = 1
    ) -> np.ndarray:
        """Natural log-probabilities (N,) of translations, EOS included.

        Args:
            sources: N encoded sentences, see `encode`.
            targets: token ids of their translations, with EOS.
            max_tokens, group_size: see `batches`.
        """
        task = self.task
        config = GenerationConfig()
        config.score_reference = True
        generator = task.build_generator([self.model], config)
        total = np.empty(len(targets))
        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        with progress_bar(total=len(targets) // group_size, unit="pair", desc="scoring") as bar:
            for sample in self.batches(self.as_dataset(sources, targets), lengths, max_tokens, group_size):
                numbers = sample["id"].tolist()
                for number, beam in zip(numbers, task.inference_step(generator, [self.model], sample), strict=True):
                    total[number] = beam[0]["positional_scores"].double().sum().item()
                bar.update(len(numbers) // group_size)
        return total


def best_device(cpu: bool) -> torch.device:
    """The GPU if there is one, unless `cpu`; otherwise, the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")


def load_model(path: str, data: str | None = None, cpu: bool = False, **options) -> LoadedModel:
    """Load a checkpoint, with the dictionaries in `data`, onto `best_device`.

    Without `data`, `path` is the name of a bundled model. `options` override those of training. Raises ValueError: the
    file is not a checkpoint, or the dictionaries are wrong; OSError: a file is missing.
    """
    if data is None:
        path, data = pretrained.checkpoint(path), str(pretrained.folder(path))
    state = load_state(path, data=data, **options)
    cfg = state["cfg"].task
    first = utils.split_paths(data)[0]
    if not (cfg.source_lang and cfg.target_lang) and Path(first).is_dir():
        # fairseq-train inferred the languages from the names of the splits
        if None in data_utils.infer_language_pair(first):
            raise ValueError(f"{data}: no split names the languages of the model; give the data it was trained on")
    model, task = build(path, state)
    device = best_device(cpu)
    return LoadedModel(task, model.to(device), architecture_of(state), path, device, read_search(Path(path).parent))


def encode_line(dictionary: Dictionary, line: str | Sequence[str]) -> Tensor:
    """Token ids of a line or of its pieces, EOS included. Text such as `</s>` is an unknown word, not a symbol."""
    split = tokenize_line if isinstance(line, str) else list
    ids = dictionary.encode_line(line, line_tokenizer=split, add_if_not_exist=False).long()
    ids[:-1][ids[:-1] < dictionary.nspecial] = dictionary.unk()
    return ids


def to_pieces(dictionary: Dictionary, ids: Tensor) -> list[str]:
    """Pieces of a sentence from its token ids, without BOS, EOS and padding."""
    special = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
    return [dictionary[i] for i in ids.tolist() if i not in special]


def join_words(pieces: Sequence[str], subword_type: str) -> tuple[list[str], list[int]]:
    """`join_subwords` of a translation, which may end in the middle of a word.

    Raises ValueError: a piece spans several words.
    """
    pieces = list(pieces)
    if subword_type == SubwordType.subword_nmt and pieces:
        pieces[-1] = pieces[-1].removesuffix("@@")
    if pieces and not "".join(pieces).strip(SPACE):
        return [" ".join(pieces)], [0] * len(pieces)
    return join_subwords(pieces, subword_type)
