"""All templates under one roof: of assignments (labels), of partitions (clusterings) and of other worlds."""

from __future__ import annotations

from factorwise.model.assignment_templates import (
    Bias,
    FeatureTransitions,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.cardinality import Cardinality
from factorwise.model.cluster_templates import ClusterSize, ClusterTemplate
from factorwise.model.counted_templates import CountedTemplate, Key
from factorwise.model.custom_assignment import DynamicTemplate, TupleTemplate
from factorwise.model.hierarchy_templates import HierarchyCounts, SubtreeCosine
from factorwise.model.joint_templates import LabelAgreement, TypeLabels, Within
from factorwise.model.partition_templates import EdgeTemplate, PairTemplate, VectorPairTemplate
from factorwise.model.table_templates import PairTableTemplate
from factorwise.model.tally_templates import AllAgree, BagCosine, DistinctValues, SomeAgree, TallyTemplate
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
