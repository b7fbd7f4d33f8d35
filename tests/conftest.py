"""What all tests share: seeds, the search for counterexamples, and a cache folder of the checkout's own."""

import gc
import hashlib
import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from factorwise.cli.main import SELDOM

FIRST_SEED = 20_261

# Files that compile the same kernels, by how their paths begin: one worker runs them. Two would both compile
# what is not yet on disk, and parts of kernels never are (see `inner` in kernels/compile/compiler.py).
TOGETHER = {
    "clusterings": (
        "tests/apps/alignment/",
        "tests/apps/coreference/",
        "tests/cli/test_align",
        "tests/cli/test_bad_input",
        "tests/cli/test_coref",
        "tests/cli/test_endings",
        "tests/cli/test_mistakes",
        "tests/cli/test_same_bytes",
        "tests/cli/test_tampered",
        "tests/inference/mcmc/",
        "tests/learning/test_adaptive",
        "tests/learning/test_contrastive",
        "tests/learning/test_relocation",
        "tests/learning/test_sample",
        "tests/model/test_partition",
    ),
    "chains": (
        "tests/apps/tagging/",
        "tests/kernels/chains/test_chain",
        "tests/kernels/chains/test_rows",
        "tests/kernels/chains/test_second_order",
        "tests/learning/",
    ),
    "messages": ("tests/inference/exact/", "tests/inference/message_passing/"),
}

# The same examples in every run, so that a red test is red again; `--hypothesis-profile=explore` searches on.
settings.register_profile(
    "fixed", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", parent=settings.get_profile("fixed"), derandomize=False, max_examples=1_000
)
settings.load_profile("fixed")


def pytest_configure(config):
    """Keep compiled code out of the user's home, but where the next run of this checkout finds it.

    Look for cycles of objects as seldom as the command line does. Heed Ctrl-C, which some tests send: a shell
    starts jobs in the background with it ignored. And keep linear algebra to one thread: matrices are small
    here, and threads that wait for each other by spinning make SciPy's optimizers a hundred times slower
    beside another worker.
    """
    gc.set_threshold(*SELDOM)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not os.environ.get("FACTORWISE_CACHE"):
        if config.pluginmanager.hasplugin("cacheprovider"):
            folder = config.cache.mkdir("factorwise")
            folder.chmod(0o700)  # code is only read from a private folder
        else:
            folder = tempfile.mkdtemp(prefix="factorwise-tests-")
        os.environ["FACTORWISE_CACHE"] = str(folder)
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = str(Path(os.environ["FACTORWISE_CACHE"]) / f"kernels-{_digest()}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute by file, as `--dist loadfile` does, but keep together what is to be `TOGETHER`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FamilyScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            families = (name for name, begins in TOGETHER.items() if nodeid.startswith(begins))
            return next(families, super()._split_scope(nodeid))

    return FamilyScheduling(config, log)


def _digest():
    """Hash the kernels: the compiler does not notice when a kernel changes that lies in another file."""
    kernels = Path(__file__).parents[1] / "src" / "factorwise" / "kernels"
    texts = b"".join(path.read_bytes() for path in sorted(kernels.rglob("*.py")))
    return hashlib.sha256(texts).hexdigest()[:12]


def _seeds():
    count = os.environ.get("FACTORWISE_TEST_SEEDS", "1")
    if not count.isdecimal() or int(count) < 1:
        raise pytest.UsageError(f"FACTORWISE_TEST_SEEDS is {count!r}: set it to 1 or more.")
    return range(FIRST_SEED, FIRST_SEED + int(count))


@pytest.fixture(params=_seeds())
def seed(request):
    """One fixed seed, or as many as FACTORWISE_TEST_SEEDS says."""
    return request.param
