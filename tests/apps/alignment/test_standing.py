"""Places among rivals, and anchors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.alignment.structure import anchors, standing


def test_places_count_from_the_best_and_ties_share_one():
    pairs = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [2, 1], [2, 2]])
    place, lead = standing(np.array([0.5, 0.9, 0.5, 0.2, 0.7, 0.7]), pairs, 0)
    assert place.tolist() == [1, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(lead, [-0.4, 0.4, -0.4, 0.2, 0, 0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=30))
def test_places_and_leads_are_what_the_definition_says(rows):
    rows = list({(a, b): (a, b, s) for a, b, s in rows}.values())
    pairs = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    score = np.array([row[2] for row in rows], dtype=np.float64)
    for side in (0, 1):
        place, lead = standing(score, pairs, side)
        for row in range(len(rows)):
            rivals = [
                s for other, s in enumerate(score) if other != row and pairs[other, side] == pairs[row, side]
            ]
            assert place[row] == sum(s > score[row] for s in rivals)
            assert lead[row] == score[row] - max([*rivals, 0.0 if not rivals else -1.0])


def test_anchors_are_mutual_clear_and_good():
    pairs = np.array([[0, 0], [0, 1], [1, 1], [2, 2], [3, 3], [3, 4]])
    found = anchors(np.array([0.9, 0.95, 0.9, 0.5, 0.9, 0.9]), pairs, (5, 5), 0.85)
    assert np.argwhere(found.toarray()).tolist() == [[0, 1]]
