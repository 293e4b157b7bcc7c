"""spaCy's pipelines: tagger and dependency parser of many languages."""

import logging

from ...trees.conllu import ROOT, Sentence, TreeFormatError
from ..text.tokenizers import load_pipeline
from . import Parser, ParserOptions, first_line, made_tree

READS = ("parser_model", "parser_device")
NEEDS = ("parser_model",)

# components that take time or split sentences, and do not change trees
_UNUSED = ["ner", "entity_linker", "lemmatizer", "trainable_lemmatizer", "textcat", "senter", "sentencizer"]
_UPOS = frozenset("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())


def load(options: ParserOptions) -> Parser:
    """See `load_parser`."""
    return SpacyParser(str(options.parser_model), options.parser_device)


class SpacyParser:
    """A pipeline of spaCy (Honnibal et al. 2020) that splits neither words nor sentences.

    Labels are those of the pipeline: Universal Dependencies, except in spaCy's English and German pipelines. Every tree
    has one root: if spaCy finds several, the others depend on the first as `parataxis`, as in treebanks of Universal
    Dependencies. Tags unknown to UD become `X`.

    `model` is the name of an installed pipeline, or the folder of one; `device` "cpu" (default), "cuda", "cuda:1".

    Raises TreeFormatError: spaCy or the pipeline is missing, cannot be loaded, or parses nothing.
    """

    def __init__(self, model: str, device: str | None = None):
        import spacy

        logging.getLogger("spacy").setLevel(logging.ERROR)
        try:
            if device and device != "cpu":
                spacy.require_gpu(int(device.partition(":")[2] or 0))
            else:
                spacy.require_cpu()
            self._pipeline = load_pipeline(model, exclude=_UNUSED)
        except Exception as error:  # of whatever sort; all mean "no parser"
            raise TreeFormatError(
                f"--parser-model {model}: spaCy {spacy.__version__} cannot load it on device {device or 'cpu'}; give "
                "the folder of a pipeline, or a name, after: python -m spacy download NAME. Installed are: "
                f"{', '.join(spacy.util.get_installed_models()) or 'none'}. It says {first_line(error)}"
            ) from None
        if not self._pipeline.has_pipe("parser"):
            raise TreeFormatError(f"--parser-model {model}: this pipeline has no dependency parser; give one that does")

    def without_tags(self) -> None:
        """See `Parser`."""
        for pipe in {"tagger", "morphologizer", "attribute_ruler"}.intersection(self._pipeline.pipe_names):
            self._pipeline.disable_pipe(pipe)

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `Parser.parse`."""
        from spacy.tokens import Doc

        trees = [Sentence([], [], [], []) for _ in sentences]
        filled = [i for i, words in enumerate(sentences) if words]
        # the parser does not split a sentence if no other word is marked as a start
        documents = (
            Doc(self._pipeline.vocab, sentences[i], sent_starts=[word == 0 for word in range(len(sentences[i]))])
            for i in filled
        )
        for i, document in zip(filled, self._pipeline.pipe(documents), strict=True):
            trees[i] = _tree(document, sentences[i])
        return trees


def _tree(document, words: list[str]) -> Sentence:
    """Convert a document of spaCy to our tree."""
    heads = [ROOT if token.head.i == token.i else token.head.i for token in document]
    labels = [token.dep_ or "dep" for token in document]
    first, *others = [i for i, head in enumerate(heads) if head == ROOT]
    for root in others:
        heads[root], labels[root] = first, "parataxis"
    tags = [token.pos_ if token.pos_ in _UPOS else "X" if token.pos_ else "_" for token in document]
    return made_tree("spaCy", words, [token.text for token in document], heads, labels, tags)
