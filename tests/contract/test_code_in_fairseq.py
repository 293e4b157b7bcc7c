"""The list of places where fairseq runs what it is given is whole: an updated fairseq may have others."""

import ast
from pathlib import Path

import fairseq
import fairseq_cli
from fairseq.registry import REGISTRIES

from fairseq_syntax.compat.checkpoint_options import _EVALUATED, _HARMLESS, _NAMES

EVALUATE = {"eval_str_list", "eval_str_dict", "eval_bool"}
# however it is imported
LAST = EVALUATE | {
    *("import_module", "import_user_module", "instantiate", "get_class", "get_method", "run_path", "run_module"),
    *("system", "popen", "Popen", "check_output", "check_call", "extractall", "LoadLibrary"),
    *("register_resolver", "register_new_resolver"),
}
# as it stands
WHOLE = {
    *("eval", "exec", "compile", "__import__", "globals", "subprocess.call", "subprocess.run"),
    *("pickle.load", "pickle.loads", "torch.load", "torch.hub.load", "np.load"),
    *("yaml.load", "yaml.safe_load", "yaml.unsafe_load"),
}


def _typed(keyword: ast.keyword) -> list[ast.AST]:
    return list(ast.walk(keyword.value)) if keyword.arg == "type" else []


def calls():
    """(file, what is called, call, names that the file imports) of everything that may run what it is given."""
    for package, prefix in ((fairseq, ""), (fairseq_cli, "fairseq_cli/")):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            file = path.relative_to(folder)
            if file.parts[0] == "examples":
                continue  # what --user-dir names
            tree = ast.parse(path.read_text(encoding="utf-8"))
            imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
            names = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
            names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
            # types of arguments, of the command line
            typed = [word for node in ast.walk(tree) if isinstance(node, ast.keyword) for word in _typed(node)]
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and node not in typed:
                    called = ast.unparse(node.func)
                    # an attribute of a module or a class, by a name that is computed
                    by_name = called == "getattr" and not isinstance(node.args[1], ast.Constant)
                    listed = called in WHOLE or called.split(".")[-1] in LAST
                    if listed or (by_name and ast.unparse(node.args[0]) in names):
                        yield f"{prefix}{file}", called, node


def option_of(call: ast.Call) -> str | None:
    """The option that a call evaluates, as far as it can be told."""
    given = call.args[0]
    if isinstance(given, ast.Call) and ast.unparse(given.func) == "getattr":
        return given.args[1].value
    return getattr(given, "attr", getattr(given, "id", None))


def places():
    """Options that fairseq evaluates, by file; and the files and calls of everything else that may run something."""
    evaluated, others = {}, set()
    for file, called, call in calls():
        # the functions that all others call are in utils.py
        if (called == "eval" or called.split(".")[-1] in EVALUATE) and f"{file} {called}" not in _HARMLESS:
            evaluated.setdefault(file, set()).add(option_of(call))
        else:
            others.add(f"{file} {called}")
    return evaluated, others


def test_all_places_are_listed():
    evaluated, others = places()
    assert evaluated == {file: set(options.split()) for file, options in _EVALUATED.items()}
    assert others == _HARMLESS.keys()


def test_every_option_that_names_something_registered_is_known():
    assert REGISTRIES.keys() <= set(_NAMES)
