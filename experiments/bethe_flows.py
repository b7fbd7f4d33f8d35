"""Flows of birds and bikes from counts alone, against the true ones and against simple rules.

Used by bethe_collective.py. The birds are simulated by the model of a public challenge (true weights 5, 10,
10, 10), the bikes are real. A model learns from the counts of some years or days; flows are found and scored
on others. Overlap is the share of members whose move is right, of all and of those that move at all.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from factorwise.apps.collective import Counts, Flows, TransitionFeatures, Transitions
from factorwise.apps.collective.estimator import CollectiveModel
from factorwise.apps.collective.learning import fewest_moves
from factorwise.datasets.local import find_data
from factorwise.metrics.flows import FlowScore, score_flows

OUT = Path(__file__).parent / "out"
BIRD_WEIGHTS = np.array([5.0, 10.0, 10.0, 10.0])
BIRD_FEATURES = ("distance", "heading", "wind", "stay")
WINDS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=float)
FARTHEST = 3 * 2**0.5  # cells that a bird flies in a night at most
RIDING = 70  # the place of bikes that are under way
TRAINING = range(1, 240, 24)  # days of the year, January to August
HELD_OUT = range(305, 364, 3)  # November and December
PERIODS = {"morning": range(6, 10), "midday": range(10, 15), "evening": range(15, 20)}

Scores = dict[str, FlowScore]


def birds() -> None:
    """Learn from three years, score on three others; then the weights of the challenge's million birds."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    for cells, axis in ((6, axes[0]), (10, axes[1])):
        saved = np.load(find_data(f"cgm_ppaml_birds/sim-{cells}x{cells}x1000-seed1.npz"))
        seen, wind = saved["y"].astype(float), saved["wind"]
        true = np.zeros((*wind.shape, cells**2, cells**2))
        year, night, start, end, members = saved["flows"].T
        true[year, night, start, end] = members
        train, test = range(3), range(3, 6)
        passes: list[np.ndarray] = []
        begin = time.process_time()
        model = CollectiveModel(population=1_000.0).fit(
            _years(seen, train),
            features=_bird_features(cells, wind[:3]),
            callback=lambda _, weights, passes=passes: passes.append(weights.copy()),
        )
        seconds = time.process_time() - begin
        weights = ", ".join(f"{weight:.2f}" for weight in model.weights_)
        print(
            f"birds, {cells} x {cells} cells: weights {weights} after {len(passes)} passes,"
            f" {seconds:.1f} CPU s"
        )
        counts, features = _years(seen, test), _bird_features(cells, wind[3:])
        found = _by_rules([1_000 * _scaled(seen[k]) for k in test], _bird_distance(cells))
        found["learned from counts"] = _expected(model.predict(counts, features=features))
        model.weights_ = BIRD_WEIGHTS
        found["true weights"] = _expected(model.predict(counts, features=features))
        _print({name: _score(flows, true[3:]) for name, flows in found.items()})
        axis.plot(np.arange(1, len(passes) + 1), np.array(passes), label=BIRD_FEATURES)
        for weight in set(BIRD_WEIGHTS):
            axis.axhline(weight, color="gray", linewidth=0.5, linestyle="--")
        axis.set(xlabel="pass of hard EM", ylabel="weight", title=f"{cells} x {cells} cells, 1,000 birds")
        axis.legend()
    _save(fig, "bethe_collective_birds.png")
    _million()


def _million() -> None:
    folder = find_data("cgm_ppaml_birds")
    table = np.genfromtxt(folder / "10x10x1000000-train-observations.csv", delimiter=",", skip_header=1)
    winds = np.genfromtxt(folder / "10x10x1000000-train-wind-recovered.csv", delimiter=",", skip_header=1)
    years = np.unique(table[:, 0])
    seen = np.stack([table[table[:, 0] == year, 2:] for year in years])
    wind = np.stack([winds[winds[:, 0] == year, 2] for year in years]).astype(int)
    begin = time.process_time()
    model = CollectiveModel(population=1e6).fit(
        _years(seen, range(len(years))), features=_bird_features(10, wind)
    )
    weights = ", ".join(f"{weight:.3f}" for weight in model.weights_)
    seconds = time.process_time() - begin
    print(f"released counts of a million birds: weights {weights}, {seconds:.1f} CPU s (true: 5, 10, 10, 10)")


def bikes() -> None:
    """Learn from days of January to August, score on days of November and December."""
    folder = find_data("cgm_bikeshare")
    saved = np.load(folder / "hourly.npz")
    node, flow = saved["node"].astype(float), saved["flow"]
    with (folder / "stations.csv").open(encoding="utf-8") as stream:
        stations = list(csv.DictReader(stream))
    features, distance = _bike_features(stations)
    begin = time.process_time()
    model = CollectiveModel(noise="exact", passes=15, gap=1e-5, tolerance=1e-5)
    model.fit(_days(node, TRAINING), features=features)
    seconds = time.process_time() - begin
    print(f"bikes: {len(TRAINING)} days, {len(model.history_)} passes, {seconds:.1f} CPU s")
    true = np.stack([_bike_flows(node, flow, day) for day in HELD_OUT])
    days = [node[24 * day : 24 * day + 25] for day in HELD_OUT]
    found = _by_rules(days, distance)
    counts = _days(node, HELD_OUT)
    found["learned from counts"] = _expected(model.predict(counts))
    known = sum(_bike_flows(node, flow, day) for day in TRAINING)
    model.weights_ = Transitions(features, model.l2).fit(known, model.weights_)
    found["learned from flows"] = _expected(model.predict(counts))
    scores = {name: _score(flows, true) for name, flows in found.items()}
    _print(scores)
    print("  flows of all hours and days together")
    _print({name: _score(flows.sum(axis=(0, 1)), true.sum(axis=(0, 1))) for name, flows in found.items()})
    fig, axis = plt.subplots(figsize=(7, 4))
    axis.barh(list(scores), [100 * score.moved_overlap for score in scores.values()])
    axis.set(xlabel="bikes whose move is right, of those that move (%)", title="bike share, held-out days")
    _save(fig, "bethe_collective_bikes.png")


def _years(seen: np.ndarray, which: Sequence[int]) -> Counts:
    return Counts.of(seen[list(which)])


def _bird_position(cells: int) -> np.ndarray:
    return np.array([divmod(k, cells) for k in range(cells * cells)], dtype=float)


def _bird_distance(cells: int) -> np.ndarray:
    place = _bird_position(cells)
    return np.linalg.norm(place[None] - place[:, None], axis=2)


def _bird_features(cells: int, wind: np.ndarray) -> TransitionFeatures:
    """The four features of the challenge, by year and night."""
    place, far = _bird_position(cells), _bird_distance(cells)
    moved = far > 0
    safe = np.where(moved, far, 1.0)
    near = np.where(moved, 4 * np.exp(-((np.log(safe) - 1) ** 2) / 2) / (safe * np.sqrt(2 * np.pi)), 0.0)
    toward = (place[None] - place[:, None]) / safe[:, :, None]
    goal = np.full(2, cells - 1.0) - place
    goal /= np.maximum(np.linalg.norm(goal, axis=1, keepdims=True), 1e-12)
    heading = np.einsum("ijk,ik->ij", toward, goal)
    values = np.stack(
        [np.stack([near, heading, toward @ blow, 2.0 * ~moved], axis=2) for blow in WINDS], axis=0
    )
    possible = np.broadcast_to(far <= FARTHEST + 1e-9, values.shape[:3])
    steps = product(range(len(wind)), range(wind.shape[1]))
    table_of = {(str(year + 1), str(night)): int(wind[year, night]) for year, night in steps}
    return TransitionFeatures(
        tuple(map(str, range(cells * cells))), BIRD_FEATURES, values, possible, table_of
    )


def _days(node: np.ndarray, days: Sequence[int]) -> Counts:
    return Counts.of(np.stack([node[24 * day : 24 * day + 25] for day in days]))


def _bike_flows(node: np.ndarray, flow: np.ndarray, day: int) -> np.ndarray:
    """True flows of a day; the table has those that move, the others stay."""
    found = np.zeros((24, node.shape[1], node.shape[1]))
    own = flow[(flow[:, 0] >= 24 * day) & (flow[:, 0] < 24 * day + 24)]
    np.add.at(found, (own[:, 0] - 24 * day, own[:, 1], own[:, 2]), own[:, 3])
    stay = node[24 * day : 24 * day + 24] - found.sum(axis=2)
    diagonal = np.arange(node.shape[1])
    found[:, diagonal, diagonal] += stay
    return found


def _bike_features(stations: list[dict[str, str]]) -> tuple[TransitionFeatures, np.ndarray]:
    """Staying and classes of distance by period of the day, rides that have not ended, and other cities."""
    place = np.array([[float(row["lat"]), float(row["long"])] for row in stations])
    scale = np.array([111.2, 111.2 * np.cos(np.radians(37.6))])
    size = len(stations) + 1
    far = np.full((size, size), 1.0)
    far[:-1, :-1] = np.linalg.norm((place[None] - place[:, None]) * scale, axis=2)
    far[RIDING, RIDING] = 0.0
    city = np.array([*(row["landmark"] for row in stations), "riding"])
    others = city[:, None] != city[None]
    others[RIDING] = others[:, RIDING] = False
    between = ~np.eye(size, dtype=bool)
    between[RIDING] = between[:, RIDING] = False
    same = between & ~others
    starts, ends = (np.zeros((size, size)) for _ in range(2))
    starts[:RIDING, RIDING] = ends[RIDING, :RIDING] = 1.0
    cuts = np.quantile(far[same], [0.2, 0.4, 0.6, 0.8])
    classes = [same & (np.searchsorted(cuts, far) == k) for k in range(len(cuts) + 1)]
    docks = np.array([*(np.log(float(row["docks"])) for row in stations), 0.0]) - np.log(18)
    general = {
        "stay": np.eye(size),
        **{f"distance class {k + 1}": mask for k, mask in enumerate(classes)},
        "other city": others,
        "ride goes on": np.diag(np.arange(size) == RIDING),
        "ride begins": starts,
        "ride ends": ends,
        "docks": np.broadcast_to(docks, (size, size)) * between,
    }
    names = [*general, *(f"{name}, {p}" for p in PERIODS for name in ("stay", "ride begins"))]
    fixed = [np.asarray(mask, dtype=float) for mask in general.values()]
    tables = []
    for hour in range(24):
        timed = [now * (hour in hours) for hours in PERIODS.values() for now in (fixed[0], starts)]
        tables.append(np.stack([*fixed, *timed], axis=2))
    places = tuple(map(str, range(size)))
    values = np.stack(tables)
    possible = np.ones(values.shape[:3], dtype=bool)
    return TransitionFeatures(
        places, tuple(names), values, possible, {(None, str(hour)): hour for hour in range(24)}
    ), far


def _scaled(counts: np.ndarray) -> np.ndarray:
    """Counts as shares at each time."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _by_rules(days: Sequence[np.ndarray], distance: np.ndarray) -> dict[str, np.ndarray]:
    """Return the flows of rules that learn nothing."""
    rules: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "nobody moves": lambda here, _: np.diag(here),
        "independent": lambda here, there: np.outer(here, there) / here.sum(),
        "gravity": lambda here, there: _gravity(here, there, distance),
        "least moves, anywhere": fewest_moves,
        "least moves, nearest": lambda here, there: _nearest(here, there, distance),
    }
    return {
        name: np.stack([np.stack([rule(day[t], day[t + 1]) for t in range(len(day) - 1)]) for day in days])
        for name, rule in rules.items()
    }


def _gravity(here: np.ndarray, there: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Members go where many arrive, the less the farther: by the mean distance to the power of minus two."""
    usual = distance[distance > 0].mean()
    pull = there[None] / (1.0 + distance / usual) ** 2
    return here[:, None] * pull / np.maximum(pull.sum(axis=1, keepdims=True), 1e-300)


def _nearest(here: np.ndarray, there: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """As many stay as can; the others go to where members are wanted, the shortest ways first."""
    stay = np.minimum(here, there)
    left, wanted, found = here - stay, there - stay, np.diag(stay)
    givers, takers = np.flatnonzero(left > 0), np.flatnonzero(wanted > 0)
    pairs = sorted(product(givers.tolist(), takers.tolist()), key=lambda pair: distance[pair])
    for i, j in pairs:
        moved = min(left[i], wanted[j])
        found[i, j] += moved
        left[i] -= moved
        wanted[j] -= moved
    return found


def _expected(flows: Flows) -> np.ndarray:
    return np.stack([series.expected for series in flows.series])


def _score(found: np.ndarray, true: np.ndarray) -> FlowScore:
    return score_flows(found, true, np.eye(true.shape[-1], dtype=bool))


def _print(scores: Scores) -> None:
    print(f"  {'':24}  overlap  of moves  relative error")
    for name, score in scores.items():
        shares = f"{100 * score.overlap:6.1f} %  {100 * score.moved_overlap:6.1f} %"
        print(f"  {name:24} {shares}  {score.relative_error:14.3f}", flush=True)


def _save(figure: Any, name: str) -> None:
    OUT.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(OUT / name, dpi=120)
    plt.close(figure)
