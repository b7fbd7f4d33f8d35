"""The wheel: what is in it, how large it is, and that it works where nothing else of the checkout is."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = (
    2_100_000  # bytes; the charting library of the reports is a tenth of that, the citation reader a seventh
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "py.typed",
        "report/assets/chart.min.js",
        "report/assets/report.js",
        "report/assets/report.css",
    ):
        assert f"factorwise/{wanted}" in names
    others = [name for name in names if not name.startswith("factorwise")]
    assert others == []
    assert not [name for name in names if "reference" in Path(name).parts], "the twins are part of the tests"
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbc", ".nbi"))]
    assert wheel.stat().st_size < LARGEST


def test_the_wheel_works_without_the_checkout(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "installed"),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    code = (
        "import sys, factorwise\n"
        "from factorwise.cli.main import main\n"
        "from factorwise.report import Facts, Report\n"
        "assert Report(title='t', sections=[Facts(title='f', rows=[])], version='1').to_html()\n"
        "print(factorwise.__file__, file=sys.stderr)\n"
        "main(['doctor', '--json'])\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert str(tmp_path / "installed") in done.stderr
    assert json.loads(done.stdout)
