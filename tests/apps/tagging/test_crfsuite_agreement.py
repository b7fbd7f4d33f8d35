"""The optimum is that of CRFsuite: numbers from sklearn-crfsuite 0.5.0 with python-crfsuite 0.9.12.

They were computed on the same sentences, with epsilon=1e-9, delta=1e-12, period=20; weights to four digits,
marginals to five. Not compared: real-valued features whose values sum to less than zero with some label,
which CRFsuite leaves out.
"""

from typing import NamedTuple

import pytest

from factorwise import ChainCRF
from tagging_cases import BIO, task


class Optimum(NamedTuple):
    """What sklearn-crfsuite found.

    objective
        Loss and penalty.
    active
        How many weights are not zero.
    weights
        Of ("w:a", "O"), ("s:Bq", "B-X"), ("s:Ip", "I-X"), then of B-X before I-X, and O before B-X.
    marginals
        Of O, B-X and I-X at the second token of sentence 5 of other sentences.
    predicted
        First letters of the labels of these other sentences.
    """

    objective: float
    active: int
    weights: tuple[float, ...]
    marginals: tuple[float, ...]
    predicted: str


NAMES = (("w:a", "O"), ("s:Bq", "B-X"), ("s:Ip", "I-X"), ("B-X", "I-X"), ("O", "B-X"))
CASES = {
    "L2": (
        {"c1": 0.0, "c2": 1.0},
        Optimum(
            58.058068,
            33,
            (0.3438, 0.6216, 0.6115, 1.398, 0.3255),
            (0.18253, 0.40951, 0.40795),
            "BO|OBOB|OBBIII|OB|OOB|BIBI|OB|OBBIIO|OBIOO|BOOOOO|B|B|OOBOO|BIIB|OBO|BIOOOB|O|BOB|O|OOB|B|OBIBI|B"
            "|OBOBI|OOBI",
        ),
    ),
    "elastic net": (
        {"c1": 0.1, "c2": 0.1},
        Optimum(
            40.698963,
            25,
            (0.5549, 0.7226, 1.5896, 3.2894, 0.1701),
            (0.05339, 0.72736, 0.21925),
            "BO|OBOB|OBIBII|OB|OOB|OBBI|OB|OBBIIO|OBIOO|BIOOOO|O|O|OOBII|BIIB|OBO|BIOOOB|O|BOB|O|OOB|O|OBIII|B"
            "|OBIIO|OBIB",
        ),
    ),
    "all states": (
        {"c2": 1.0, "all_possible_states": True},
        Optimum(
            55.914891,
            41,
            (0.3511, 0.6031, 0.5475, 1.3943, 0.3324),
            (0.15778, 0.47114, 0.37108),
            "BO|OBOB|OBBIII|OB|OOB|BIBI|OB|OBBIIO|OBIOO|BOOOOO|B|B|OOBII|BIIB|OBO|BIOOOB|O|BOB|O|OOB|B|OBIBI|B"
            "|OBOBI|OOOB",
        ),
    ),
    "all transitions": (
        {"c2": 1.0, "all_possible_transitions": True},
        Optimum(
            56.661721,
            34,
            (0.334, 0.6047, 0.6295, 1.2064, 0.1762),
            (0.17842, 0.41452, 0.40706),
            "BO|OBOB|OBBIII|OB|OOB|BIBI|OB|OBBIIO|OBIOO|BOOOOO|B|O|OOBOO|BIII|OBO|BIOOOB|O|BOB|O|OOB|O|OBIBI|B"
            "|OBOBI|OOBI",
        ),
    ),
    "all of both, elastic net": (
        {"c1": 0.1, "c2": 0.1, "all_possible_transitions": True, "all_possible_states": True},
        Optimum(
            39.046128,
            34,
            (0.5921, 0.6869, 1.3792, 2.6355, -0.102),
            (0.03796, 0.76841, 0.19363),
            "BO|OBOB|OBIBII|OB|OOB|OBBI|OO|OBBIIO|OBIOO|BIOOOO|O|O|OOBII|BIIB|OBO|BIOOOB|O|BOB|O|OOB|O|OBIII|B"
            "|OBIIO|BIOB",
        ),
    ),
    "min_freq": (
        {"c2": 1.0, "min_freq": 4},
        Optimum(
            59.35485,
            26,
            (0.3294, 0.6351, 0.0, 1.4786, 0.4295),
            (0.17525, 0.45678, 0.36797),
            "BI|OBIB|OBBIII|OB|OOB|BIBI|OB|OBBIIO|OBIOO|BOOOOO|B|O|OOBOO|BBIB|OBI|BIOOOB|O|BOB|O|OOB|O|OBIBI|B"
            "|OBOBI|OOBI",
        ),
    ),
    "real values": (
        {"c2": 1.0},
        Optimum(
            41.037722,
            36,
            (-0.558, 0.4566, 0.7276, 1.5426, 0.3763),
            (0.88884, 0.08994, 0.02122),
            "BI|BIBI|O|OB|BIB|OOOOB|OBOO|BIO|OOOB|OO|OOBIBI|IOBIBI|BIO|BOBIOB|OOB|O|OB|IOB|OO|OBI|OBI|OBOBII"
            "|OB|OBI|OOO",
        ),
    ),
    "real values, min_freq": (
        {"c2": 1.0, "min_freq": 5.5},
        Optimum(
            45.634462,
            21,
            (0.0, 0.659, 0.0, 1.7254, 0.5316),
            (0.87607, 0.0954, 0.02853),
            "BI|BIBI|O|OB|BIB|OOOOB|OBOO|BIO|OOOB|OO|OOBIBI|IOBIBI|BIO|BOBIOB|OOB|O|OB|BIB|OO|OBI|OBI|OBIBBI"
            "|OB|OBI|OOO",
        ),
    ),
    "real values, elastic net": (
        {"c1": 0.1, "c2": 0.1},
        Optimum(
            25.211465,
            30,
            (-1.4082, 0.4992, 1.6209, 3.0436, 0.4833),
            (0.96912, 0.02889, 0.00199),
            "BI|BIBI|O|OB|BIB|OOOOB|OBIO|BIO|OOOB|OO|OOBIII|IOBIBI|BIO|BOBIOB|OOB|O|OB|BIB|OO|BBI|BBI|OBOBII"
            "|OB|OBI|OOB",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_weights_marginals_and_predictions_are_those_of_crfsuite(case):
    settings, wanted = CASES[case]
    valued = case.startswith("real")
    model = ChainCRF(epsilon=1e-9, delta=1e-12, period=20, **settings).fit(*task(valued=valued))
    X, _ = task(8, valued=valued)
    found = model.state_features_ | model.transition_features_
    assert model.classes_ == list(BIO)
    assert model.objective_ == pytest.approx(wanted.objective, rel=1e-6)
    assert len(found) == wanted.active
    assert [found.get(name, 0.0) for name in NAMES] == pytest.approx(wanted.weights, abs=1e-3)
    marginals = model.predict_marginals(X)[5][1]
    assert [marginals[label] for label in BIO] == pytest.approx(wanted.marginals, abs=1e-4)
    assert "|".join("".join(label[0] for label in labels) for labels in model.predict(X)) == wanted.predicted


def test_min_freq_leaves_out_what_asking_for_everything_would_add():
    settings, wanted = CASES["min_freq"]
    everything = {"all_possible_states": True, "all_possible_transitions": True}
    model = ChainCRF(epsilon=1e-9, delta=1e-12, period=20, **settings, **everything).fit(*task())
    assert model.objective_ == pytest.approx(wanted.objective, rel=1e-6)
