"""fairseq-syntax VERB: one program. A verb is a module of this folder, which is loaded when the verb is given."""

import argparse
import difflib
import importlib
import sys

from ..version import __version__

PROGRAM = "fairseq-syntax"

GROUPS = {
    "data": {
        "parse": "dependency trees of a tokenized text",
        "preprocess": "binarize text as fairseq-preprocess does, and its trees beside it",
        "perturb": "the trees of a CoNLL-U file made worse on purpose",
        "linearize": "multi-task training text from a corpus and its trees",
        "dictionary": "a source dictionary in which no word loses its spelling",
        "characters": "text to characters, and back",
        "length-prior": "probabilities of target lengths, for the beam search",
        "check": "whether a data directory is as it was written",
    },
    "look": {
        "trees": "latent dependency trees of any text, as CoNLL-U or as a picture",
        "attention": "a picture of what a model attends to in one sentence",
        "whatif": "what becomes of a translation under another tree of its sentence",
        "align": "links between words of a sentence and its translation, from attention",
        "gates": "how much a decoder asks for syntax, token by token",
        "graph": "latent graphs: how sure they are; pictures and tables of arcs",
        "constituents": "latent constituent trees over characters: numbers and pictures",
    },
    "score": {
        "compare": "scores of systems over seeds, significance, and scores by kind of sentence",
        "report": "one page about a folder of results, for browsers and paper",
        "contrast": "accuracy on minimal pairs, by forced scores",
        "attachment": "attachment accuracy of latent trees against a treebank",
        "grammar": "which tags depend on which, in a treebank and in latent trees",
    },
    "models": {
        "average": "the mean of the parameters of checkpoints",
        "options": "options of an architecture, with its task and criterion",
    },
    "installed": {
        "dir": "the directory to give to --user-dir",
        "examples": "the recipes and quick runs, listed or copied",
    },
}
VERBS = {verb: line for group in GROUPS.values() for verb, line in group.items()}


def build_parser() -> argparse.ArgumentParser:
    """The options without a verb; the verbs are listed at the end."""
    lines = []
    for group, verbs in GROUPS.items():
        lines += [f"{group}:", *(f"  {verb:<14}{line}" for verb, line in verbs.items())]
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} VERB …",
        description="Syntax for fairseq: everything but training and translating, which are fairseq's own commands.",
        epilog="\n".join([*lines, "", f"{PROGRAM} VERB --help says more of a verb."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", nargs="?", metavar="VERB", help="one of those below")
    parser.add_argument(
        "--completion", choices=["bash", "zsh", "tcsh"], help="print the completion of a shell (needs shtab), and stop"
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser


def load(verb: str):
    """The module of a verb."""
    return importlib.import_module(f".{verb.replace('-', '_')}", __package__)


def print_completion(shell: str) -> int:
    """Print a script for a shell; made once, it costs no start of the program."""
    import shtab

    whole = argparse.ArgumentParser(prog=PROGRAM)
    verbs = whole.add_subparsers()
    for verb, line in VERBS.items():
        parents = [load(verb).main.build_parser()]
        verbs.add_parser(verb, parents=parents, add_help=False, help=line, conflict_handler="resolve")
    print(shtab.complete(whole, shell))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    argv = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    # what follows a verb is the verb's
    args = parser.parse_args(argv if argv[:1] and argv[0].startswith("-") else argv[:1])
    if args.completion:
        return print_completion(args.completion)
    verb = args.verb
    if verb is None:
        parser.error("the following arguments are required: VERB")
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, 1, 0.5)
        parser.error(
            f"there is no verb {verb!r}; " + (f"did you mean {near[0]}?" if near else f"{PROGRAM} --help lists them")
        )
    try:
        return load(verb).main(argv[1:])
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("fairseq", "fairseq_cli"):
            raise
        print(
            f"{PROGRAM} {verb}: needs fairseq, which is not installed; "
            "pip install --no-build-isolation fairseq-fixed==0.12.3.1",
            file=sys.stderr,
        )
        return 1
