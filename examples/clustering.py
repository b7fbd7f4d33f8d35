"""Clustering with functions of your own: how probable it is that two records are one person."""

import factorwise as fw

records = [("lee", "ann"), ("lee", "a"), ("lee", "bob"), ("ray", "bob"), ("ray", "b"), ("ray", "eve")]
last = fw.Domain("last", ["lee", "ray"]).encode([last for last, _ in records])
first = fw.Domain("first", ["", "ann", "bob", "eve"]).encode([f if len(f) > 1 else "" for _, f in records])
initial = [ord(f[0]) for _, f in records]
people = fw.Fields(last=last, first=first, initial=initial)


def compare(a, b):
    """Statistics of a pair in one cluster: the same in either order, truth values or numbers."""
    return a.last == b.last, a.last != b.last, a.initial != b.initial


def unnamed(cluster):
    """Statistics of a whole cluster: fields are arrays over its members."""
    return (cluster.first.max() == 0,)


pairs = fw.templates.PairTemplate("pairs", people, compare, ["same last", "other last", "other initial"])
whole = fw.templates.ClusterTemplate("whole", people, unnamed, ["nobody has a full first name"])
weights = {"pairs": [1.5, -4.0, -3.0], "whole": [-1.0], "cluster size": [0.5, 0.0]}
model = fw.Model([pairs, whole, fw.templates.ClusterSize()], weights)

moves = fw.mcmc.PartitionMixture([fw.mcmc.RelocateToItem(), fw.mcmc.RelocateToNew()])
watched = [(0, 1), (0, 2), (3, 4), (3, 5)]
start = fw.Partition.singletons(len(records))
samples = fw.sample(
    fw.mcmc.Metropolis(model, moves), start, draws=5_000, thin=20, burn_in=1_000, pairs=watched
)
exact = fw.exact.PartitionEnumeration(model, len(records)).together()
for (i, j), probability in zip(watched, samples.co_clustering(), strict=True):
    names = f"{' '.join(records[i][::-1])} = {' '.join(records[j][::-1])}"
    print(f"{names:20} sampled {probability:.3f}, exact {exact[i, j]:.3f}")
print("best:", samples.best, f"score {samples.best_score:.2f}")
