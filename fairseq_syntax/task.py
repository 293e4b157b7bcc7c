"""Translation with the trees of the source sentences beside its tokens."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Optional

from fairseq import utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II

from . import compat
from .data.arrays import TAG_DICTIONARIES
from .data.dataset import SyntaxPairDataset
from .data.invariants import check_sizes
from .data.length_table import length_table_path, read_length_table
from .data.parsers import ParserOptions, find_parsers
from .data.raw_text_task import RawTextTask
from .data.splits import check_directories, check_split, load_syntax
from .data.token_files import load_dictionary
from .decoding.length_prior import use_length_prior
from .decoding.unknown_words import aligning_generator
from .options import check_values, option
from .training.steps import TrainingSteps
from .training.validation_bleu import ValidationBleu

ParserChoice = StrEnum("ParserChoice", {name: name for name in find_parsers()})
"""Source of the trees of raw text at inference."""


@dataclass
class SyntaxTranslationConfig(TranslationConfig, ParserOptions):
    """fairseq's options of `translation`, and where trees of raw text come from.

    Two defaults differ from fairseq's: the source is padded on the right (`--left-pad-source` switches left padding
    on), and `--upsample-primary` is 1 (fairseq's -1 fails as soon as there is a `train1`).
    """

    left_pad_source: bool = option(False, "pad the source on the left")
    upsample_primary: int = option(1, "how often the first of train, train1, … is repeated")
    epoch_parts: int = option(
        1,
        "divide every epoch over the training data into this many parts, each of which is an epoch to fairseq: it "
        "validates, saves and adapts the learning rate after each, and --max-epoch counts them",
        "[1, inf)",
    )
    seed: int = II("common.seed")
    parser: Optional[ParserChoice] = option(
        None,
        "parser of raw text in fairseq-interactive and the hub (default: that of the data's text recipe, or stanza); "
        "see --parser-model",
    )
    parse_dropout: float = option(
        0.0,
        "probability that the parse of a sentence is withheld in training, drawn again in every epoch, so that one "
        "model translates with and without a parse",
        "[0, 1]",
    )
    lisa_gold_parses: bool = option(False, "LISA: attend to given parents at test time, instead of predicted ones")
    length_prior: str = option(
        "off",
        "beam search with the probability of the translation's length given the source's: off, auto (the "
        "table in the data directory, made by fairseq-syntax length-prior), or the path of a table; not used by "
        "--eval-bleu and --score-reference",
    )


@register_task("syntax_translation", dataclass=SyntaxTranslationConfig)
class SyntaxTranslationTask(RawTextTask, TrainingSteps, ValidationBleu, TranslationTask):
    """`translation` with the inputs from trees that the model declares.

    A model states `syntax_inputs` (always needed) and `training_syntax_inputs` (needed to train; taken at inference
    if they are there); see `data.collating.INPUTS`. Models that state nothing, fairseq's own, run as they
    always do.

    Raises (when it is set up or loads data):
        ValueError: options that cannot be combined with trees.
        TreeFormatError: arrays are missing or do not fit; the message names the command that makes them.
    """

    cfg: SyntaxTranslationConfig

    def __init__(self, cfg, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        check_values(cfg, SyntaxTranslationConfig)
        self._validates = False

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """As in fairseq, with clear errors for a missing data directory or one without dictionaries."""
        check_directories(cfg.data)
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename):
        """As in fairseq; the error for a damaged dictionary names the file."""
        return load_dictionary(filename, super().load_dictionary)

    def build_model(self, cfg, from_checkpoint=False):
        """Build the model and note which inputs it needs."""
        # the generator of --eval-bleu is built there
        self._validates = True
        try:
            model = super().build_model(cfg, from_checkpoint)
        finally:
            self._validates = False
        self.note_reader(model)
        required = set(getattr(model, "syntax_inputs", ()))
        training = set(getattr(model, "training_syntax_inputs", ()))
        if from_checkpoint:
            self.required_inputs |= required
            self.optional_inputs |= training
        else:
            self.required_inputs |= required | training
        share, name = self.cfg.parse_dropout, type(model).__name__
        if share and not from_checkpoint and not (required or training):
            raise ValueError(f"--parse-dropout {share}: {name} reads no parses; leave the option out")
        return model

    def get_batch_iterator(self, dataset, *args, **kwargs):
        """As in fairseq; in training alone, epochs are divided and parses withheld."""
        # the trainer passes this in training only; validation may be on the same data
        trains = "update_epoch_batch_itr" in kwargs
        if trains and self.cfg.epoch_parts > 1:
            # the parts of an epoch are of one seed; the trainer's can be another one in each (kwargs["seed"])
            dataset = dataset.epoch_part(kwargs["epoch"], self.cfg.epoch_parts, self.cfg.seed)
        if trains and self.cfg.parse_dropout:
            names = TAG_DICTIONARIES.keys() & (self.required_inputs | self.optional_inputs)
            missing = {name: self.syntax_dictionary(name).index("_") for name in names}
            dataset = dataset.withholding(self.cfg.parse_dropout, kwargs["seed"], kwargs["epoch"], missing)
        return super().get_batch_iterator(dataset, *args, **kwargs)

    def build_generator(self, models, args, seq_gen_cls=None, *rest, **kwargs):
        """fairseq's generator, with the length prior, and with alignments for `--replace-unk`.

        An ensemble must not mix models with and without `src_syntax`.
        """
        takes_syntax = [bool(getattr(model, "takes_syntax", False)) for model in models]
        if (self.required_inputs or self.optional_inputs) and not all(takes_syntax):
            raise ValueError(
                "--path: the ensemble mixes models with syntax and fairseq's own, which do not accept trees; "
                "warm-start the plain one as pascal_transformer with --pascal-heads 0 "
                "(--finetune-from-model) and use that"
            )
        self._names_unknown = getattr(args, "replace_unk", None) is not None
        if self._names_unknown:
            dictionaries = self.src_dict, self.tgt_dict
            seq_gen_cls = aligning_generator(models, args, self.cfg.left_pad_source, dictionaries)
        generator = super().build_generator(models, args, seq_gen_cls, *rest, **kwargs)
        if self.cfg.length_prior != "off" and not (self._validates or getattr(args, "score_reference", False)):
            use_length_prior(generator, self._length_table())
        return generator

    def _length_table(self):
        cfg = self.cfg
        languages = cfg.source_lang, cfg.target_lang
        beside = length_table_path(utils.split_paths(cfg.data)[0], *languages)
        return read_length_table(beside if cfg.length_prior == "auto" else cfg.length_prior, *languages)

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load a split as fairseq does and put its trees beside it."""
        # fairseq-generate alone has a task of its command line, and data
        if self.cfg.parser not in (None, getattr(kwargs.get("task_cfg", self.cfg), "parser", None)):
            raise ValueError(
                f"--parser {self.cfg.parser}: fairseq-generate takes the trees that the data have; leave it out"
            )
        if split == self.cfg.train_subset:
            # directories take turns after all parts
            epoch = (epoch - 1) // self.cfg.epoch_parts + 1
        data_path = check_split(self, split, epoch, combine)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        syntax = load_syntax(self, data_path, split, combine)
        if syntax is not None and self.cfg.truncate_source:
            raise ValueError("--truncate-source: trees cannot be truncated; leave it out, or remove long sentences")
        if syntax is not None:
            check_sizes(self.datasets[split].src_sizes, syntax.sizes, f"{data_path}: split {split!r}")
        self.datasets[split] = SyntaxPairDataset.from_pairs(
            self.datasets[split], syntax, self.required_inputs | self.optional_inputs
        )


compat.default_task(SyntaxTranslationTask)
