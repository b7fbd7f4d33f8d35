"""The public names of all templates: over assignments (labels), partitions (clusterings) and other worlds."""

from __future__ import annotations

from factorwise.model.clusterings.cluster_templates import ClusterSize, ClusterTemplate
from factorwise.model.clusterings.counted_templates import CountedTemplate, Key
from factorwise.model.clusterings.partition_templates import EdgeTemplate, PairTemplate, VectorPairTemplate
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.clusterings.tally_templates import (
    AllAgree,
    BagCosine,
    DistinctValues,
    SomeAgree,
    TallyTemplate,
)
from factorwise.model.hierarchy_templates import HierarchyCounts, SubtreeCosine
from factorwise.model.joint_templates import LabelAgreement, LabelledPairs, TypeLabels, Within
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.labels.library import (
    Bias,
    FeatureTransitions,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.target_templates import FollowTemplate, TargetTemplate, WholeWorldTemplate

__all__ = [
    "AllAgree",
    "BagCosine",
    "Bias",
    "Cardinality",
    "ClusterSize",
    "ClusterTemplate",
    "CountedTemplate",
    "DistinctValues",
    "DynamicTemplate",
    "EdgeTemplate",
    "FeatureTransitions",
    "FollowTemplate",
    "HierarchyCounts",
    "Key",
    "LabelAgreement",
    "LabelledPairs",
    "PairTableTemplate",
    "PairTemplate",
    "SkipEdges",
    "SomeAgree",
    "SubtreeCosine",
    "Tables",
    "TallyTemplate",
    "TargetTemplate",
    "Transitions",
    "TupleTemplate",
    "TypeLabels",
    "UnaryFeatures",
    "VectorPairTemplate",
    "WeightedTables",
    "WholeWorldTemplate",
    "Within",
]
