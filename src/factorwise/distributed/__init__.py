"""The same sampler over shards of entities, in threads or on a Ray cluster.

Items lie in K shards, each entity entirely in one of them. In a round each shard runs the compiled sampler on
its own entities, under the part of the model for its items; then entities move to shards with entities that
share candidates with them. Any model over clusterings whose factors lie within clusters can be used. The
result of a shard is a function only of its rows, the model and (seed, round, shard), so it does not depend on
where or how often it was computed. This makes recovery from lost machines correct.
"""

from factorwise.distributed.executors import Executor, LocalExecutor
from factorwise.distributed.gradients import SummedObjective
from factorwise.distributed.group_search import GroupAnswer, answer_group, search_groups
from factorwise.distributed.mixing import Mixer, TrainingShard, mix_weights, split_items
from factorwise.distributed.search import Sharding, ShardKeeping, entities_of, search_shards
from factorwise.distributed.shard_models import ShardModel, shard_model
from factorwise.distributed.shard_rows import ShardRows, shard_walk
from factorwise.distributed.stepping import ShardReport, ShardStep, step_shard
from factorwise.inference.mcmc.shards.component_search import LinkWeights

__all__ = [
    "Executor",
    "GroupAnswer",
    "LinkWeights",
    "LocalExecutor",
    "Mixer",
    "ShardKeeping",
    "ShardModel",
    "ShardReport",
    "ShardRows",
    "ShardStep",
    "Sharding",
    "SummedObjective",
    "TrainingShard",
    "answer_group",
    "entities_of",
    "mix_weights",
    "search_groups",
    "search_shards",
    "shard_model",
    "shard_walk",
    "split_items",
    "step_shard",
]
