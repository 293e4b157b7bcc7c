"""The hub interface of the suite's models: raw text in, translations out, with trees where a model needs them."""

from pathlib import Path

import torch
from fairseq import hub_utils

from . import pretrained


class SyntaxHubInterface(hub_utils.GeneratorHubInterface):
    """fairseq's hub interface, which parses what it encodes: `translate` takes raw text."""

    def parse(self, sentences):
        """The dependency tree of a sentence, or those of a list of them, by the parser that `translate` uses."""
        if isinstance(sentences, str):
            return self.parse([sentences])[0]
        return self.task.live.parser.parse([self.tokenize(sentence).split() for sentence in sentences])

    def translate(self, sentences, beam: int = 5, verbose: bool = False, trees=None, **kwargs):
        """Translate a sentence, or a list of them, which are parsed together.

        `trees` are a `Sentence`, or a list of them: given instead of parsed. Raises ValueError: the model reads none.
        """
        if isinstance(sentences, str):
            return self.translate([sentences], beam, verbose, None if trees is None else [trees], **kwargs)[0]
        hypotheses = self.generate(self._encode(sentences, trees), beam, verbose, **kwargs)
        return [self.decode(best[0]["tokens"]) for best in hypotheses]

    def generate(self, tokenized_sentences, *args, **kwargs):
        """As in fairseq, which would make a new tensor of a single sentence, and the tree stays on the old one.

        Raises ValueError: for `score`, which fairseq has for language models.
        """
        if kwargs.get("score_reference"):
            raise ValueError(
                "score: there are no reference translations; score those of binarized data: fairseq-generate "
                "--score-reference"
            )
        if torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1:
            return self.generate([tokenized_sentences], *args, **kwargs)[0]
        return super().generate(tokenized_sentences, *args, **kwargs)

    def encode(self, sentence: str, tree=None):
        """Token ids of a sentence; the tensor carries the sentence's tree, parsed or given, a copy of it does not."""
        return self._encode([sentence], None if tree is None else [tree])[0]

    def _encode(self, sentences, trees):
        texts = [self.apply_bpe(self.tokenize(sentence)) for sentence in sentences]
        self.task.learn_source_words(texts)
        tokens = [self.binarize(text) for text in texts]
        self.task.attach_syntax(texts, tokens, trees)
        return tokens


class HubModel:
    """Mixin of all models of the suite: `from_pretrained` gives an interface that translates raw text."""

    @classmethod
    def from_pretrained(cls, model_name_or_path, checkpoint_file="model.pt", data_name_or_path=".", **kwargs):
        """Load a model for `translate`, as fairseq's `from_pretrained` does; raw text is parsed.

        `model_name_or_path` is a folder or, if there is none of this name, a bundled model, such as `agreement-pascal`.
        `data_name_or_path` is the data directory, for its dictionaries; `kwargs` override options: `parser`,
        `bpe_codes`, …

        Raises ValueError: files of a bundled model are damaged; FileNotFoundError: no such folder or model.
        """
        if not Path(model_name_or_path).exists() and "://" not in str(model_name_or_path):
            if model_name_or_path not in pretrained.names():
                known = ", ".join(pretrained.names())
                raise FileNotFoundError(f"{model_name_or_path}: no such folder or bundled model; choose from {known}")
            model_name_or_path = str(pretrained.folder(model_name_or_path))
        loaded = hub_utils.from_pretrained(model_name_or_path, checkpoint_file, data_name_or_path, **kwargs)
        return SyntaxHubInterface(loaded["args"], loaded["task"], loaded["models"])
