"""What a user can ask of ``factorwise resolve apply``, and which of it goes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from factorwise.cli.files import can_write, check_tables
from factorwise.cli.report_sections import check_report
from factorwise.cli.resolve.data import check_outputs, check_sources
from factorwise.cli.resolve.onto import check_onto
from factorwise.cli.resolve.shards import check_checkpoint_address
from factorwise.errors import InvalidArgumentError

MOST_DRAWN = 1_000_000  # records of which a report has doubtful pairs unasked: of more, drawing takes minutes


def check_memory(text: str) -> None:
    """Refuse what is no size of memory."""
    from factorwise.apps.resolution.memory import parse_memory

    try:
        parse_memory(text)
    except InvalidArgumentError as error:
        raise click.UsageError(f"--memory: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveRequest:
    """What the user asked for; the fields are the options of the verb, ``reading`` those of all its kind."""

    files: tuple[str, ...]
    model: Path | None
    output: Path | None
    parts: str | None
    fields: Path | None
    about: tuple[str, ...]
    must_link: str | None
    cannot_link: str | None
    one_per_source: bool
    entities: Path | None
    canonical: Path | None
    posterior: bool
    pairs: Path | None
    second_best: Path | None
    for_spreadsheets: bool
    onto: str | None
    old: str | None
    rounds: int | None
    seconds: float | None
    report: Path | None
    no_values: bool
    ray: str | None
    checkpoint: str | None
    checkpoint_seconds: float | None
    memory: str | None = None
    dry_run: bool = False
    rule: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)

    def draws(self, records: int, ended: bool) -> bool:
        """Whether other clusterings of so many records are to be drawn.

        ended
            Whether the walk came to its end: if somebody or the time ended it, only what was asked for is
            drawn.
        """
        if self.posterior or self.pairs is not None or self.second_best is not None:
            return True
        return self.report is not None and records <= MOST_DRAWN and ended

    def targets(self) -> dict[str, Path | None]:
        """Return the tables to be written, the one that tells that all is done last."""
        return {
            "--entities": self.entities,
            "--canonical": self.canonical,
            "--pairs": self.pairs,
            "--second-best": self.second_best,
            "--output": self.output,
        }

    def outputs(self) -> dict[str, Path | None]:
        """Return all files to be written."""
        return {**self.targets(), "--report": self.report}

    def inputs(self) -> list[str | Path | None]:
        """Return all files to be read, as far as they were given."""
        others = [self.model, self.fields, self.must_link, self.cannot_link, self.onto, self.old]
        return [*self.files, *others, self.reading.get("scores")]

    def check(self) -> None:
        """Refuse options that do not go together, and files that could not be written."""
        if self.memory is not None:
            check_memory(self.memory)
        check_report(self.report, self.no_values)
        check_outputs(self.outputs(), *self.inputs())
        check_tables(self.targets())
        unused = {"--checkpoint": self.checkpoint, "--ray": self.ray}
        check_onto(self.onto, self.old, unused)
        if self.dry_run and self.onto is not None:
            raise click.UsageError("--dry-run counts what resolving all records takes; leave out --onto.")
        if self.onto is not None and self.model is None:
            raise click.UsageError("--onto needs --model: the one that the entities were found with.")
        if self.fields is not None and self.model is not None:
            raise click.UsageError(
                "--fields is for resolving without a model; --model has fields of its own."
            )
        if self.about and self.model is not None:
            raise click.UsageError(
                "--about is for resolving without a model; --model knows what it is about."
            )
        if self.one_per_source and self.reading["source"] is None:
            if self.onto is not None:
                raise click.UsageError(
                    "--one-per-source with --onto needs --source COLUMN, a column of new and old records."
                )
            check_sources(self.one_per_source, None, self.files)
        self._check_checkpoint()
        if self.parts is not None and not self.dry_run:  # last, because it makes the folder
            from factorwise.io.tables.parts import begin_parts

            begin_parts(self.parts)

    def _check_checkpoint(self) -> None:
        """Refuse a checkpoint that could not be written."""
        if self.checkpoint_seconds is not None and self.checkpoint is None:
            raise click.UsageError("--checkpoint-seconds says how often: give --checkpoint FOLDER, too.")
        if self.checkpoint is None or check_checkpoint_address(self.checkpoint):
            return
        folder = Path(self.checkpoint)
        try:
            place = next(one for one in (folder, *folder.resolve().parents) if one.exists())
        except OSError as error:
            raise click.UsageError(f"--checkpoint cannot be used: {error.strerror or error}.") from error
        if not place.is_dir() or not can_write(place):
            why = "cannot be written to" if place.is_dir() else "is no folder"
            raise click.UsageError(f"--checkpoint {self.checkpoint!r}: {str(place)!r} {why}.")
