"""The site: it builds without a warning, dead links and anchors among them, and is read without a network."""

import json
import re
import subprocess
import sys

import pytest
from contract.command_lines import REPOSITORY, _load

site_pages = _load(REPOSITORY / "docs" / "site_pages.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site):
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    docs = {
        path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix() for path in REPOSITORY.glob("docs/**/*.md")
    }
    beside = {name.removesuffix(".md").replace("README", "index") for name in site_pages.beside()}
    assert pages - {"404"} == docs | beside | {"options", "options-verbs"}
    assert len(beside) >= 15


def test_it_is_read_without_a_network(site):
    """Links may lead to the web; what a page loads may not."""
    loaded = re.compile(r"""<(?:script|img|iframe)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*href="?(?:https?:)?//""")
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        assert not re.search(r"""url\(["']?(https?:)?//|@import""", style.read_text(encoding="utf-8")), style
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    boosts = {entry["location"].partition("#")[0]: entry.get("boost", 1) for entry in index["docs"]}
    assert max(boosts, key=boosts.get) == "troubleshooting.html"
    # the search, where pages are files: no worker may be started from one
    assert (site / "search" / "search_index.js").stat().st_size > 100_000
    assert "iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
