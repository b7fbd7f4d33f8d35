r"""Derivatives of projections: how the marginals of a chain change when its scores change.

At a projection, the shift s and the measurements satisfy :math:`s = \psi \circ \ell'(a(s))`. With C the
covariance of the measurements and :math:`D = \mathrm{diag}(\psi \circ \ell''(a))`, a change of the weights
changes the shift by :math:`(I + D C)^{-1} (\ell' \circ d\psi)`, and the log-likelihood, whose slope in s is
the measured minus the true numbers, by

.. math:: \ell' \circ (I + C D)^{-1} (a - a^*).

If the marginals are held fixed, the inverse is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.errors import EnergyError
from factorwise.inference.message_passing.projection import ChainBase, MeasuredEnergy
from factorwise.types import Floats


def covariances(node: Floats, joint: Floats, directions: Floats) -> Floats:
    """Return how much the marginals of a chain change when its scores change in some directions.

    node : float64[T, S]
    joint : float64[T - 1, S, S]
        Marginals of the positions and of neighboring pairs.
    directions : float64[K, T S + (T - 1) S S]
        Changes of the scores of positions, then of pairs; the result has the same shape. It is the covariance
        of the statistics times the change: a marginal times the difference between the expected change given
        its labels and the expected change overall.
    """
    count, (length, size) = len(directions), node.shape
    at_node = directions[:, : node.size].reshape(count, length, size)
    at_pair = directions[:, node.size :].reshape(count, length - 1, size, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        # of the left label, given the right one
        before = np.nan_to_num(joint / node[1:, None, :], posinf=0.0)
        after = np.nan_to_num(joint / node[:-1, :, None], posinf=0.0)
    # change expected up to a position, and from there on, given its label
    upto, onward = at_node.copy(), at_node.copy()
    for t in range(1, length):
        upto[:, t] += np.einsum("js,kjs->ks", before[t - 1], upto[:, t - 1, :, None] + at_pair[:, t - 1])
    for t in range(length - 2, -1, -1):
        onward[:, t] += np.einsum("sj,ksj->ks", after[t], onward[:, t + 1, None, :] + at_pair[:, t])
    mean = (upto[:, -1] @ node[-1])[:, None, None]
    moved_node = node * (upto + onward - at_node - mean)
    moved_pair = joint * (upto[:, :-1, :, None] + at_pair + onward[:, 1:, None, :] - mean[..., None])
    both = (moved_node.reshape(count, node.size), moved_pair.reshape(count, joint.size))
    return np.concatenate(both, axis=1)


class Implicit(NamedTuple):
    """Gradients of the log-likelihood of one sequence, through the projection.

    weights : float64[measurements]
    node : float64[T, S]
    pairs : float64[S, S]
        With respect to the scores of positions, and of transitions, beyond what the statistics alone give.
    """

    weights: Floats
    node: Floats
    pairs: Floats


def implicit_gradients(base: ChainBase, energy: MeasuredEnergy, shift: Floats, truth: Floats) -> Implicit:
    """Differentiate through the point where a projection ends.

    base, energy
        The base model and the energy of the projection.
    shift : float64[measurements]
        The shift at which the projection ended, to high accuracy.
    truth : float64[measurements]
        The measurements of the true labels.
    """
    if not energy.smooth:
        raise EnergyError(
            f"the energy {energy.name!r} has kinks, at which a projection has no derivative: use a"
            " smoothed hinge, or hold the marginals fixed."
        )
    layout, measurement = base.layout, energy.measurement.widened(base.layout.size)
    marginals = base.marginals(measurement.adjoint(shift))
    measured = measurement.apply(marginals)
    bend = energy.curvature_times(measured, np.ones(len(measured)))
    active = np.flatnonzero(bend)
    length, size = base.node.shape
    node = marginals[: layout.node_size].reshape(length, size)
    joint = marginals[layout.node_size :].reshape(length - 1, size, size)
    moved = covariances(node, joint, measurement.taken(active).matrix.toarray())
    covariance = np.asarray(moved @ measurement.matrix.T)
    error = measured - truth
    system = np.eye(len(active)) + covariance[:, active] * bend[active]
    pull = bend[active] * np.linalg.solve(system, error[active])
    error = error - pull @ covariance
    scores = pull @ moved
    return Implicit(
        energy.losses.slope(measured) * error,
        scores[: layout.node_size].reshape(length, size),
        scores[layout.node_size :].reshape(length - 1, size, size).sum(axis=0),
    )
