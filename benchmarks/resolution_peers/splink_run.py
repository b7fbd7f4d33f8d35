"""Run splink on the halves of one set, in splink's own environment; a line of JSON tells what it cost.

    splink_run.py SET fit RECORDS MODEL
    splink_run.py SET choose TRAIN MODEL          (the threshold that is best on labelled records)
    splink_run.py SET apply TEST MODEL THRESHOLD OUT
    splink_run.py SET sweep TEST MODEL TRUTH      (the threshold that would have been best)
    splink_run.py SET score RECORDS MODEL OUT     (fit on the records, and write their scored pairs)

Weights are estimated without labels. ``choose`` uses those of the training half, ``sweep`` those of the test.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import duckdb
from measuring import THRESHOLDS, b_cubed_f1, best_threshold, cost_since, read_entities
from splink import DuckDBAPI, Linker, SettingsCreator
from splink_sets import SETUPS, Setup

SEED = 0
RANDOM_PAIRS = 1e6


def load(path: Path, setup: Setup, threads: int) -> tuple[DuckDBAPI, Any]:
    connection = duckdb.connect()
    connection.execute(f"SET threads TO {threads}")
    names = connection.execute(
        "SELECT column_name FROM (DESCRIBE FROM read_csv(?, all_varchar = true, header = true))", [str(path)]
    ).fetchall()
    columns = [
        f'nullif(trim("{name}"), \'\') AS "{name}"' for (name,) in names if name not in ("id", "entity")
    ]
    connection.execute(
        f"CREATE TABLE given AS SELECT id AS unique_id, {', '.join(columns)}"
        " FROM read_csv(?, all_varchar = true, header = true)",
        [str(path)],
    )
    derived = "".join(f", {expression} AS {name}" for name, expression in setup.derived.items())
    connection.execute(f"CREATE TABLE records AS SELECT *{derived} FROM given")
    connection.execute("DROP TABLE given")
    api = DuckDBAPI(connection=connection)
    return api, api.register("records")


def fit(setup: Setup, records: Path, model: Path, threads: int) -> None:
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=list(setup.comparisons),
        blocking_rules_to_generate_predictions=list(setup.blocking),
        retain_matching_columns=False,
    )
    linker = Linker(load(records, setup, threads)[1], settings, log_level=None)
    train = linker.training
    train.estimate_probability_two_random_records_match(list(setup.certain), recall=setup.recall)
    train.estimate_u_using_random_sampling(max_pairs=RANDOM_PAIRS, seed=SEED)
    for rule in setup.training:
        train.estimate_parameters_using_expectation_maximisation(rule)
    linker.misc.save_model_to_json(str(model), overwrite=True)


class Fitted:
    """A saved model over the records of one file."""

    def __init__(self, setup: Setup, records: Path, model: Path, threads: int) -> None:
        self.linker = Linker(load(records, setup, threads)[1], str(model), log_level=None)

    def pairs(self, threshold: float) -> Any:
        """Return the blocked pairs whose probability to match is above a threshold."""
        return self.linker.inference.predict(threshold_match_probability=threshold)

    def clusters(self, pairs: Any, threshold: float) -> Any:
        """Return a relation with the columns ``id`` and ``entity``."""
        grouped = self.linker.clustering.cluster_pairwise_predictions_at_threshold(
            pairs, threshold_match_probability=threshold
        )
        return grouped.as_duckdbpyrelation().project("unique_id AS id, cluster_id AS entity")

    def scores(self, truth: dict[str, str]) -> dict[float, float]:
        """Return the B-cubed F1 at each threshold."""
        pairs = self.pairs(THRESHOLDS[0])
        return {
            threshold: b_cubed_f1(truth, dict(self.clusters(pairs, threshold).fetchall()))
            for threshold in THRESHOLDS
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("set", choices=SETUPS)
    parser.add_argument("phase", choices=("fit", "choose", "apply", "sweep", "score"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--began", type=float, required=True, help="when this process was started")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    setup, records, model = SETUPS[options.set], Path(options.paths[0]), Path(options.paths[1])
    result: dict[str, Any] = {}
    if options.phase == "fit":
        fit(setup, records, model, options.threads)
    elif options.phase == "apply":
        fitted, threshold = Fitted(setup, records, model, options.threads), float(options.paths[2])
        fitted.clusters(fitted.pairs(threshold), threshold).write_csv(options.paths[3], header=True)
    elif options.phase == "score":
        fit(setup, records, model, options.threads)
        pairs = Fitted(setup, records, model, options.threads).pairs(THRESHOLDS[0])
        pairs.as_duckdbpyrelation().write_parquet(options.paths[2])
    else:
        truth = read_entities(records if options.phase == "choose" else Path(options.paths[2]))
        scores = Fitted(setup, records, model, options.threads).scores(truth)
        result = {"threshold": best_threshold(scores), "f1": max(scores.values()), "scores": scores}
    print(json.dumps(result | cost_since(options.began)))


if __name__ == "__main__":
    main()
