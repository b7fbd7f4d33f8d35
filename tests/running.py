"""Scripts run as a reader runs them, but in this process: what it has compiled serves them, too."""

import contextlib
import io
import runpy


def run_script(path, folder):
    """Run a script in a folder, where warnings are errors as in all tests; return what it prints."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()
