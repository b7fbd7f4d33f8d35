"""A proposer that learns which clusters to split and which to merge, on some documents, for another."""

import numpy as np

import factorwise as fw

WEIGHTS = [1.0, -1.5, 0.0]


def document(seed):
    """Sixty mentions of some twenty entities; two of three features of a pair tell something, with errors."""
    rng = np.random.default_rng(seed)
    entity = rng.integers(0, 20, 60)
    same = np.equal.outer(entity, entity)
    features = {"alike": same, "unlike": ~same, "noise": rng.random(same.shape) < 0.5}
    for name, seen in features.items():
        wrong = np.triu(rng.random(same.shape) < 0.1, 1)
        features[name] = np.triu(seen, 1) ^ wrong | (np.triu(seen, 1) ^ wrong).T
    pairs = fw.templates.PairTableTemplate("pairs", fw.PairTable.from_squares(features), ["count"])
    return fw.Model([pairs], WEIGHTS)


def proposer(model, **options):
    return fw.adaptive.AdaptiveSplitMerge(fw.adaptive.JumpFeatures(model), **options)


start = fw.Partition.singletons(60)
training = [fw.adaptive.TunedDocument(proposer(document(seed)), start) for seed in range(4)]
learned = fw.adaptive.train_proposer(training, progress=False)
for name, weight in zip(learned.names, learned.merge, strict=True):
    print(f"merge by {name:24} {weight:6.2f}")

model = document(seed=98)
trained = fw.adaptive.decode(model, start, proposer(model, weights=learned), progress=False)
uniform = fw.adaptive.decode(
    model, start, proposer(model, explore=1.0), until=trained.score, patience=10_000, progress=False
)
print(f"trained proposer: score {trained.score:.1f} after {trained.jumps} jumps")
print(f"uniform proposer: score {uniform.score:.1f} after {uniform.jumps} jumps")
