"""What mkdocs reads beside docs/: README as the home page, CHANGELOG, CONTRIBUTING, the notebook, recipes and options.

Pages link to each other as files of the checkout, so that their links work wherever the checkout is read. Here they
become links of the site; where one leads to a file that is not a page, such as a script, its text stays.
"""

import logging
import posixpath
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.append(str(CHECKOUT / "docs"))
import make_options  # noqa: E402

LINK = re.compile(r"\[(?P<text>(?:!\[[^]]*\]\([^)]*\)|[^][])*)\]\((?P<url>[^)\s]+)\)")
MATH = re.compile(r"(?P<code>`[^`\n]+`)|\$\$(?P<block>[^$]+)\$\$|\$(?P<inline>[^\s$]|[^\s$][^\n$]*[^\s$])\$")
CODE = re.compile(r"(^```(?s:.*?)^```$|^ {4}.*$)", re.MULTILINE)

# what the search puts first or last: who pastes an error message wants its line of the table, not what raises it
BOOST = {"troubleshooting.md": 5, "index.md": 4, "systems/": 2, "options": 2, "checkpoints.md": 2}
BOOST |= {"fidelity.md": 0.3, "api/": 0.3, "CHANGELOG.md": 0.3}


def beside() -> dict[str, str]:
    """Page of the site -> its file in the checkout, for pages that are not in docs/."""
    recipes = sorted(path.relative_to(CHECKOUT).as_posix() for path in CHECKOUT.glob("examples/*/README.md"))
    return {
        "index.md": "README.md",
        "CHANGELOG.md": "CHANGELOG.md",
        "CONTRIBUTING.md": "CONTRIBUTING.md",
        "notebook.md": "examples/notebook.ipynb",
        **{path: path for path in recipes},
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    logging.getLogger().setLevel(logging.WARNING)  # fairseq sets DEBUG
    for page, path in beside().items():
        if path.endswith(".ipynb"):
            text, found = MarkdownExporter().from_filename(str(CHECKOUT / path))
            files.append(File.generated(config, page, content=text))
            for name, picture in found["outputs"].items():
                files.append(File.generated(config, name, content=picture))
        else:
            files.append(File.generated(config, page, abs_src_path=str(CHECKOUT / path)))
    files.append(File.generated(config, "options.md", content=make_options.page()))
    files.append(File.generated(config, "options-verbs.md", content=make_options.verbs_page()))
    return files


def relinked(markdown: str, page: str, pages: set[str]) -> str:
    """The text of a page with links as the site has them.

    Args:
        markdown: as it stands in the checkout.
        page: its name on the site.
        pages: all names on the site.
    """
    places = beside()
    names = {path: name for name, path in places.items()}
    folder = posixpath.dirname(places.get(page, f"docs/{page}"))

    def link(match: re.Match) -> str:
        path, mark, anchor = match["url"].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, path))
        if (CHECKOUT / target).is_dir():
            target += "/README.md"
        name = names.get(target, target.removeprefix("docs/"))
        if name in pages:
            return f"[{match['text']}]({posixpath.relpath(name, posixpath.dirname(page) or '.')}{mark}{anchor})"
        # what leads nowhere stays, for mkdocs to report
        return match["text"] if (CHECKOUT / folder / path).exists() else match[0]

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def with_formulas(markdown: str) -> str:
    """The text of a page with formulas, `$…$` and `$$…$$` outside code, as MathML, which needs no script."""

    def mathml(match: re.Match) -> str:
        if match["code"]:
            return match[0]
        if match["block"]:
            return f'<div class="formula">{convert(match["block"], display="block")}</div>'
        # a line that began with <math> would be a block of its own
        return f"<span>{convert(match['inline'])}</span>"

    parts = CODE.split(markdown)
    parts[::2] = [MATH.sub(mathml, part) for part in parts[::2]]
    return "".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the checkout into links of the site, set formulas, and say what the search puts first."""
    for name, boost in BOOST.items():
        if page.file.src_uri.startswith(name):
            page.meta["search"] = {"boost": boost}
    pages = {file.src_uri for file in files if not file.inclusion.is_excluded()}
    return with_formulas(relinked(markdown, page.file.src_uri, pages))
