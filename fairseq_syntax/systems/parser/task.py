"""Training a dependency parser on treebanks in CoNLL-U, tags and trees in turns (Hashimoto et al., EMNLP 2017, JMT).

Its learning rate falls with the epochs of the paper, of which each is two epochs of fairseq.
"""

import json
import logging
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import List, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from fairseq.tasks import FairseqTask, register_task

from ...data.raw_text_task import DICTIONARY_LOCK
from ...data.token_files import load_dictionary
from ...options import check_values, option
from .model import LatentGraphParserModel
from .treebank import (
    Pass,
    PosColumn,
    TreebankDataset,
    build_vocabulary,
    find_treebank,
    read_treebank,
    vocabulary_dictionary,
)

logger = logging.getLogger(__name__)

TRAIN = "train"

PASSES = 2
"""Epochs of fairseq that make one of the paper: over tags, then over trees."""

# prefix of the names of parameters that a pass keeps near a snapshot -> δ
_ANCHORS = {
    Pass.pos: {"words.": 1e-3},
    Pass.dependency: {"parser.pos_classifier.": 1e-2, "parser.layer1.": 1e-3},
}


@dataclass
class DependencyParsingConfig(FairseqDataclass):
    """Options of `dependency_parsing`."""

    data: Optional[str] = option(None, "folder with train.conllu and valid.conllu, plain or .gz, and other splits")
    lgp_first_k: Optional[int] = option(None, "train on the first K sentences; default: all", "[1, inf)")
    lgp_pos_column: PosColumn = option(PosColumn.upos, "tags to learn")
    lgp_strip_subtypes: bool = option(False, "strip subtypes of labels: learn nmod for nmod:poss")
    lgp_lowercase: bool = option(False, "lowercase words, for a parser of lowercased text")
    lgp_mt_dict: Optional[str] = option(
        None,
        "source dictionary of the translator that will start from this parser; its frequent words get vectors, too",
    )
    lgp_pos_batch_size: int = option(25, "sentences per batch of tags", "[1, inf)")
    lgp_dep_batch_size: int = option(15, "sentences per batch of trees", "[1, inf)")
    max_source_positions: int = option(1024, "longest sentence, in tokens, EOS included", "[1, inf)")
    # read by programs that inspect translators
    source_lang: str = option("text", "name of the language; has no effect")
    target_lang: str = option("trees", "has no effect")
    left_pad_source: bool = option(False, "pad on the left in programs that look into models; has no effect")


@register_task("dependency_parsing", dataclass=DependencyParsingConfig)
class DependencyParsingTask(FairseqTask):
    """Epochs of fairseq are passes: over the data of tags when their number is odd, over trees when it is even.

    A pass over trees is kept near the parameters of tags that the pass before ended with; a pass over tags, near the
    embeddings that the one over trees ended with (successive regularisation).

    The vocabulary goes into `task.state`, so that a checkpoint can be used without the treebank.

    Raises (when it loads data):
        TreeFormatError: files are missing or broken.
        ValueError: options out of their ranges, or data without tags or trees.
    """

    cfg: DependencyParsingConfig

    def __init__(self, cfg):
        super().__init__(cfg)
        check_values(cfg, DependencyParsingConfig)
        self.from_checkpoint = False
        self.state.add_factory("vocabulary", self._build_vocabulary)
        self._dictionary = None
        self._snapshot = {"epoch": 0, "values": {}}
        self._anchors = []  # parameter, its snapshot, δ
        self._resting = []  # parameters that the pass does not use

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """Make the task; files are opened later, on first use."""
        return cls(cfg)

    # --- words, tags and labels ---------------------------------------------------------------------------------

    @property
    def vocabulary(self) -> dict[str, list]:
        """Vocabulary (`treebank.build_vocabulary`) of the checkpoint, if there is one, or of the training data."""
        return self.state.vocabulary

    @property
    def source_dictionary(self) -> Dictionary:
        """Dictionary of the words; new ones from evaluation data come last."""
        if self._dictionary is None:
            self._dictionary = vocabulary_dictionary(self.vocabulary)
        return self._dictionary

    @property
    def target_dictionary(self):
        """None: nothing is translated."""
        return None

    def load_state_dict(self, state_dict):
        """Take over the vocabulary of a checkpoint."""
        before = self._dictionary and self.vocabulary
        super().load_state_dict(state_dict)
        if self.vocabulary != before:  # a model that is built reads the dictionary
            self._dictionary = None

    def _build_vocabulary(self) -> dict[str, list]:
        translator = load_dictionary(self.cfg.lgp_mt_dict) if self.cfg.lgp_mt_dict else None
        vocabulary = build_vocabulary(self._training, translator)
        logger.info("%d words, %d tags, %d labels", *(len(vocabulary[name]) for name in ("words", "pos", "labels")))
        return vocabulary

    def _fingerprint(self) -> int:
        return zlib.crc32(json.dumps(self.vocabulary).encode())

    # --- data ---------------------------------------------------------------------------------------------------

    def _read(self, split, limit=None) -> list:
        cfg = self.cfg
        if not cfg.data:
            raise ValueError("no data: name the folder with train.conllu and valid.conllu")
        return read_treebank(
            find_treebank(cfg.data, split),
            limit,
            pos_column=str(cfg.lgp_pos_column),
            strip_subtypes=cfg.lgp_strip_subtypes,
            lowercase=cfg.lgp_lowercase,
        )

    @cached_property
    def _training(self) -> list:
        """Sentences of the training data."""
        sentences = self._read(TRAIN, self.cfg.lgp_first_k)
        logger.info("%d sentences to train on", len(sentences))
        return sentences

    def has_sharded_data(self, split):
        """True for the training data: every epoch loads that of its pass."""
        return split == TRAIN

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load the treebank SPLIT.conllu of the data folder; of `train`, the data for the pass of the epoch."""
        if split != TRAIN:
            self.datasets[split] = self._dataset(self._read(split))
            return
        kind = pass_of(epoch)
        sentences = self._training
        if kind == Pass.dependency:
            sentences = [sentence for sentence in sentences if sentence.tree.is_parsed]
        size = self.cfg.lgp_pos_batch_size if kind == Pass.pos else self.cfg.lgp_dep_batch_size
        self.datasets[split] = self._dataset(sentences, kind, size, shuffle=True)

    def _dataset(self, sentences, *options, **named) -> TreebankDataset:
        vocabulary = self.vocabulary
        # new words have n-grams, though no vector of their own
        self.learn_source_words(sentence.words for sentence in sentences)
        return TreebankDataset(
            sentences, self.source_dictionary, vocabulary["pos"], vocabulary["labels"], *options, **named
        )

    def learn_source_words(self, texts):
        """Append the new words of texts to the dictionary, with count 0, for models to read.

        A text is a list of words, or words separated by spaces.
        """
        with DICTIONARY_LOCK:
            for text in texts:
                for word in text.split() if isinstance(text, str) else text:
                    self.source_dictionary.add_symbol(word, n=0)

    def max_positions(self):
        """Tokens of a sentence, EOS included."""
        return self.cfg.max_source_positions

    # --- model and training -------------------------------------------------------------------------------------

    def build_model(self, cfg, from_checkpoint=False):
        """Build the model; from a checkpoint, without the files of vectors that it began with.

        Raises ValueError: it is not a parser.
        """
        name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
        if ARCH_MODEL_REGISTRY.get(name, MODEL_REGISTRY.get(name)) is not LatentGraphParserModel:
            raise ValueError(f"--arch {name}: --task dependency_parsing trains parsers; give --arch lgp_parser")
        self.from_checkpoint = from_checkpoint
        return super().build_model(cfg, from_checkpoint)

    def build_criterion(self, cfg, from_checkpoint=False):
        """Build the criterion. Raises ValueError: it learns no trees."""
        name = getattr(cfg, "_name", None) or getattr(cfg, "criterion", None)
        if name != "joint_parsing":
            raise ValueError(f"--criterion {name}: --task dependency_parsing needs --criterion joint_parsing")
        # as from a checkpoint: fairseq-validate does not pass this, and old checkpoints have options that are gone
        return super().build_criterion(cfg, from_checkpoint=True)

    def optimizer_step(self, optimizer, model, update_num):
        """As in fairseq; parameters that a pass does not use stay as they are, in several processes, too.

        Otherwise fairseq would replace their missing gradients by zeros, and weight decay would change them.
        """
        for parameter in self._resting:
            parameter.grad = None
        super().optimizer_step(optimizer, model, update_num)

    def begin_epoch(self, epoch, model):
        """Take a snapshot of the parameters to stay near to, unless the run resumes in the middle of the pass."""
        # parameters before the first pass are not worth keeping
        anchored = _anchored(model, pass_of(epoch)) if epoch > 1 else []
        self._resting = []
        if pass_of(epoch) == Pass.pos:
            # passes over tags train parameters that passes over trees keep, and embeddings
            taught = {name for kind in _ANCHORS for name, _, _ in _anchored(model, kind)}
            self._resting = [parameter for name, parameter in model.named_parameters() if name not in taught]
        if self._snapshot["epoch"] != epoch:
            values = {name: parameter.detach().cpu().clone() for name, parameter, _ in anchored}
            self._snapshot = {"epoch": epoch, "values": values}
        values = self._snapshot["values"]
        self._anchors = [(parameter, values[name].to(parameter), delta) for name, parameter, delta in anchored]

    def penalty(self) -> torch.Tensor | float:
        """Σ δ ‖θ − θ'‖² over the parameters in the snapshot; 0 without one."""
        return sum((delta * (parameter - value).square().sum() for parameter, value, delta in self._anchors), 0.0)

    def get_checkpoint_dict(self):
        """The snapshot, for fairseq to put into a checkpoint; that does not hand `task.state` back on resuming."""
        return {type(self).__name__: {"snapshot": self._snapshot, "fingerprint": self._fingerprint()}}

    def set_checkpoint_dict(self, state):
        """Go on where a run was interrupted. Raises ValueError: it had other training data."""
        if state["fingerprint"] != self._fingerprint():
            raise ValueError(
                "the training data has other words, tags or labels than when the training began; give the same data "
                "and options to resume, or another --save-dir to start over"
            )
        self._snapshot = state["snapshot"]


def pass_of(epoch: int) -> Pass:
    """The pass of an epoch of fairseq, from 1."""
    return Pass.pos if epoch % PASSES else Pass.dependency


def _anchored(model, kind: Pass) -> list[tuple]:
    """(name, parameter, δ) of trained parameters that a pass keeps near a snapshot."""
    return [
        (name, parameter, delta)
        for name, parameter in model.named_parameters()
        for prefix, delta in _ANCHORS[kind].items()
        if name.startswith(prefix) and parameter.requires_grad
    ]


@dataclass
class InverseEpochConfig(FairseqDataclass):
    """Options of `inverse_epoch`."""

    lgp_lr_rho: float = option(
        0.3, "epoch k, a pass over tags and one over trees, has lr / (1 + rho (k - 1))", "[0, inf)"
    )
    lgp_pass_clip_norms: Optional[List[float]] = option(
        None,
        "two norms at which gradients of passes over tags and over trees are clipped (1,2 in the paper), with "
        "--optimizer lgp_sgd; default: --clip-norm for both",
    )
    # an option of another part
    lr: List[float] = "${optimization.lr}"


@register_lr_scheduler("inverse_epoch", dataclass=InverseEpochConfig)
class InverseEpoch(FairseqLRScheduler):
    """lr_k = lr / (1 + rho (k - 1)) in the k-th epoch of the paper (Hashimoto et al. 2017).

    The rate depends on the number of the epoch alone, so no state is stored.

    Raises ValueError: options out of their ranges, or an optimizer that cannot clip by pass.
    """

    def __init__(self, cfg: InverseEpochConfig, optimizer):
        super().__init__(cfg, optimizer)
        if len(cfg.lr) > 1:
            raise ValueError(f"--lr {list(cfg.lr)}: inverse_epoch starts with one learning rate and lowers it itself")
        check_values(cfg, InverseEpochConfig)
        norms = cfg.lgp_pass_clip_norms
        if norms is not None:
            if len(norms) != PASSES or min(norms) < 0:
                raise ValueError(f"--lgp-pass-clip-norms {list(norms)}: give {PASSES} numbers, none negative")
            if not hasattr(optimizer, "clip_value"):
                raise ValueError("--lgp-pass-clip-norms: needs --optimizer lgp_sgd in single precision")
        self.lr = cfg.lr[0]
        self.optimizer.set_lr(self.lr)

    def step_begin_epoch(self, epoch):
        """Set the learning rate, and the norm for clipping, of an epoch of fairseq (from 1)."""
        completed, number = divmod(epoch - 1, PASSES)
        self.lr = self.cfg.lr[0] / (1 + self.cfg.lgp_lr_rho * completed)
        self.optimizer.set_lr(self.lr)
        if self.cfg.lgp_pass_clip_norms is not None:
            self.optimizer.clip_value = self.cfg.lgp_pass_clip_norms[number]
        return self.lr

    def step_update(self, num_updates):
        """Restore the rate, which is constant within an epoch, over that in a checkpoint's optimizer."""
        self.optimizer.set_lr(self.lr)
        return self.lr
