"""The first block of docs/own-worlds.md, a world written from the outside, as a reader would have it."""

import re
import tempfile
from functools import cache
from pathlib import Path
from runpy import run_path

PAGE = Path(__file__).parents[1] / "docs" / "own-worlds.md"
LONGEST = 100  # lines of a world written from the outside


@cache
def load_page():
    """Return the names that the block defines, read from a file: compiling needs the source of functions."""
    block = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[
        0
    ]
    assert len(block.splitlines()) < LONGEST
    path = Path(tempfile.mkdtemp()) / "own_world.py"
    path.write_text(block, encoding="utf-8")
    return run_path(str(path))
