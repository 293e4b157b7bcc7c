"""What pyproject.toml cannot say: the wheel has examples/ in it, for `fairseq-syntax examples --copy`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

here = Path(__file__).parent


class BuildWithExamples(build_py):
    """The package, with examples/ in it."""

    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copytree(
                here / "examples",
                Path(self.build_lib, "fairseq_syntax", "examples"),
                ignore=shutil.ignore_patterns("__pycache__", "outputs", ".*"),
                dirs_exist_ok=True,
            )


setup(cmdclass={"build_py": BuildWithExamples})
