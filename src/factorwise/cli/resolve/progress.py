"""How finding entities goes: what is being done, and rounds of the walk or groups of items."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from tqdm import tqdm

from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.cli.progress import show_progress

if TYPE_CHECKING:  # numba takes its time to load
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.apps.resolution.scored_pairs.clusterer import PairClusterer
    from factorwise.inference.mcmc.shards.search import SearchProgress


def telling(options: Options) -> Callable[[str], None]:
    """Return what tells which part of the work begins, if somebody looks on or wants to know more."""
    wanted = options.verbose or show_progress(options)

    def tell(text: str) -> None:
        if wanted:
            click.echo(text, err=True)

    return tell


def draw_clusterings(
    options: Options, estimator: EntityResolver | PairClusterer, found: Resolution
) -> tuple[Resolution, bool]:
    """Return the answer with draws of other clusterings, and whether they were completed."""
    try:
        return estimator.draw(found), True
    except KeyboardInterrupt:
        notice(options, "interrupted while other clusterings were drawn: uncertain pairs are not reported.")
        return found, False


class WalkBar:
    """Shows rounds of the walk, or groups that are searched one by one, until its block ends.

    That is a bar if somebody looks on, and lines with ``--verbose``.

    rounds
        That are walked in any case; more may follow until nothing is gained.
    seconds
        After which no round or group begins; None for any time.
    """

    def __init__(self, options: Options, rounds: int, seconds: float | None) -> None:
        self._verbose, self._rounds, self._seconds = options.verbose, rounds, seconds
        shown = show_progress(options) and not options.verbose
        form = "{desc} {percentage:3.0f}%|{bar:12}| {elapsed}{postfix}"
        self._bar = tqdm(
            total=rounds, desc="walking", disable=not shown, leave=False, bar_format=form, mininterval=0
        )
        self._first: SearchProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def __call__(self, progress: SearchProgress) -> None:
        """Show one round or group."""
        text = progress_text(progress, self._first, self._rounds, self._seconds)
        self._first = self._first or progress
        if self._verbose:
            most = "of" if progress.unit == "group" else "of at most"
            click.echo(f"{progress.unit} {progress.round} {most} {progress.of}: {text}", err=True)
        if progress.unit == "group" or progress.round > self._rounds:
            self._bar.total = progress.of
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(progress.round - self._bar.n)


def progress_text(
    progress: SearchProgress, first: SearchProgress | None, rounds: int, seconds: float | None
) -> str:
    """Say how the walk stands: score, clusters, proposals a second, and the time left.

    The time left is that of the rounds that are walked in any case, or at most that of all that may follow.
    Of groups, it is that of all which are left; their proposals are not counted.

    first
        The first round or group of the run, which is not counted in the speed: it may have waited for the
        compiler.
    """
    by_groups = progress.unit == "group"
    done, proposals, spent = progress.round, progress.proposals, progress.seconds
    if first is not None:
        done, proposals = done - first.round, proposals - first.proposals
        spent -= first.seconds
    spent = max(spent, 1e-9)
    certain = by_groups or progress.round < rounds
    last = rounds if certain and not by_groups else progress.of
    left = (last - progress.round) * spent / max(done, 1)
    if seconds is not None:
        left = min(left, max(seconds - progress.seconds, 0.0))
    rate = "" if by_groups else f"{_short(proposals / spent)} proposals a second, "
    return (
        f"score {progress.score:,.1f}, {progress.clusters:,} clusters, {rate}"
        f"{'' if certain else 'at most '}{left:,.0f} s left"
    )


def _short(number: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"
