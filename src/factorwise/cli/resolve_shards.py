"""What ``resolve fit`` and ``resolve apply`` say about shards and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.files import STANDARD
from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.cli.progress import peak_memory

if TYPE_CHECKING:  # numba and Arrow take their time to load
    from factorwise.apps.resolution.sharded import Shards

DEFAULT_SHARDS = 16
MANIFESTS = "manifest-??????.json"  # in the folder of a checkpoint of shards
LEAST_RECORDS = 10_000  # of a shard, for it to be worth its overhead


def shard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of work in shards."""
    for option in (
        click.option(
            "--ray",
            metavar="ADDRESS|auto|local",
            help="Work on a Ray cluster: one that runs at ADDRESS, the one that this machine is part of, or"
            " one started here for the run.",
        ),
        click.option(
            "--shards",
            type=click.IntRange(1, 10_000),
            metavar="K",
            help="Work in K shards of entities.  [default: 16 with --ray, else all in one]",
        ),
    ):
        command = option(command)
    return command


def check_checkpoint_address(checkpoint: str, in_shards: bool) -> bool:
    """Say whether a checkpoint goes to the address of a store, which only a search in shards can use."""
    if "://" not in checkpoint:
        return False
    if not in_shards:
        raise click.UsageError(
            f"--checkpoint {checkpoint!r} is the address of a store: that needs --ray or --shards. Give a"
            " folder instead."
        )
    from factorwise.io.shard_files import ShardStore

    ShardStore(checkpoint).reach()
    return True


def check_checkpoint_mode(checkpoint: str, in_shards: bool) -> None:
    """Refuse a folder that has the checkpoint of a search of the other kind."""
    from factorwise.io.checkpoints import FILE

    folder = Path(checkpoint)
    if in_shards and (folder / FILE).exists():
        other = "without --shards and --ray"
    elif not in_shards and any(folder.glob(MANIFESTS)):
        other = "with --shards or --ray"
    else:
        return
    raise click.UsageError(
        f"--checkpoint {checkpoint!r} has the checkpoint of a run {other}: go on with that, give another"
        " folder, or remove it to begin anew."
    )


def is_kept(checkpoint: str) -> bool:
    """Whether a folder has a checkpoint of either kind."""
    from factorwise.io.checkpoints import FILE

    return (Path(checkpoint) / FILE).exists() or any(Path(checkpoint).glob(MANIFESTS))


def remark_on_shards(options: Options, shards: int | None, records: int) -> None:
    """Say so where shards are so small that they cost more than they save, and refuse more than records."""
    count = DEFAULT_SHARDS if shards is None else shards
    if shards is not None and shards > max(records, 1):
        raise click.UsageError(
            f"--shards {shards} is more than there are records, {records:,}: give fewer, each of"
            f" {LEAST_RECORDS:,} records or more."
        )
    if count > 1 and records < count * LEAST_RECORDS:
        notice(
            options,
            f"{count} shards of {records:,} records have fewer than {LEAST_RECORDS:,} each: a search in one"
            " piece, without --shards and --ray, is faster.",
        )


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
def opened_shards(ray: str | None, shards: int | None, threads: int | None) -> Iterator[Shards | None]:
    """Yield who runs the shards, if there are to be any; a cluster that was started here ends with it."""
    if ray is None and shards is None:
        yield None
        return
    from factorwise.apps.resolution.sharded import Shards
    from factorwise.distributed.executors import LocalExecutor
    from factorwise.distributed.ray_executor import RayExecutor
    from factorwise.distributed.search import Sharding

    sharding = Sharding(DEFAULT_SHARDS if shards is None else shards)
    if ray is None:
        yield Shards(LocalExecutor(threads), sharding)
        return
    with RayExecutor(ray, threads) as executor:
        yield Shards(executor, sharding)
