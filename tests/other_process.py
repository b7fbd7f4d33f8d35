"""The same computation in another process, where everything differs that results must not depend on."""

import os
import subprocess
import sys

# Here numba takes all processors and linear algebra one thread (see conftest).
OTHER_THREADS = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}


def in_another_process(script, *folders):
    """Run a script that imports from these folders, with other threads and hashes; return what it prints."""
    paths = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **OTHER_THREADS, "PYTHONHASHSEED": "7", "PYTHONPATH": paths}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()
