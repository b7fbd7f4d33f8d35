"""Parameters of an estimator in scikit-learn's manner, without loading scikit-learn.

scikit-learn takes more than a second to load, which a command that only applies a model would spend on a base
class alone. Its tools (``clone``, ``Pipeline``, ``GridSearchCV``) ask for the methods below and for no class.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from factorwise.arguments import check_arguments
from factorwise.errors import InvalidArgumentError


class ParameterEstimator:
    """An estimator whose parameters are the keyword arguments of its constructor, kept under their names."""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters, in alphabetical order."""
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        deep
            Accepted because scikit-learn passes it; no parameter is itself an estimator.
        """
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters and return the estimator."""
        known = self.parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise InvalidArgumentError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that are not of the types with which the constructor is annotated."""
        check_arguments(type(self).__init__, self.get_params())

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn's tools ask of an estimator: the answers of its own base class."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def not_fitted_error(message: str) -> Exception:
    """Return scikit-learn's error for an estimator that has learned nothing yet."""
    from sklearn.exceptions import NotFittedError

    error: Exception = NotFittedError(message)
    return error
