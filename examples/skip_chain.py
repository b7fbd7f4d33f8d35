"""A skip-chain CRF: mentions of one name are linked, so that a clear one settles the unclear ones."""

import numpy as np
from scipy.optimize import minimize

import factorwise as fw
from factorwise.learning.likelihood.marginal_likelihood import LogLikelihood
from factorwise.learning.likelihood.pseudo_likelihood import PseudoLikelihood

CLEAR = {"person": "then friend {} spoke .", "place": "they live in {} now ."}
UNCLEAR = ["we think of {} .", "many know {} well .", "{} was in the news ."]
messages = fw.message_passing.BeliefPropagation(damping=0.2, tolerance=1e-6)


def problem(seed, skip, vocabulary=None):  # invented names, mentioned once clearly and twice unclearly
    rng = np.random.default_rng(seed)
    names = {"".join(rng.choice(list("aeilnort"), 8)).title(): rng.choice([*CLEAR]) for _ in range(40)}
    lines = {name: rng.permutation([CLEAR[kind], *rng.choice(UNCLEAR, 2)]) for name, kind in names.items()}
    words = [word for name in names for line in lines[name] for word in line.format(name).split()]
    around = zip([".", *words], words, [*words[1:], "."], strict=False)
    rows = [[f"{left} _", "Name" if word.istitle() else word, f"_ {right}"] for left, word, right in around]
    links = [(i, j) for j, word in enumerate(words) for i in range(j) if words[i] == word and word.istitle()]
    column = fw.Column.hidden("tag", fw.Domain("tag", ["other", *CLEAR]), len(words))
    seen = fw.templates.UnaryFeatures(column, fw.Features.from_rows(rows, vocabulary))
    model = fw.Model([seen, fw.templates.Transitions(column), fw.templates.SkipEdges(column, links * skip)])
    tags = [str(names.get(word, "other")) for word in words]
    return model, fw.Assignment.from_labels(fw.Variables([column]), {"tag": tags}), seen.features.vocabulary


for skip, pseudo in [(False, False), (True, False), (True, True)]:
    model, truth, vocabulary = problem(1, skip)
    likely = PseudoLikelihood(model, [truth]) if pseudo else LogLikelihood(model, [truth], messages)
    fitted = minimize(likely.loss, model.weights, jac=True, method="L-BFGS-B", options={"maxiter": 15})
    model, truth, _ = problem(2, skip, vocabulary)
    model.weights = fitted.x
    best = [belief.argmax() for belief in messages.marginals(fw.unroll(model, truth)).node]
    right = np.mean(np.equal(best, truth.values)[truth.values > 0])
    print(f"{'skip ' * skip}chain by {'pseudo-' * pseudo}likelihood: {right:.3f} of the mentions right")
