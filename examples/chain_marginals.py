"""A chain with exact marginals: which day was rainy, given what a neighbor carried."""

import numpy as np

import factorwise as fw

weather = fw.Domain("weather", ["dry", "rainy"])
carried = ["nothing", "umbrella", "umbrella", "nothing", "umbrella"]

days = fw.Column.hidden("day", weather, len(carried))
variables = fw.Variables([days])
seen = fw.Features.from_rows([[item] for item in carried])
model = fw.Model(
    [fw.templates.UnaryFeatures(days, seen), fw.templates.Transitions(days)],
    {
        "day features": np.log([[0.8, 0.1], [0.2, 0.9]]).ravel(),
        "day transitions": np.log([0.7, 0.3, 0.3, 0.7]),
    },
)

graph = fw.unroll(model, variables)
marginals = fw.exact.ChainOracle().marginals(graph)
for item, probability in zip(carried, marginals.node, strict=True):
    print(f"{item:10} rainy with probability {probability[1]:.3f}")
best = fw.exact.ChainOracle().best(graph)
print("most probable:", *weather.decode(best.values), f"with score {best.score:.3f}")
print(f"log partition {marginals.log_partition:.6f}")
