"""Saved proposers come back as they were, and what is no proposer is refused."""

import numpy as np
import pytest

from factorwise.errors import ModelFileError
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.io.models.files import ModelFile, write_model
from factorwise.io.models.proposers import KIND, load_proposer, save_proposer

WEIGHTS = JumpWeights(("alike", "log size"), np.array([0.5, -1.0]), np.array([2.0, 1e-300]), (0.2, 0.7, 0.1))


def test_weights_names_and_kinds_come_back(tmp_path):
    save_proposer(tmp_path / "p.fw", WEIGHTS)
    found = load_proposer(tmp_path / "p.fw")
    assert found.names == WEIGHTS.names
    assert found.kinds == WEIGHTS.kinds
    assert np.array_equal(found.vector, WEIGHTS.vector)


@pytest.mark.parametrize(
    ("names", "split", "kinds"),
    [
        (["alike"], [0.5, -1.0], [0.5, 0.5, 0.0]),
        (["alike", 3], [0.5, -1.0], [0.5, 0.5, 0.0]),
        (["alike", "log size"], [0.5, np.nan], [0.5, 0.5, 0.0]),
        (["alike", "log size"], [0.5, -1.0], [0.5, -0.5, 0.0]),
        (["alike", "log size"], [0.5, -1.0], ["often", 0.5, 0.0]),
        (["alike", "log size"], [0.5, -1.0], None),
    ],
    ids=["too few names", "a name that is a number", "nan", "negative kind", "kind in words", "no kinds"],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, names, split, kinds):
    arrays = {"split": np.array(split), "merge": np.zeros(2)}
    metadata = {"names": names, "kinds": kinds}
    write_model(tmp_path / "p.fw", ModelFile(kind=KIND, metadata=metadata, arrays=arrays))
    with pytest.raises(ModelFileError, match="do not fit together"):
        load_proposer(tmp_path / "p.fw")


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_model(tmp_path / "w.fw", ModelFile(kind="weights", metadata={}, arrays={"weights": np.zeros(2)}))
    with pytest.raises(ModelFileError):
        load_proposer(tmp_path / "w.fw")
