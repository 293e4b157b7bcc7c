"""Translation of characters by models that build trees of both sentences (Bradbury & Socher 2017)."""

import collections
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from fairseq import utils
from fairseq.data.encoders import register_bpe, register_tokenizer
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from ...data.splits import check_directories, check_split
from ...data.token_files import load_dictionary
from ...options import option
from ...training.validation_bleu import ValidationBleu
from ...trees.characters import to_characters, to_text
from .generator import TreeGenerator, TreeScorer
from .growing import ForcedTreeDataset, ForcedTrees
from .tree_files import tree_lines

logger = logging.getLogger(__name__)


@register_tokenizer("syntax_char", dataclass=FairseqDataclass)
@register_bpe("syntax_char", dataclass=FairseqDataclass)
class CharacterText:
    """`--bpe syntax_char`, `--eval-bleu-detok syntax_char`: conversion between raw text and characters.

    fairseq's command lines do not accept its own `characters`.
    """

    def __init__(self, cfg=None):
        pass

    @staticmethod
    def encode(x: str) -> str:
        """See `to_characters`."""
        return to_characters(x)

    @staticmethod
    def decode(x: str) -> str:
        """See `to_text`."""
        return to_text(x)


# criterions of fairseq, the default included, that need scores of words
_WORD_BY_WORD = ("cross_entropy", "label_smoothed_cross_entropy")
# options of generation: those of the generator, and those that are refused unless they have these values
_FOR_TREES = ("beam", "max_len_a", "max_len_b", "min_len", "lenpen", "unnormalized")
_NOT_FOR_TREES = {
    "sampling": False,
    "constraints": None,
    "match_source_len": False,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "no_repeat_ngram_size": 0,
    "prefix_size": 0,
    "print_alignment": None,
    "print_step": False,
    "replace_unk": None,
    "retain_iter_history": False,
    "temperature": 1.0,
    "unkpen": 0.0,
}


@dataclass
class TreeTranslationConfig(TranslationConfig):
    """fairseq's options of `translation`, and those about trees.

    Three defaults differ from fairseq's: the source is padded on the right (`--left-pad-source` switches left padding
    on), `--upsample-primary` is 1 (fairseq's -1 fails as soon as there is a `train1`), and `--eval-bleu` joins
    characters to words.
    """

    left_pad_source: bool = option(False, "pad the source on the left")
    upsample_primary: int = option(1, "how often the first of train, train1, … is repeated")
    eval_bleu_detok: str = option(
        "syntax_char", "detokenizer of translations for --eval-bleu; syntax_char joins characters into words"
    )
    rnng_tree_output: Optional[bool] = option(
        False, "fairseq-generate and -interactive print the trees of both sentences and their attention: TS-, TT-, TA-"
    )
    rnng_forced_trees: ForcedTrees = option(
        ForcedTrees.none,
        "train on given trees instead of the policy's: a constituent for each word (words); teach them to the policy "
        "with --rnng-action-xent",
    )


@register_task("tree_translation", dataclass=TreeTranslationConfig)
class TreeTranslationTask(ValidationBleu, TranslationTask):
    """`translation` from characters to characters, with trees."""

    cfg: TreeTranslationConfig
    builds_trees = True

    def __init__(self, cfg, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        # lines that fairseq-interactive has read, and the numbers of those of its buffer, by token ids
        self._lines_read = 0
        self._numbers = collections.defaultdict(collections.deque)

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """As in fairseq, with clear errors for a missing data directory or one without dictionaries."""
        check_directories(cfg.data)
        first = Path(utils.split_paths(cfg.data)[0])
        task = super().setup_task(cfg, **kwargs)
        for language, dictionary in ((cfg.source_lang, task.src_dict), (cfg.target_lang, task.tgt_dict)):
            if "madeupword0000" in dictionary:
                logger.warning(
                    "%s/dict.%s.txt has symbols that are not characters (madeupword0000), for which the model would "
                    "save probability: run fairseq-preprocess with --padding-factor 1",
                    first,
                    language,
                )
        return task

    @classmethod
    def load_dictionary(cls, filename):
        """As in fairseq; the error for a damaged dictionary names the file."""
        return load_dictionary(filename, super().load_dictionary)

    # --- data ---------------------------------------------------------------------------------------------------

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """As in fairseq; with `--rnng-forced-trees`, batches contain trees."""
        check_split(self, split, epoch, combine)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        pairs = ForcedTreeDataset.from_pairs(self.datasets[split], None, ())
        pairs.force(self.cfg.rnng_forced_trees)
        self.datasets[split] = pairs

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """As in fairseq, padded on the side set by `--left-pad-source`."""
        return ForcedTreeDataset.for_inference(self, src_tokens, src_lengths, constraints)

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """As in fairseq; keeps the numbers of the lines, which fairseq's batches do not have."""
        tokens, lengths = super().get_interactive_tokens_and_lengths(lines, encode_fn)
        # each buffer is translated before the next is read: lines still pending were too long, and skipped
        self._numbers.clear()
        for number, ids in enumerate(tokens, self._lines_read):
            self._numbers[tuple(ids.tolist())].append(number)
        self._lines_read += len(lines)
        return tokens, lengths

    # --- training -----------------------------------------------------------------------------------------------

    def build_model(self, cfg, from_checkpoint=False):
        """As in fairseq; ValueError for a model that builds no trees."""
        model = super().build_model(cfg, from_checkpoint)
        if not getattr(model, "builds_trees", False):
            raise ValueError(
                f"--task tree_translation: {type(model).__name__} builds no trees; give --arch latent_tree_rnng, or "
                "leave --task out for models of other kinds"
            )
        return model

    def build_criterion(self, cfg, from_checkpoint=False):
        """As in fairseq; ValueError for fairseq's own criterions."""
        name = getattr(cfg, "_name", None)
        if name in _WORD_BY_WORD:
            raise ValueError(f"--criterion {name}: does not learn trees; give --criterion reinforce_tree")
        # as from a checkpoint: options that an older one has, and that are gone, are left out
        return super().build_criterion(cfg, from_checkpoint=True)

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """As in fairseq; marks the dummy batches of processes that have run out of data."""
        sample = {**sample, "stand_in": ignore_grad}
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    # --- translation --------------------------------------------------------------------------------------------

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None):
        """A `TreeGenerator`, or a `TreeScorer` for `--score-reference`.

        Raises ValueError: an option of fairseq that they do not have.
        """
        unsupported = [name for name, neutral in _NOT_FOR_TREES.items() if getattr(args, name, neutral) != neutral]
        if (extra_gen_cls_kwargs or {}).get("lm_model") is not None:
            unsupported.append("lm_path")
        if unsupported or prefix_allowed_tokens_fn is not None:
            option = f"--{unsupported[0].replace('_', '-')}" if unsupported else "prefix_allowed_tokens_fn"
            raise ValueError(f"{option}: not available with --task tree_translation; leave it out")
        # --eval-bleu gives only some of them
        options = {name: getattr(args, name) for name in _FOR_TREES if hasattr(args, name)}
        kind = TreeScorer if getattr(args, "score_reference", False) else TreeGenerator
        return kind(self.src_dict, self.tgt_dict, **options)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Translate a batch and, with `--rnng-tree-output`, print its trees."""
        result = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if self.cfg.rnng_tree_output:
            for number, (best, *_) in zip(self._sentence_numbers(sample), result, strict=True):
                print(tree_lines(number, best), end="")
        return result

    def _sentence_numbers(self, sample) -> list[int]:
        if "id" in sample:
            return sample["id"].tolist()
        rows = sample["net_input"]["src_tokens"]
        # equal sentences may be exchanged
        return [self._numbers[tuple(row[row != self.src_dict.pad()].tolist())].popleft() for row in rows]
