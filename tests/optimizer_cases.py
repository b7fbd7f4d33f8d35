"""Objectives with known optima."""

import numpy as np


def log_sums(scores):
    """Log of the sum of exp of each row, as a column."""
    peak = scores.max(axis=1, keepdims=True)
    return peak + np.log(np.exp(scores - peak).sum(axis=1, keepdims=True))


class Quadratic:
    """``w' A w / 2 - b' w``, with a condition number of about ``spread``."""

    def __init__(self, size, seed=0, spread=30.0):
        rng = np.random.default_rng(seed)
        turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
        self.size = size
        self.matrix = turn @ np.diag(np.geomspace(1.0, spread, size)) @ turn.T
        self.shift = rng.normal(size=size)

    def __call__(self, weights):
        product = self.matrix @ weights
        return 0.5 * weights @ product - self.shift @ weights, product - self.shift

    def solution(self, l2=0.0):
        return np.linalg.solve(self.matrix + 2.0 * l2 * np.eye(self.size), self.shift)


class Softmax:
    """Minus the log-likelihood of a log-linear classifier; its gradient array is used again and again."""

    def __init__(self, examples=60, features=5, labels=3, seed=0):
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(examples, features))
        scores = self.features @ rng.normal(size=(features, labels)) + rng.gumbel(size=(examples, labels))
        self.truth = np.eye(labels)[scores.argmax(axis=1)]
        self.size = features * labels
        self.calls = 0
        self._gradient = np.zeros(self.size)

    def __call__(self, weights):
        self.calls += 1
        scores = self.features @ weights.reshape(self.features.shape[1], -1)
        totals = log_sums(scores)
        self._gradient[:] = (self.features.T @ (np.exp(scores - totals) - self.truth)).ravel()
        return float(totals.sum() - (scores * self.truth).sum()), self._gradient

    def hessian_product(self, weights, direction):
        shape = self.features.shape[1], -1
        scores = self.features @ weights.reshape(shape)
        chances = np.exp(scores - log_sums(scores))
        tilts = self.features @ direction.reshape(shape)
        mean = (chances * tilts).sum(axis=1, keepdims=True)
        return (self.features.T @ (chances * (tilts - mean))).ravel()


def rounded(objective):
    """Return the same objective computed as if in single precision."""

    def single(weights):
        value, gradient = objective(weights)
        return float(np.float32(value)), gradient.astype(np.float32).astype(np.float64)

    return single


def proximal_gradient(objective, start, prior, steps=3_000, bound=60.0):
    """Accelerated proximal gradient with a fixed step: slow, and nothing like the methods under test."""
    w = ahead = np.array(start, dtype=float)
    momentum = 1.0
    for _ in range(steps):
        gradient = objective(ahead)[1] + prior.smooth_gradient(ahead)
        moved = ahead - gradient / bound
        new = np.sign(moved) * np.maximum(np.abs(moved) - prior.l1 / bound, 0.0)
        if (ahead - new) @ (new - w) > 0.0:  # overshot: begin anew to gain speed
            momentum = 1.0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / faster * (new - w)
        w, momentum = new, faster
    return w
