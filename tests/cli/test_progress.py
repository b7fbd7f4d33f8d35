"""What runs tell of their cost."""

import subprocess
import sys

import numpy as np


def test_the_peak_of_a_process_is_its_own_not_that_of_the_one_that_started_it():
    large = np.ones(50_000_000)  # 400 MB
    code = "from factorwise.cli.progress import peak_memory; print(peak_memory())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert 10**6 < int(done.stdout) < large.nbytes
