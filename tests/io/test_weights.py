"""Saved weights: back into a model with the same blocks, refused by any other."""

import numpy as np
import pytest

from factorwise.errors import ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.weights import load_weights, save_weights, weight_blocks
from factorwise.model.model import Model
from factorwise.model.template import Template


class Named(Template):
    """A template that only has a name and a size; nothing here asks for more."""

    def __init__(self, name, size):
        self.name, self.size = name, size


def model(*blocks):
    return Model([Named(name, size) for name, size in blocks])


@pytest.fixture
def path(tmp_path):
    first = model(("bias", 2), ("pair", 3))
    first.weights = [1.0, 2.0, 3.0, 4.0, 5.0]
    save_weights(tmp_path / "model.fw", first, provenance={"seed": 3})
    return tmp_path / "model.fw"


def test_saved_weights_come_back(path):
    second = model(("bias", 2), ("pair", 3))
    load_weights(path, second)
    np.testing.assert_array_equal(second.weights, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert read_model(path).provenance == {"seed": 3}


def test_blocks_are_matched_by_name_not_by_order(path):
    second = model(("pair", 3), ("bias", 2))
    load_weights(path, second)
    np.testing.assert_array_equal(second.block("bias"), [1.0, 2.0])
    np.testing.assert_array_equal(second.block("pair"), [3.0, 4.0, 5.0])


@pytest.mark.parametrize("blocks", [[("bias", 2)], [("bias", 3), ("pair", 2)], [("bias", 2), ("other", 3)]])
def test_other_blocks_are_refused_and_the_model_is_left_alone(path, blocks):
    second = model(*blocks)
    with pytest.raises(ModelFileError, match=r"'bias': 2, 'pair': 3.*Build the model with the templates"):
        load_weights(path, second)
    assert not second.weights.any()


GOOD = {"names": ["a", "b"], "sizes": [1, 2]}


@pytest.mark.parametrize(
    ("blocks", "weights"),
    [
        (None, np.zeros(3)),
        ({"names": ["a", "b"]}, np.zeros(3)),
        ({"names": ["a"], "sizes": [1, 2]}, np.zeros(3)),
        ({"names": ["a", "a"], "sizes": [1, 2]}, np.zeros(3)),
        ({"names": ["a", 3], "sizes": [1, 2]}, np.zeros(3)),
        ({"names": ["a", "b"], "sizes": [-1, 4]}, np.zeros(3)),
        (GOOD, np.zeros(4)),
        (GOOD, np.zeros((3, 1))),
        (GOOD, np.zeros(3, dtype=np.int64)),
    ],
)
def test_blocks_that_do_not_fit_their_weights_are_refused(tmp_path, blocks, weights):
    path = tmp_path / "model.fw"
    write_model(path, ModelFile(kind="weights", metadata={"blocks": blocks}, arrays={"weights": weights}))
    assert weight_blocks(read_model(path)) is None
    with pytest.raises(ModelFileError, match="not written by save_weights"):
        load_weights(path, model(("a", 1), ("b", 2)))


def test_where_the_blocks_lie_is_told(path):
    assert weight_blocks(read_model(path)) == {"bias": slice(0, 2), "pair": slice(2, 5)}
