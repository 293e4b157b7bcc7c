"""Shared by all tests: settings of hypothesis, the slow marker, where the real data is."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# where changes are judged, the same examples each time
settings.register_profile("tests", max_examples=20, deadline=None, derandomize="CI" in os.environ)
settings.load_profile("tests")

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.append(str(REPOSITORY / "tests"))  # for `strategies` and `oracles`
# The programs of this environment, also where it is not activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def pytest_addoption(parser):
    parser.addoption("--run-slow", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--seed-shift", type=int, default=0, metavar="N", help="add N to the seed of every training (tests/seeds.py)"
    )


def pytest_configure(config):
    import seeds

    seeds.SHIFT = config.getoption("--seed-shift")


# What `make test` leaves out: files and folders here, and single tests that are marked `full`.
FULL = (
    *("benchmarks", "examples", "integration", "contract/test_bad_input.py", "contract/test_damaged_checkpoints.py"),
    *("contract/test_examples.py", "contract/test_notebook.py"),
    *("contract/test_site.py", "contract/test_imports.py", "contract/test_repairs.py", "contract/test_results.py"),
    *("contract/test_shadow_modules.py", "unit/tools/test_average.py", "unit/tools/test_whatif.py"),
    *("unit/tools/test_odd_treebanks.py", "unit/tools/test_parse.py", "unit/tools/test_parse_own.py"),
    *("unit/data/test_missing_parses.py", "unit/pictures/test_figures.py"),
)
# of these, what it runs: a tiny training and translation of every system
TINY = ("test_every_system_trains_resumes_and_translates",)
TINY_FILE = "integration/test_families.py"


def pytest_ignore_collect(collection_path, config):
    """Files without a test to run are not imported."""
    place = collection_path.relative_to(REPOSITORY / "tests")
    left_out = any(place.is_relative_to(part) for part in FULL) and not Path(TINY_FILE).is_relative_to(place)
    return True if left_out and config.option.markexpr == "not full" else None


def pytest_collection_modifyitems(config, items):
    for item in items:
        place = item.path.relative_to(REPOSITORY / "tests")
        if any(place.is_relative_to(part) for part in FULL) and getattr(item, "originalname", "") not in TINY:
            item.add_marker("full")
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow: give --run-slow")
    for item in items:
        if item.get_closest_marker("slow"):  # not `keywords`, where the names of all folders above are, too
            item.add_marker(skip)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with multi30k/, ud/, tanaka/ and stanza_en/; tests that need it skip where it is absent.

    FAIRSEQ_SYNTAX_DATA names it; otherwise a folder shared/data beside the checkout is taken.
    """
    path = Path(os.environ.get("FAIRSEQ_SYNTAX_DATA", REPOSITORY.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"real data not found at {path}; set FAIRSEQ_SYNTAX_DATA to run this test")
    return path
