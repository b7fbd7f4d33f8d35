"""Parameters of estimators that do not load scikit-learn."""

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from factorwise.apps.parameters import ParameterEstimator
from factorwise.errors import InvalidArgumentError


class Threshold(ParameterEstimator):
    def __init__(self, *, limit=1.0, names=()):
        self.limit = limit
        self.names = names

    def fit(self, records, entity=None):
        return self


def test_parameters_are_read_and_set_by_name():
    estimator = Threshold(limit=2.0)
    assert estimator.get_params() == {"limit": 2.0, "names": ()}
    assert estimator.set_params(limit=3.0) is estimator
    assert estimator.limit == 3.0


def test_an_unknown_parameter_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidArgumentError, match="no parameter 'limits'; it has limit, names"):
        Threshold().set_params(limits=1)


def test_it_is_written_with_what_differs_from_the_defaults():
    assert repr(Threshold()) == "Threshold()"
    assert repr(Threshold(limit=2.0)) == "Threshold(limit=2.0)"


def test_scikit_learn_clones_it_and_takes_it_into_a_pipeline():
    copy = clone(Threshold(limit=4.0, names=("a",)))
    assert (copy.limit, copy.names) == (4.0, ("a",))
    assert make_pipeline(copy).fit([]) is not None
