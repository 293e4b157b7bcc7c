"""Packaging of fairseq-syntax. The version lives in fairseq_syntax/version.py."""

from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = {}
exec((here / "fairseq_syntax" / "version.py").read_text(encoding="utf8"), version)

DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.8,<10", "mkdocstrings[python]>=1.0,<2"]

setup(
    name="fairseq-syntax",
    version=version["__version__"],
    description="Syntax for fairseq: PASCAL, LISA, latent trees, syntax-directed attention and more as a plug-in",
    long_description=(here / "README.md").read_text(encoding="utf8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["fairseq_syntax", "fairseq_syntax.*"]),
    package_data={"fairseq_syntax.inspection.report": ["page.css", "page.js"]},
    # fairseq itself is not listed: pip would replace a working one (a source checkout, say) and cannot
    # build fairseq-fixed in an isolated environment. `make install` adds it when it is missing.
    # Lower ends are the versions that were tried, upper ends the next major version.
    install_requires=[
        "torch>=2.13,<2.14",
        "numpy>=2.4,<3",
        "sacrebleu>=2.6,<3",
        "scipy>=1.17,<2",
        "subword-nmt>=0.3.8,<0.4",
        "stanza>=1.15,<2",
        "matplotlib>=3.11,<4",
        "tqdm>=4.70,<5",
        # without it, every command of fairseq asks for it
        "tensorboardX>=2.6,<3",
    ],
    extras_require={
        "fairseq": ["fairseq-fixed==0.12.3.1"],
        "completion": ["shtab>=1.7,<2"],
        "spacy": ["spacy>=3.8,<4"],
        "docs": DOCS,
        "dev": [
            *DOCS,
            "conllu>=6,<7",
            "coverage>=7.17,<8",
            "hypothesis>=6.170,<7",
            "import-linter>=2.16,<3",
            "mpmath>=1.3,<2",
            "networkx>=3.6,<4",
            "playwright>=1.65,<2",
            "pytest>=9,<10",
            "pytest-xdist>=3.8,<4",
            "ruff>=0.17.5,<0.18",
            "sentencepiece>=0.2,<0.3",
            "shtab>=1.7,<2",
            "spacy>=3.8,<4",
        ],
    },
    entry_points={"console_scripts": ["fairseq-syntax = fairseq_syntax.cli.program:main"]},
)
