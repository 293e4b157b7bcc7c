"""The program `fairseq-syntax VERB`. A verb is a module of `tools`, loaded on demand."""

import argparse
import difflib
import importlib
import sys

from ..version import __version__

PROGRAM = "fairseq-syntax"

GROUPS = {
    "data": {
        "parse": "parse tokenised text into CoNLL-U",
        "preprocess": "binarize text as fairseq-preprocess does, together with its trees",
        "perturb": "damage the trees of a CoNLL-U file on purpose",
        "linearize": "make a multi-task corpus, to learn translation and parsing together",
        "characters": "split text into characters, or join them again",
        "length-prior": "estimate target lengths, for the beam search",
    },
    "inspect": {
        "look": "draw the trees, heads, graphs, attention, gates or constituents of a model",
        "whatif": "change the tree of a sentence, and see how its translation changes",
    },
    "evaluate": {
        "compare": "score systems over seeds, test them, and show where they differ",
        "report": "write an HTML page about translations of systems",
        "contrast": "accuracy on minimal pairs, by forced decoding",
        "attachment": "score latent trees against a treebank",
    },
    "experiment": {
        "experiment": "from raw parallel text to a report: train, translate, score, test",
    },
    "models": {
        "translate": "translate raw text",
        "export": "write a model that translates without this package, with fairseq or CTranslate2",
        "average": "average the parameters of checkpoints",
    },
    "installation": {
        "dir": "print the directory to give to --user-dir",
    },
}
_INSTALL = {
    "fairseq": "install fairseq-syntax with its dependencies: pip install .",
    "shtab": "pip install shtab",
}
VERBS = {verb: line for group in GROUPS.values() for verb, line in group.items()}


def build_parser() -> argparse.ArgumentParser:
    """Argument parser of the program; its help lists the verbs."""
    lines = []
    for group, verbs in GROUPS.items():
        lines += [f"{group}:", *(f"  {verb:<14}{line}" for verb, line in verbs.items())]
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} VERB …",
        description="Syntax for fairseq. To train, use fairseq-train with --user-dir.",
        epilog="\n".join([*lines, "", f"{PROGRAM} VERB --help describes a verb and its options."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", nargs="?", metavar="VERB", help="one of the verbs below")
    parser.add_argument(
        "--completion", choices=["bash", "zsh", "tcsh"], help="print a completion script (needs shtab) and exit"
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser


def verb_module(verb: str):
    """Import the module of a verb."""
    return importlib.import_module(f"fairseq_syntax.tools.{verb.replace('-', '_')}")


def print_completion(shell: str) -> int:
    """Print a completion script, which works without the program."""
    import shtab

    whole = argparse.ArgumentParser(prog=PROGRAM)
    verbs = whole.add_subparsers()
    for verb, line in VERBS.items():
        parents = [verb_module(verb).main.build_parser()]
        verbs.add_parser(verb, parents=parents, add_help=False, help=line, conflict_handler="resolve")
    print(shtab.complete(whole, shell))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    argv = sys.argv[1:] if argv is None else argv
    parser = build_parser()
    # arguments after a verb belong to the verb
    args = parser.parse_args(argv if argv[:1] and argv[0].startswith("-") else argv[:1])
    verb = args.verb
    if verb is None and not args.completion:
        parser.error("the following arguments are required: VERB")
    if verb is not None and verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, 1, 0.5)
        parser.error(
            f"there is no verb {verb!r}; " + (f"did you mean {near[0]}?" if near else f"{PROGRAM} --help lists them")
        )
    try:
        return print_completion(args.completion) if args.completion else verb_module(verb).main(argv[1:])
    except KeyboardInterrupt:  # while modules are imported
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0].removesuffix("_cli")
        if package not in _INSTALL:
            raise
        asked = "--completion" if args.completion else verb
        print(f"{PROGRAM} {asked}: needs {package}, which is not installed; {_INSTALL[package]}", file=sys.stderr)
        return 1
