"""Convergence diagnostics through ArviZ: R-hat, effective sample size, and ArviZ data."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import MissingExtraError
from factorwise.inference.exports import optional

if TYPE_CHECKING:
    from factorwise.inference.mcmc.run import Samples


def to_arviz(samples: Samples) -> Any:
    """Return the score, the number of clusters and the recorded pairs for ArviZ.

    The result is an ``arviz.InferenceData``, or from ArviZ 1 on an ``xarray.DataTree`` with the same groups.
    Its variables are ``score`` and, for partition worlds, ``n_clusters`` and ``together`` (0 or 1 for each
    pair). All ArviZ functions work on it.
    """
    arviz = _arviz()
    posterior: dict[str, NDArray[Any]] = {"score": samples.scores}
    dims: dict[str, list[str]] = {}
    coords: dict[str, list[str]] = {}
    if samples.n_clusters.size:
        posterior["n_clusters"] = samples.n_clusters.astype(float)
    if samples.together.size:
        posterior["together"] = samples.together.astype(float)
        dims["together"] = ["pair"]
        coords["pair"] = [f"{i}-{j}" for i, j in samples.pairs.tolist()]
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, dims=dims, coords=coords)
    return arviz.from_dict(posterior=posterior, dims=dims, coords=coords)


def to_xarray(samples: Samples) -> Any:
    """Return the draws as an ``xarray.Dataset`` over chains and draws.

    Its variables are ``score``, ``n_clusters`` and ``together`` for partition worlds, and ``probability`` of
    the labels for assignment worlds.
    """
    chains, draws = samples.scores.shape
    data: dict[str, Any] = {"score": (("chain", "draw"), samples.scores)}
    coords: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    if samples.n_clusters.size:
        data["n_clusters"] = (("chain", "draw"), samples.n_clusters)
    if samples.together.size:
        data["together"] = (("chain", "draw", "pair"), samples.together)
        coords["pair"] = [f"{i}-{j}" for i, j in samples.pairs.tolist()]
    if samples.label_counts.size:
        data["probability"] = (("variable", "label"), samples.label_marginals())
    return optional("xarray").Dataset(data, coords=coords)


def to_pandas(samples: Samples) -> Any:
    """Return the draws as a ``pandas.DataFrame`` with a row for each draw of each chain."""
    chains, draws = samples.scores.shape
    columns: dict[str, Any] = {
        "chain": np.repeat(np.arange(chains), draws),
        "draw": np.tile(np.arange(draws), chains),
        "score": samples.scores.ravel(),
    }
    if samples.n_clusters.size:
        columns["n_clusters"] = samples.n_clusters.ravel()
    for number, (i, j) in enumerate(samples.pairs.tolist() if samples.together.size else []):
        columns[f"{i}-{j}"] = samples.together[:, :, number].ravel()
    return optional("pandas").DataFrame(columns)


def r_hat(samples: Samples) -> float:
    """Return the rank-normalised split R-hat of the score, which is near 1 if the chains agree.

    It is NaN if all scores are equal, because there is nothing to compare, and for fewer than two chains or
    four draws. It is infinite if every chain stays at a score of its own.

    Implements: vehtari2021rank, by ArviZ.
    """
    arviz, scores = _arviz(), np.asarray(samples.scores)
    if not np.ptp(scores, axis=1).any():  # ArviZ would divide by zero
        return float("inf") if np.ptp(scores) else float("nan")
    return float(arviz.rhat(scores))


def effective_sample_size(samples: Samples) -> float:
    """Return the bulk effective sample size of the score."""
    return float(_arviz().ess(np.asarray(samples.scores)))


def pair_effective_sample_size(samples: Samples) -> NDArray[np.float64]:
    """Return the effective sample size of each recorded pair's co-clustering.

    NaN for a pair that never changed.
    """
    arviz = _arviz()
    together = samples.together.astype(float)
    sizes = [
        float(arviz.ess(together[:, :, k], method="mean")) if np.ptp(together[:, :, k]) else np.nan
        for k in range(together.shape[2])
    ]
    return np.array(sizes)


def _arviz() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next major version
            import arviz
    except ImportError as fault:
        raise MissingExtraError(
            "diagnostics need ArviZ, which is not installed: pip install 'factorwise[diagnostics]'."
        ) from fault
    return arviz
