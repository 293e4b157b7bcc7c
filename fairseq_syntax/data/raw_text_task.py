"""Translation of raw text by tasks of fairseq: parsing, and unknown words."""

import collections
import hashlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fairseq import utils
from fairseq.data.encoders import register_tokenizer
from fairseq.dataclass import FairseqDataclass

from ..trees.conllu import TreeFormatError, without_parse
from ..trees.subwords import SubwordType
from .arrays import TAG_DICTIONARIES, read_manifest, tag_dictionary_path
from .collating import collate_syntax
from .dataset import SyntaxPairDataset
from .live_parsing import LiveSyntax, token_syntax
from .parsers import Parser, ParserOptions, load_parser
from .text.guard import Guard
from .text.recipe import RECIPE, Recipe, read_recipe

if TYPE_CHECKING:
    from fairseq.tasks.translation import TranslationTask as Task
else:
    Task = object


@register_tokenizer("none", dataclass=FairseqDataclass)
class NoTokenizer:
    """`--tokenizer none`: no tokenisation, for text that is tokenised already, on both sides."""

    def __init__(self, *unused):
        pass

    def encode(self, line: str) -> str:
        return line

    decode = encode


DICTIONARY_LOCK = threading.RLock()
"""Lock for growing a dictionary together with the tables that models derive from it: threads may share a model."""


class RawTextTask(Task):
    """Mixin of translation tasks with the options of `SyntaxTranslationConfig`.

    Attributes:
        required_inputs: keys of `data.collating.INPUTS` that the models cannot do without.
        optional_inputs: those that they use if the data have them.
    """

    def __init__(self, cfg, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        self.required_inputs: set[str] = set()
        self.optional_inputs: set[str] = set()
        # unknown words are added behind the model's words if they are to be copied, or models read their spelling
        self._names_unknown = False
        self._reads_spelling = set()  # whether models read words by their spelling
        self._source_words = len(src_dict)
        self._words = {"source dictionary": len(src_dict), "target dictionary": len(tgt_dict)}
        self._guard = Guard(self.text.shares if self.text else {})
        # trees of the lines that fairseq-interactive is translating, by token ids; see `inference_step`
        self._pending = collections.defaultdict(collections.deque)

    def state_dict(self):
        """As in fairseq, with a fingerprint of the data."""
        return {**super().state_dict(), "data": self._fingerprint(self._words, self.required_inputs)}

    def _fingerprint(self, words: Mapping[str, int], inputs: Collection[str]) -> dict:
        """Languages, recipe, hashes of both dictionaries' first words, to which models add, and of those of tags."""
        languages, recipe = f"{self.cfg.source_lang}-{self.cfg.target_lang}", self.text.digest if self.text else ""
        data: dict = {"language pair": languages, "text recipe": recipe}
        for name, length in words.items():
            symbols = (self.src_dict if name.startswith("source") else self.tgt_dict).symbols[:length]
            data[name] = length, hashlib.sha256("\n".join(symbols).encode()).hexdigest()
        for name in TAG_DICTIONARIES.keys() & inputs:
            path = tag_dictionary_path(utils.split_paths(self.cfg.data)[0], self.cfg.source_lang, name)
            symbols = self.load_dictionary(str(path)).symbols if path.is_file() else []
            data[f"dictionary of {name}"] = hashlib.sha256("\n".join(symbols).encode()).hexdigest() if symbols else ""
        return data

    def load_state_dict(self, state_dict):
        """As in fairseq. Raises ValueError: the checkpoint was trained on other data than these."""
        state = dict(state_dict)
        then = state.pop("data", {})
        tags = [name for name in TAG_DICTIONARIES if f"dictionary of {name}" in then]
        now = self._fingerprint({name: then[name][0] for name in self._words if name in then}, tags)
        others = [name for name, value in now.items() if value and then.get(name, value) not in ("", value)]
        if others:
            raise ValueError(
                f"the model was trained on other data than {self.cfg.data}, with another {' and '.join(others)}; give "
                "the data directory of its training, or one that was made with its dictionaries and its recipe"
            )
        super().load_state_dict(state)

    def note_reader(self, model):
        """Remember whether a new model reads words by their spelling."""
        self._reads_spelling.add(getattr(model, "reads_spelling", False))

    def syntax_dictionary(self, name):
        """Dictionary of tags, by the name of the input: "deprels" or "upos"."""
        path = tag_dictionary_path(utils.split_paths(self.cfg.data)[0], self.cfg.source_lang, name)
        return self.load_dictionary(str(path))

    @cached_property
    def live(self) -> LiveSyntax:
        """The configured parser of raw text, loaded when it is first needed.

        Raises ValueError: the options do not say where trees come from.
        """
        data_path = utils.split_paths(self.cfg.data)[0]
        manifest = read_manifest(data_path, self.cfg.source_lang, self.cfg.target_lang) or {}
        parser = self.load_parser()
        if "upos" not in self.required_inputs and hasattr(parser, "without_tags"):
            parser.without_tags()
        return LiveSyntax(
            parser,
            manifest.get("subword_type", str(SubwordType.subword_nmt)),
            {name: self.syntax_dictionary(name) for name in TAG_DICTIONARIES.keys() & self.required_inputs},
        )

    def load_parser(self) -> Parser:
        """The parser of raw text: that of the options, or the recipe's, or Stanza. Raises as `load_parser` does."""
        name, options = self.cfg.parser, self.cfg
        for named, settings in (self.text.parser if self.text else {}).items():
            if name in (None, named):
                chosen = {
                    key.name: value for key in fields(ParserOptions) if (value := getattr(options, key.name, None))
                }
                name, options = named, ParserOptions(**{**settings, **chosen})
        return load_parser(str(name or "stanza"), options, self.cfg.source_lang)

    @cached_property
    def text(self) -> Recipe | None:
        """The recipe of the data directory; None if it has none. Raises as `Recipe.between`."""
        recipe = read_recipe(utils.split_paths(self.cfg.data)[0]) if self.cfg.data else None
        return recipe and recipe.between(self.cfg.source_lang, self.cfg.target_lang)

    def build_tokenizer(self, args):
        """As in fairseq; a recipe's tokenisers are used unless `--tokenizer none` marks text as tokenised."""
        if self.text is None:
            return super().build_tokenizer(args)
        tokenized = self._chosen(args, "tokenizer", "none") == "none"
        source, target = self.text.source, self.text.target
        return SimpleNamespace(
            encode=lambda line: " ".join(source.words([line], tokenized)[0]),
            decode=lambda words: words if tokenized else target.detokenize(words.split()),
        )

    def build_bpe(self, args):
        """As in fairseq; a recipe's subwords are used."""
        if self.text is None:
            return super().build_bpe(args)
        self._chosen(args, "bpe")
        source, target = self.text.source, self.text.target
        return SimpleNamespace(
            encode=lambda words: source.cut(words.split()), decode=lambda pieces: " ".join(target.join(pieces))
        )

    def _chosen(self, args, component: str, *allowed: str) -> str | None:
        """The configured tokenizer or BPE of fairseq. Raises ValueError: the recipe replaces it."""
        name = getattr(args, "_name", None) or getattr(args, component, None)
        if isinstance(name, str) and name not in allowed:
            recipe = Path(utils.split_paths(self.cfg.data)[0], RECIPE)
            raise ValueError(f"--{component} {name}: {recipe} says how text is segmented; leave it out")
        return name

    def learn_source_words(self, texts):
        """Add unseen words of texts (lists of subwords, or strings) to the source dictionary if they will be read.

        They are read by models that use the spelling of words (`reads_spelling`; all models must), and by fairseq when
        it copies unknown words.
        """
        reads = self._reads_spelling == {True}
        if not (reads or self._names_unknown):
            return
        with DICTIONARY_LOCK:
            for text in texts:
                text = text if isinstance(text, str) else " ".join(text)
                self.src_dict.encode_line(text, add_if_not_exist=True)
            if reads:
                self._source_words = len(self.src_dict)

    def attach_syntax(self, texts, tokens, trees=None):
        """Parse encoded sentences and attach the trees to their token ids, which carry them to the translation.

        A word that is spelled like a symbol of the dictionary, such as <pad>, becomes an unknown word.

        Args:
            texts: sentences as the model reads them: subwords, separated by spaces.
            tokens: their token ids, EOS included; one 1-D tensor each.
            trees: one for the words of each sentence, instead of the parser's.

        Raises ValueError: trees are given to a model that reads none.
        """
        for ids in tokens:
            ids[:-1].masked_fill_(ids[:-1] < self.src_dict.nspecial, self.src_dict.unk())
        self._guard.count(texts, sum(int((ids == self.src_dict.unk()).sum()) for ids in tokens))
        if self.required_inputs:
            # fairseq skips or refuses what is too long for the model, and a parser may fail on it
            fits = [i for i, ids in enumerate(tokens) if trees or len(ids) <= self.max_positions()[0]]
            for ids in tokens:
                words = len(ids) - 1
                ids.syntax = token_syntax(without_parse(["_"] * words), range(words), self.live.dictionaries)
            for i, syntax in zip(fits, self.live([texts[i] for i in fits], trees), strict=True):
                tokens[i].syntax = syntax
        elif trees is not None:
            raise ValueError("trees are given, but the model reads none; leave them out")

    def _parse_ids(self, ids):
        """Parse a sentence from its token ids alone, EOS included."""
        if self.src_dict.unk() in ids:
            raise TreeFormatError(
                "a sentence with unknown words has no tree, because only its token ids were given; "
                "translate text with `from_pretrained` of a model of fairseq_syntax.systems, or fairseq-interactive"
            )
        return self.live([" ".join(self.src_dict[i] for i in ids if i != self.src_dict.eos())])[0]

    def _recall_syntax(self, ids):
        """Look up the tree of a line of fairseq-interactive by its token ids; equal lines take theirs in order."""
        queue = self._pending.get(tuple(ids))
        return queue.popleft() if queue else self._parse_ids(ids)

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """Encode raw lines as fairseq does, and parse them if the model needs trees."""
        texts = [encode_fn(line) for line in lines]
        self.learn_source_words(texts)
        tokens, lengths = super().get_interactive_tokens_and_lengths(texts, lambda text: text)
        self.attach_syntax(texts, tokens)
        # each buffer is translated before the next is read: lines still pending were too long, and skipped
        self._pending.clear()
        for ids in tokens:
            if self.required_inputs:
                self._pending[tuple(ids.tolist())].append(ids.syntax)
        return tokens, lengths

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """As in fairseq, padded on the side set by `--left-pad-source`.

        Not shuffled: sentences of the same token ids (repeated, or different in unknown words only) must be
        translated in their order, in which `inference_step` gets their trees; batches keep it, too.
        """
        syntax = None
        if self.required_inputs:
            syntax = [getattr(ids, "syntax", None) or self._parse_ids(ids.tolist()) for ids in src_tokens]
        return SyntaxPairDataset.for_inference(
            self, src_tokens, src_lengths, constraints, syntax=syntax, syntax_inputs=self.required_inputs
        )

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Translate a batch; batches of raw text get their trees here.

        fairseq-interactive passes on only the tokens and lengths of a batch, without trees.
        """
        if constraints is None and getattr(getattr(generator, "search", None), "supports_constraints", False):
            raise ValueError(
                "--constraints: none are given; only fairseq-interactive reads them, after a tab in each line"
            )
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
            on_device = {k: v.to(tokens.device) for k, v in syntax.items()}  # type: ignore[attr-defined]
            net_input = {**net_input, "src_syntax": on_device}
        if len(self.src_dict) > self._source_words:
            src_tokens = tokens.masked_fill(tokens >= self._source_words, self.src_dict.unk())
            net_input = {**net_input, "src_tokens": src_tokens}
        sample = {**sample, "net_input": net_input}
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)
