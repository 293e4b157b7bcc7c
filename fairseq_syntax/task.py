"""Translation with the trees of the source sentences beside its tokens."""

import collections
import logging
import weakref
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from fairseq import utils
from fairseq.data import ConcatDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from . import compat
from . import systems as systems  # their parsers are found
from .data.arrays import TAG_DICTIONARIES, manifest_path, read_manifest, split_prefix, tag_dictionary_path
from .data.dataset import EpochPart, SplitSyntax, SyntaxPairDataset, check_sizes
from .data.inputs import check_input_names, collate_syntax
from .data.length_table import length_table_path, read_length_table
from .data.live import LiveSyntax
from .data.parsers import ParserOptions, find_parsers, load_parser
from .data.publishing import check_published
from .data.splits import check_split
from .data.token_files import load_dictionary
from .decoding.length_prior import use_length_prior
from .decoding.unknown_words import aligning_generator
from .options import fill_options_of_checkpoint
from .training.steps import TrainingSteps
from .training.validation_bleu import ValidationBleu
from .trees.conllu import MAX_WORDS, TreeFormatError
from .trees.subwords import SubwordType

logger = logging.getLogger(__name__)


ParserChoice = StrEnum("ParserChoice", {name: name for name in find_parsers()})
"""Where the trees of raw text come from at inference."""


class UnparsedInput(StrEnum):
    """What becomes of raw text that cannot be parsed."""

    error = "error"
    accept = "accept"


@dataclass
class SyntaxTranslationConfig(TranslationConfig, ParserOptions):
    """fairseq's options of `translation`, and where trees of raw text come from.

    Two defaults differ from fairseq's: the source is padded on the right (`--left-pad-source` switches left padding
    on), and `--upsample-primary` is 1 (fairseq's -1 fails as soon as there is a `train1`).
    """

    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    upsample_primary: int = field(default=1, metadata={"help": "how often the first of train, train1, … is repeated"})
    epoch_parts: int = field(
        default=1,
        metadata={
            "help": "divide every epoch over the training data into so many parts, each an epoch to fairseq: it "
            "validates, saves and adapts the learning rate after each, and --max-epoch counts them"
        },
    )
    parser: ParserChoice = field(
        default=ParserChoice.stanza,
        metadata={"help": "what parses raw text in fairseq-interactive and the hub; see --parser-model"},
    )
    unparsed_input: UnparsedInput = field(
        default=UnparsedInput.error,
        metadata={
            "help": "sentences of raw text that cannot be parsed are an error, or are translated without a parse "
            "(accept), with a warning; one that ends inside a word (@@) is an error always"
        },
    )
    max_words: int = field(
        default=MAX_WORDS,
        metadata={"help": "words of the longest sentence of raw text that is parsed; longer ones cannot be parsed"},
    )
    gold_parses: bool = field(
        default=False,
        metadata={"help": "LISA: attend by the given trees at test time, not the predicted ones"},
    )
    length_prior: str = field(
        default="off",
        metadata={
            "help": "beam search with the probability of the translation's length given the source's: off, auto (the "
            "table in the data directory, made by fairseq-syntax-length-prior), or the path of a table; not used by "
            "--eval-bleu"
        },
    )
    length_prior_rerank: bool = field(
        default=False,
        metadata={
            "help": "--length-prior: orders finished hypotheses only, and does not decide when hypotheses end (by "
            "default it does both)"
        },
    )


_OTHER_POLICY = (
    "choose --sdatt-missing global or linear (of a trained model: --model-overrides \"{'sdatt_missing': 'global'}\")"
)


@register_task("syntax_translation", dataclass=SyntaxTranslationConfig)
class SyntaxTranslationTask(TrainingSteps, ValidationBleu, TranslationTask):
    """`translation`, plus the arrays that the built model declares it needs.

    A model states `syntax_inputs` (always needed) and `training_syntax_inputs` (needed to train; taken at inference
    if they are there); see `data.inputs.INPUTS`. For one with `refuses_unparsed`, data with a sentence that has no
    parse are not loaded. Models that state nothing, fairseq's own, run as they always do.

    Raises (when it is set up or loads data):
        ValueError: options that cannot be combined with trees.
        TreeFormatError: arrays are missing or do not fit; the message names the command that makes them.
    """

    cfg: SyntaxTranslationConfig

    def __init__(self, cfg, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.num_batch_buckets > 0:
            raise ValueError("--num-batch-buckets: fairseq's implementation fails with NumPy 2; leave it out")
        if cfg.epoch_parts < 1:
            raise ValueError(f"--epoch-parts {cfg.epoch_parts}: must be at least 1")
        self.required_inputs: set[str] = set()
        self.optional_inputs: set[str] = set()
        self.refuses_unparsed = False
        self._live = None
        self._validates = False
        # unknown words of raw text get names behind the model's words, if they are to be copied, or models read them
        self._names_unknown = False
        self._readers: weakref.WeakSet = weakref.WeakSet()
        self._all_read = True
        self._source_words = len(src_dict)
        # trees of the lines that fairseq-interactive is translating, by token ids; see `inference_step`
        self._pending = collections.defaultdict(collections.deque)

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """As in fairseq, with clear errors for a missing data directory or one without dictionaries."""
        if not cfg.data:
            raise ValueError("no data directory is given; name the one that preprocessing wrote")
        for path in utils.split_paths(cfg.data):
            if not Path(path).is_dir():
                raise FileNotFoundError(
                    f"{path}: no such data directory; make it with fairseq-syntax-preprocess --destdir {path}"
                )
            check_published(path)
        first = Path(utils.split_paths(cfg.data)[0])
        if not any(first.glob("dict.*.txt")):
            raise FileNotFoundError(
                f"{first}: no dict.*.txt; not a directory that fairseq-preprocess or fairseq-syntax-preprocess wrote"
            )
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename):
        """As in fairseq; the message about a damaged one names the file."""
        return load_dictionary(filename, super().load_dictionary)

    def build_model(self, cfg, from_checkpoint=False):
        """Build the model and note which inputs it needs."""
        if from_checkpoint:
            fill_options_of_checkpoint(cfg)
        # the generator of --eval-bleu is built there
        self._validates = True
        try:
            model = super().build_model(cfg, from_checkpoint)
        finally:
            self._validates = False
        if hasattr(model, "add_symbols"):
            self._readers.add(model)
        else:
            self._all_read = False
        required = set(getattr(model, "syntax_inputs", ()))
        training = set(getattr(model, "training_syntax_inputs", ()))
        check_input_names(required | training, type(model).__name__)
        if from_checkpoint:
            self.required_inputs |= required
            self.optional_inputs |= training
        else:
            self.required_inputs |= required | training
        self.refuses_unparsed |= bool(getattr(model, "refuses_unparsed", False))
        if self.refuses_unparsed and self.cfg.unparsed_input == UnparsedInput.accept:
            raise ValueError(
                "--unparsed-input accept: the model refuses sentences without a parse; leave the option out, or "
                f"{_OTHER_POLICY}"
            )
        return model

    def build_generator(self, models, args, seq_gen_cls=None, *rest, **kwargs):
        """fairseq's generator, with the length prior, and alignments where unknown words are to be replaced.

        An ensemble must not mix models with and without `src_syntax`.
        """
        takes_syntax = [bool(getattr(model, "takes_syntax", False)) for model in models]
        if (self.required_inputs or self.optional_inputs) and not all(takes_syntax):
            raise ValueError(
                "--path: the ensemble mixes models with syntax and fairseq's own, which do not accept trees; "
                "warm-start the plain one as pascal_transformer with --encoder-pascal-heads 0 "
                "(--finetune-from-model) and use that"
            )
        self._names_unknown = getattr(args, "replace_unk", None) is not None
        if self._names_unknown:
            dictionaries = self.src_dict, self.tgt_dict
            seq_gen_cls = aligning_generator(models, args, seq_gen_cls, self.cfg.left_pad_source, dictionaries)
        generator = super().build_generator(models, args, seq_gen_cls, *rest, **kwargs)
        if self.cfg.length_prior != "off" and not self._validates:
            use_length_prior(generator, self._length_table(), self.cfg.length_prior_rerank)
        return generator

    def _length_table(self):
        cfg = self.cfg
        languages = cfg.source_lang, cfg.target_lang
        beside = length_table_path(utils.split_paths(cfg.data)[0], *languages)
        return read_length_table(beside if cfg.length_prior == "auto" else cfg.length_prior, *languages)

    def syntax_dictionary(self, name):
        """Dictionary of tags, by the name of the input: "deprels" or "upos".

        Raises:
            FileNotFoundError: the data has none.
        """
        data_path = utils.split_paths(self.cfg.data)[0]
        path = tag_dictionary_path(data_path, self.cfg.source_lang, name)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: not found, but the model embeds {name}; "
                f"run fairseq-syntax-preprocess --only-syntax … --destdir {data_path}"
            )
        return self.load_dictionary(str(path))

    # --- binarized data -----------------------------------------------------------------------------------------

    def has_sharded_data(self, split):
        """Whether every epoch loads data of its own: a part of an epoch does."""
        return self.cfg.epoch_parts > 1 or super().has_sharded_data(split)

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load a split as fairseq does and put its trees beside it."""
        part = None
        if split == self.cfg.train_subset and self.cfg.epoch_parts > 1:
            epoch, number = divmod(epoch - 1, self.cfg.epoch_parts)
            epoch += 1
            part = EpochPart(epoch, number, self.cfg.epoch_parts)
        data_path = check_split(self, split, epoch, combine)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        syntax = self._load_syntax(data_path, split, combine)
        if syntax is not None and not self.cfg.truncate_source:
            check_sizes(self.datasets[split].src_sizes, syntax.sizes, split)
        self.datasets[split] = SyntaxPairDataset.from_pairs(
            self.datasets[split],
            syntax,
            self.required_inputs | self.optional_inputs,
            truncated_to=self.cfg.max_source_positions if self.cfg.truncate_source else None,
            part=part,
        )

    def _load_syntax(self, data_path, split, combine):
        inputs = self.required_inputs | self.optional_inputs
        if not inputs:
            return None
        paths = utils.split_paths(self.cfg.data)
        source, target = self.cfg.source_lang, self.cfg.target_lang
        manifest = read_manifest(data_path, source, target)
        first = split_prefix(data_path, split, source, target)
        if manifest is None or first is None:
            if not self.required_inputs:
                return None
            what = f"split {split!r} has no trees" if manifest else "this data has no trees"
            raise TreeFormatError(
                f"{data_path}: {what}, but the model needs {', '.join(sorted(self.required_inputs))}; run "
                f"fairseq-syntax-preprocess --only-syntax --source-lang {source} --target-lang {target} "
                f"--trainpref … --validpref … --testpref … --destdir {data_path}"
            )
        for name in TAG_DICTIONARIES.keys() & inputs:
            own, used = (tag_dictionary_path(path, source, name) for path in (data_path, paths[0]))
            if own != used and not (own.is_file() and own.read_bytes() == used.read_bytes()):
                raise TreeFormatError(
                    f"{own}: differs from {used}, by which the model reads its tags; preprocess {data_path} again "
                    f"with --syntax-dicts {paths[0]}"
                )
        for other in paths if self.refuses_unparsed and split == self.cfg.train_subset else ():
            # now, not in the middle of the training, when it is the turn of that directory
            splits = (read_manifest(other, source, target) or {}).get("splits", {})
            for name, entry in splits.items():
                # train, and train1, train2, …, which are read with it
                if name.rstrip("0123456789") == split:
                    self._refuse_unparsed(other, name, entry.get("unparsed"), entry.get("sentences"))
        tags = {name: len(self.syntax_dictionary(name)) for name in TAG_DICTIONARIES.keys() & inputs}
        parts = [SplitSyntax(first, inputs, data_path, tags)]
        self._check_counts(parts[0], split, manifest, data_path)
        while combine:
            name = f"{split}{len(parts)}"
            prefix = split_prefix(data_path, name, source, target)
            if prefix is None:
                break
            parts.append(SplitSyntax(prefix, inputs, data_path, tags))
            self._check_counts(parts[-1], name, manifest, data_path)
        if len(parts) == 1:
            return parts[0]
        return ConcatDataset(parts, [self.cfg.upsample_primary] + [1] * (len(parts) - 1))

    def _check_counts(self, syntax, split, manifest, data_path):
        """Log how many sentences of a split have no parse; raise TreeFormatError if there may be none."""
        languages = self.cfg.source_lang, self.cfg.target_lang
        counts = syntax.check_counts(manifest["splits"].get(split, {}), split, manifest_path(data_path, *languages))
        count, size = counts["unparsed"], counts["sentences"]
        self._refuse_unparsed(data_path, split, count, size)
        rate = 100 * count / max(size, 1)
        logger.info("%s: split %r: %d of %d sentences have no parse (%.2f%%)", data_path, split, count, size, rate)

    def _refuse_unparsed(self, data_path, split, count, size):
        if count and self.refuses_unparsed:
            raise TreeFormatError(
                f"{data_path}: {count} of {size} sentences of split {split!r} have no parse, and the model refuses "
                f"them; parse them with fairseq-syntax-parse and preprocess again, or {_OTHER_POLICY}"
            )

    # --- raw text -----------------------------------------------------------------------------------------------

    @property
    def live(self) -> LiveSyntax:
        """Makes trees of raw text with the configured parser; built when it is first needed.

        Raises:
            ValueError: the options do not say where trees come from.
        """
        if self._live is None:
            cfg = self.cfg
            accept = cfg.unparsed_input == UnparsedInput.accept
            parser = load_parser(str(cfg.parser), cfg, cfg.source_lang, lenient=accept)
            data_path = utils.split_paths(cfg.data)[0]
            manifest = read_manifest(data_path, cfg.source_lang, cfg.target_lang) or {}
            self._live = LiveSyntax(
                parser,
                manifest.get("subword_type", str(SubwordType.subword_nmt)),
                {name: self.syntax_dictionary(name) for name in TAG_DICTIONARIES.keys() & self.required_inputs},
                accept_unparsed=accept,
                max_words=cfg.max_words,
            )
        return self._live

    def learn_source_words(self, texts):
        """Add the unseen words of texts to the source dictionary, if that is of use.

        It is where all models read words by their spelling (`add_symbols`, called with the new words), and where
        unknown words are copied, which fairseq does as the dictionary spells them.

        Args:
            texts: sentences as the model reads them: subwords, separated by spaces.
        """
        reads = self._all_read and len(self._readers) > 0
        if not (reads or self._names_unknown):
            return
        before = len(self.src_dict)
        for text in texts:
            self.src_dict.encode_line(text, add_if_not_exist=True)
        if reads:
            for model in self._readers:
                model.add_symbols(self.src_dict.symbols[before:])
            self._source_words = len(self.src_dict)

    def attach_syntax(self, texts, tokens):
        """Parse encoded sentences and attach the trees to their token ids, which carry them to the translation.

        Args:
            texts: sentences as the model reads them: subwords, separated by spaces.
            tokens: their token ids, EOS included; one 1-D tensor each.
        """
        if self.required_inputs:
            for ids, syntax in zip(tokens, self.live(texts), strict=True):
                ids.syntax = syntax

    def _parse_ids(self, ids):
        """The tree of a sentence of which only the token ids are known, EOS included."""
        if self.src_dict.unk() in ids:
            raise TreeFormatError(
                "a sentence with unknown words has no tree, because only its token ids were given; "
                "translate text with `from_pretrained` of a model of fairseq_syntax.systems, or fairseq-interactive"
            )
        return self.live([" ".join(self.src_dict[i] for i in ids if i != self.src_dict.eos())])[0]

    def _recall_syntax(self, ids):
        """The tree of a line that fairseq-interactive read, by its token ids; equal ones in the order of the lines."""
        queue = self._pending.get(tuple(ids))
        return queue.popleft() if queue else self._parse_ids(ids)

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """Encode raw lines as fairseq does, and parse them if the model needs trees."""
        texts = [encode_fn(line) for line in lines]
        self.learn_source_words(texts)
        tokens, lengths = super().get_interactive_tokens_and_lengths(texts, lambda text: text)
        self.attach_syntax(texts, tokens)
        # a buffer is translated before the next is read; what is left of it was too long and skipped
        self._pending.clear()
        for ids in tokens:
            if self.required_inputs:
                self._pending[tuple(ids.tolist())].append(ids.syntax)
        return tokens, lengths

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """As in fairseq, padded on the side that `--left-pad-source` says.

        Not shuffled: sentences of the same token ids (repeated, or told apart by unknown words only) must be
        translated in their order, in which `inference_step` gets their trees; batches keep it, too.
        """
        syntax = None
        if self.required_inputs:
            syntax = [getattr(ids, "syntax", None) or self._parse_ids(ids.tolist()) for ids in src_tokens]
        return SyntaxPairDataset(
            src_tokens,
            src_lengths,
            self.source_dictionary,
            tgt_dict=self.target_dictionary,
            left_pad_source=self.cfg.left_pad_source,
            shuffle=False,
            constraints=constraints,
            syntax=syntax,
            syntax_inputs=self.required_inputs,
        )

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Translate a batch; one that was made of raw text gets its trees here.

        fairseq-interactive passes on tokens and lengths of a batch and nothing else, so trees cannot come with it.
        """
        net_input = sample["net_input"]
        tokens = net_input["src_tokens"]
        if self.required_inputs and "src_syntax" not in net_input:
            rows = [row[row != self.src_dict.pad()].tolist() for row in tokens]
            syntax = collate_syntax(
                [self._recall_syntax(row) for row in rows],
                sorted(self.required_inputs),
                tokens.shape[1],
                self.cfg.left_pad_source,
            )
            net_input = {**net_input, "src_syntax": {k: v.to(tokens.device) for k, v in syntax.items()}}
        if len(self.src_dict) > self._source_words:
            known = tokens.masked_fill(tokens >= self._source_words, self.src_dict.unk())
            net_input = {**net_input, "src_tokens": known}
        sample = {**sample, "net_input": net_input}
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)


# fairseq-generate and -interactive ask for `translation`, fairseq-validate for nothing at all
compat.apply("default-task", SyntaxTranslationTask, ("translation", None))
