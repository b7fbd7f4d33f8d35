"""Marginals of one variable from a sample of its factors: Figure 1 of the paper on Monte Carlo MCMC.

    python experiments/factor_sampling_synthetic.py
    python experiments/factor_sampling_synthetic.py --quick

A variable of two labels has 100 unary factors, with scores from N(0.5, 1) for the true label and N(-0.5, 1)
for the other. Every Gibbs step draws a label from its conditional distribution, estimated from some of the
factors; the share of the steps at each label estimates the marginals. Plotted is the L1 error of the
marginals against the factors examined so far, mean and standard error over 100 models.

With scores of that size the variable's true marginal is 1 to many digits. The scale multiplies all scores:
at 0.01 the marginal is about 0.73, and the intervals the paper names, up to 0.05, fit the spread of the
scores; at 1 they would make every step examine nearly everything, so there they are 100 times wider. Sampling
by confidence looks from the second factor on; one setting is tried with a first look after ten.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc import ConfidenceSample, UniformSample
from factorwise.inference.mcmc.evaluators.sampled import EstimateName

OUT = Path(__file__).parent / "out"
FACTORS = 100
SHARES = (1.0, 0.75, 0.5, 0.2, 0.1)
INTERVALS = (0.001, 0.005, 0.01, 0.05)  # at scale 0.01; in proportion elsewhere
LATER = 0.01  # the interval that is tried with a later first look
ROWS = 128  # steps at a time: small arrays are not handed back to the system each time
GOALS = (0.1, 0.05)
PAPER = (
    "paper: the time to a given error falls steadily as p falls or i rises; the gain then slows, and at the\n"
    "       extremes (p = 0.1, i = 0.05) a chain may do worse than regular MCMC"
)

Float64s = NDArray[np.float64]
Sampler = UniformSample | ConfidenceSample


class Curve(NamedTuple):
    """The error of one method.

    error, deviation : float64[points]
        Mean over the models at each number of factors examined, and its standard error.
    per_step
        Mean number of factors that a step examines.
    bias
        The error that remains however many steps are made, from the mean of all conditional probabilities.
    """

    error: Float64s
    deviation: Float64s
    per_step: float
    bias: float


def samplers(scale: float, estimate: EstimateName) -> dict[str, Sampler]:
    """Every setting of the paper by name, the exact one first."""
    found: dict[str, Sampler] = {f"p = {share:g}": UniformSample(share, estimate) for share in SHARES}
    for interval in INTERVALS:
        wide = interval * scale / 0.01
        found[f"i = {wide:g}"] = ConfidenceSample(wide, minimum=2, estimate=estimate)
    wide = LATER * scale / 0.01
    found[f"i = {wide:g} from 10"] = ConfidenceSample(wide, minimum=10, estimate=estimate)
    return found


def models(count: int, scale: float, rng: np.random.Generator) -> Float64s:
    """Draw for each model the lead of the true label in each factor."""
    true, false = rng.normal(0.5, 1.0, (count, FACTORS)), rng.normal(-0.5, 1.0, (count, FACTORS))
    return scale * (true - false)


def measure(sampler: Sampler, leads: Float64s, points: NDArray[np.int64], rng: np.random.Generator) -> Curve:
    """Walk in every model until the last of ``points`` is spent, and note the error at each."""
    errors, cost, biases = [], [], []
    for lead in leads:
        truth = _sigmoid(lead.sum())
        gains, examined = _steps(sampler, lead, int(points[-1]), rng)
        hits = rng.random(len(gains)) < _sigmoid(gains)
        spent = np.cumsum(examined)
        steps = np.maximum(np.searchsorted(spent, points, side="right"), 1)  # a first step is always made
        estimates = np.cumsum(hits)[steps - 1] / steps
        errors.append(2.0 * np.abs(estimates - truth))
        cost.append(float(examined.mean()))
        biases.append(2.0 * abs(float(_sigmoid(gains).mean()) - truth))
    table = np.array(errors)
    return Curve(
        table.mean(axis=0),
        table.std(axis=0, ddof=1) / np.sqrt(len(table)),
        float(np.mean(cost)),
        float(np.mean(biases)),
    )


def _steps(
    sampler: Sampler, lead: Float64s, budget: int, rng: np.random.Generator
) -> tuple[Float64s, NDArray[np.int64]]:
    """Estimate the lead anew for each step, until the budget of factors is spent."""
    gains, examined, left = [], [], budget
    rows = np.tile(lead, (ROWS, 1))
    while left > 0:
        found = estimate_rows(sampler, rng.permuted(rows, axis=1))
        gains.append(found[0])
        examined.append(found[1])
        left -= int(found[1].sum())
    return np.concatenate(gains), np.concatenate(examined)


def estimate_rows(sampler: Sampler, ordered: Float64s) -> tuple[Float64s, NDArray[np.int64]]:
    """Estimate many gains at once, each from one population; return them and how many factors each took.

    ordered : float64[draws, factors]
        In each row signed changes, in the random order in which the sampler would draw them.
    """
    factors = ordered.shape[1]
    total = np.cumsum(ordered, axis=1)
    sizes = np.full(len(ordered), factors)
    if isinstance(sampler, UniformSample):
        sizes[:] = sampler.count(factors)
    elif factors > 1:
        looks = np.array(sampler.looks(factors))
        squares = np.cumsum(ordered**2, axis=1)[:, looks - 1]
        seen = total[:, looks - 1]
        variance = np.maximum(squares - seen**2 / looks, 0.0) / (looks - 1)
        width = 2.0 * sampler.z * np.sqrt(variance / looks * (factors - looks) / (factors - 1))
        narrow = width < sampler.interval
        sizes = np.where(narrow.any(axis=1), looks[np.argmax(narrow, axis=1)], sizes)
    gains = total[np.arange(len(ordered)), sizes - 1]
    return np.asarray(gains * (factors / sizes) if sampler.estimate == "mean" else gains), sizes


def _sigmoid(score: Float64s | float) -> Float64s:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -700.0, 700.0))))


def tell(scale: float, estimate: EstimateName, found: dict[str, Curve], points: NDArray[np.int64]) -> None:
    """Print one table: factors until each goal, and how that compares with examining everything."""
    print(f"\nscale {scale:g}, estimate {estimate!r} ({'default' if estimate == 'mean' else 'the paper'})")
    heads = "".join(f"{f'to {goal:g}':>9}{'x fewer':>9}" for goal in GOALS)
    print(f"  {'':<16}{'factors a step':>15}{heads}{'error at the end':>20}{'bias':>9}")
    reached = {name: [_first(curve.error, goal, points) for goal in GOALS] for name, curve in found.items()}
    exact = reached["p = 1"]
    for name, curve in found.items():
        cells = ""
        for mine, all_of_them in zip(reached[name], exact, strict=True):
            fewer = f"{all_of_them / mine:.2f}" if mine and all_of_them else "-"
            cells += f"{f'{mine:,}' if mine else 'never':>9}{fewer:>9}"
        end = f"{curve.error[-1]:.4f} +- {curve.deviation[-1]:.4f}"
        print(f"  {name:<16}{curve.per_step:>15.1f}{cells}{end:>20}{curve.bias:>9.4f}")


def _first(error: Float64s, goal: float, points: NDArray[np.int64]) -> int:
    """Return after how many factors the mean error is at most ``goal``; 0 for never."""
    low = np.flatnonzero(error <= goal)
    return int(points[low[0]]) if len(low) else 0


def draw(results: dict[tuple[float, EstimateName], dict[str, Curve]], points: NDArray[np.int64]) -> None:
    """One panel per scale and estimate."""
    figure, panels = plt.subplots(1, len(results), figsize=(4.2 * len(results), 3.8), squeeze=False)
    for panel, ((scale, estimate), found) in zip(panels[0], results.items(), strict=True):
        for name, curve in found.items():
            style = "-" if name.startswith("p") else "--"
            panel.errorbar(points, curve.error, curve.deviation, label=name, linestyle=style, linewidth=1)
        panel.set_xscale("log")
        panel.set_yscale("symlog", linthresh=0.01)
        panel.set_ylim(bottom=0.0)
        panel.set_title(f"scale {scale:g}, {estimate}")
        panel.set_xlabel("factors examined")
    panels[0][0].set_ylabel("L1 error of the marginals")
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "factor_sampling_synthetic.png", dpi=150)
    print(f"\ndrawn: {OUT.name}/factor_sampling_synthetic.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--scales", type=float, nargs="*", default=[0.01, 1.0])
    parser.add_argument("--budget", type=int, default=50_000, help="factors examined in each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="ten models, to see that it runs")
    options = parser.parse_args()
    count, budget = (10, 5_000) if options.quick else (options.models, options.budget)
    points = np.unique(np.geomspace(FACTORS, budget, 40).astype(np.int64))
    began = time.process_time()
    results: dict[tuple[float, EstimateName], dict[str, Curve]] = {}
    estimates: Sequence[EstimateName] = ("mean", "sum")
    for scale in options.scales:
        leads = models(count, scale, np.random.default_rng([options.seed, count]))
        truths = _sigmoid(leads.sum(axis=1))
        print(
            f"\nscale {scale:g}: {count} models of {FACTORS} factors, true marginals {truths.min():.4f} to"
            f" {truths.max():.4f}, mean {truths.mean():.4f}"
        )
        for estimate in estimates:
            found = {
                name: measure(sampler, leads, points, np.random.default_rng([options.seed, place]))
                for place, (name, sampler) in enumerate(samplers(scale, estimate).items())
            }
            tell(scale, estimate, found, points)
            results[scale, estimate] = found
    print(f"\n{PAPER}\n({time.process_time() - began:.0f} CPU s)")
    draw(results, points)


if __name__ == "__main__":
    main()
