"""Ray for tests: small, quick to notice what is lost, on the loopback interface, and never for long."""

import os
import secrets
import signal
import tempfile
from pathlib import Path

import pytest

LIMIT = 180  # seconds that a test may take, with what it starts
SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(100 * 2**20),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # rows of small shards shall lie on the nodes, where they can be lost, and not with the driver
    "RAY_max_direct_call_object_size": "1500",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_failure_threshold": "3",
}


@pytest.fixture(scope="session", autouse=True)
def _ray_settings():
    """What Ray reads when it is imported, and workers when they start; tests import it after this."""
    # a folder with a short name: that of a socket may not be long
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
    ):
        patch.setenv("RAY_TMPDIR", folder)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
        here = str(Path(__file__).parents[1])
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        )
        yield


@pytest.fixture(autouse=True)
def _time_limit():
    """End a test that hangs, and say where it was."""

    def over(*_):
        raise TimeoutError(f"the test took more than {LIMIT} seconds")

    earlier = signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, earlier)
