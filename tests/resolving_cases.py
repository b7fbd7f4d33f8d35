"""Tasks of resolving that wait to be killed; workers of a cluster import them by name."""

import os
import time
from pathlib import Path

from shard_cases import _node


class Waiting:
    """A function of tasks, the first attempt at which waits to be killed, on the first machine that makes it.

    Every attempt leaves a file that says on which node it was made.
    """

    def __init__(self, function, folder):
        self.function, self.folder, self.__name__ = function, Path(folder), function.__name__

    def __call__(self, *arguments):
        (self.folder / f"attempt-{time.time_ns()}-{os.getpid()}-{_node()}").touch()
        try:
            (self.folder / "waiting").open("x").close()
        except FileExistsError:
            return self.function(*arguments)
        partial = self.folder / "node.part"
        partial.write_text(_node())
        partial.rename(self.folder / "node")
        time.sleep(60.0)
        return self.function(*arguments)


def node_that_waits(folder, seconds=60.0):
    """Wait for a task that waits to be killed, and return its node."""
    end = time.monotonic() + seconds
    while not (Path(folder) / "node").exists():
        if time.monotonic() > end:
            raise TimeoutError("no task came to wait")
        time.sleep(0.02)
    return (Path(folder) / "node").read_text()


def nodes_of_attempts(folder):
    """Return the node of each attempt, in their order."""
    return [path.name.split("-", 3)[3] for path in sorted(Path(folder).glob("attempt-*"))]


def call_that_waits(folder, *arguments):
    """A call of which the first attempt waits; it uses the cluster itself."""
    from factorwise.distributed.ray_executor import RayExecutor

    print("begun", flush=True)  # noqa: T201 - printing is what is tested
    with RayExecutor("auto") as executor:
        return Waiting(executor.map, folder)(divmod, [arguments, arguments])
