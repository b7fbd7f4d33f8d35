"""Where ``resolve apply`` works, and where it leaves checkpoints and parts: clusters, folders and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.files import STANDARD
from factorwise.cli.options import Options
from factorwise.cli.progress import peak_memory

if TYPE_CHECKING:  # numba and Arrow take their time to load
    import pyarrow as pa

    from factorwise.distributed.executors import Executor

ray_option = click.option(
    "--ray",
    metavar="ADDRESS|auto|local",
    help="Work in tasks of a Ray cluster: one that runs at ADDRESS, the one that this machine is part of, or"
    " one started here for the run. All its machines must reach the files by the same paths.",
)


def check_checkpoint_address(checkpoint: str) -> bool:
    """Say whether a checkpoint goes to the address of a store."""
    if "://" not in checkpoint:
        return False
    from factorwise.io.shard_files import ShardStore

    ShardStore(checkpoint).reach()
    return True


def is_kept(checkpoint: str) -> bool:
    """Whether a folder, by path or address, has a checkpoint of either kind."""
    from factorwise.errors import DataFileError
    from factorwise.io.checkpoints import FILE
    from factorwise.io.shard_files import ShardStore

    try:
        return (Path(checkpoint) / FILE).exists() or ShardStore(checkpoint).latest("", begun=True) is not None
    except (DataFileError, OSError):  # a store that cannot be reached now must not cost what was found
        return False


def made_where(
    ray: str | None,
    inputs: Sequence[str | Path | None],
    options: Options,
    work: Callable[[Options, Any], dict[str, Any]],
    request: Any,
) -> dict[str, Any]:
    """Return what ``work`` makes of a request: here, or with ``--ray`` in a task of the cluster.

    The task reads and writes by the same paths; this process holds nothing but what it returns.
    """
    if ray is None:
        return work(options, request)
    if STANDARD in map(str, inputs):
        raise click.UsageError(
            "with --ray, files are read in tasks, which have no standard input: give the path of a file that"
            " all machines reach."
        )
    from factorwise.distributed.ray_executor import RayExecutor

    with RayExecutor(ray, options.threads) as executor:
        made: dict[str, Any] = executor.call(work, options, request)
    return made | {"driver_memory": peak_memory()}


@contextmanager
def opened_executor(ray: str | None, threads: int | None) -> Iterator[Executor | None]:
    """Yield the cluster, if there is to be one; a cluster that was started here ends with it."""
    if ray is None:
        yield None
        return
    from factorwise.distributed.ray_executor import RayExecutor

    with RayExecutor(ray, threads) as executor:
        yield executor


def write_parts(folder: str, table: pa.Table, ray: str | None, threads: int | None) -> None:
    """Write a table as a folder of Parquet files, which tasks write if there is a cluster."""
    from factorwise.distributed.executors import LocalExecutor
    from factorwise.io.tables.parts import cut_parts, end_parts, write_part

    with opened_executor(ray, threads) as executor:
        tasks = ((folder, number, part) for number, part in enumerate(cut_parts(table)))
        names = [name for _, name in (executor or LocalExecutor(threads)).stream(write_part, tasks)]
    end_parts(folder, names)
