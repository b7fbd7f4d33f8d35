"""Public functions and constructors called with values of wrong types: an error of ours, each time."""

import contextlib
import inspect
import random
import types
import typing
import warnings

import numpy as np
import pytest

import factorwise as fw
from factorwise import learning, mcmc, templates
from factorwise.arguments import check_types, fits_of, hints_of, is_protocol
from factorwise.errors import FactorwiseError, InvalidArgumentError
from factorwise.world.links import LinkGraph
from factorwise.world.shards import Shards

CALLS = 3_000
WRONG = (
    None, "", "x", b"x", object(), float("nan"), float("inf"), -1, 2**70, 1j, [None], ["a"], [[1], [1, 2]],
    {}, {"a": 1}, {1, 2}, lambda: None, np.zeros((2, 2)), np.array(["a"]), np.array([None]),
    np.zeros(3, complex), np.array([np.nan, 1.0]), np.array([-1, 5]), np.array(2.5), int, np.float64, "0",
    [2**40], [-(2**70)], [0.5],
)  # fmt: skip


#: Names of parameters that may be annotated as Any, and who looks at them instead.
UNCHECKED = {
    "worlds of any kind and their changes, compared with the kinds that a part names (check_kind)": {
        "world", "diff", "start", "truth", "best", "found", "kernel", "proposer", "cluster",
    },
    "what loops hand to functions of programs, which run compiled": {"mine", "move", "gradient"},
    "a stream, or what stands for one in checks and interpreted walks": {"stream", "interpreted"},
    "samples of any family": {"samples"},
    "tables, matrices, graphs and sequences of any library, read by whoever knows it": {
        "X", "X_dev", "xseq", "sample_weight", "records", "pairs", "labels", "values", "features", "counts",
        "flows", "templates", "coordinates", "source", "old", "new", "model", "matrix", "graph", "groups",
        "constraints", "documents", "record", "template",
    },
}  # fmt: skip


def public_names(module=fw, path="fw"):
    """Yield the path and the value of every public name, room by room."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            yield from public_names(value, f"{path}.{name}")
        else:
            yield f"{path}.{name}", value


def public_callables():
    """Return the public functions, constructors and methods by name, each with the class that has it."""
    found = {}
    for path, value in public_names():
        if isinstance(value, types.FunctionType):
            found[path] = (value, value)
        if not isinstance(value, type) or issubclass(value, BaseException) or is_protocol(value):
            continue
        for name in dir(value):
            plain = getattr(
                inspect.getattr_static(value, name), "__func__", inspect.getattr_static(value, name)
            )
            public = name == "__init__" or not name.startswith("_")
            if (
                public
                and isinstance(plain, types.FunctionType)
                and plain.__module__.startswith("factorwise.")
            ):
                found.setdefault(f"{value.__qualname__}.{name}", (value, plain))
    return found


class Anything:
    """Has whatever a protocol asks for."""

    def __getattr__(self, name):
        return None

    def __getitem__(self, key):
        raise IndexError

    def __len__(self):
        return 0

    def __call__(self, *_, **__):
        return None

    def __iter__(self):
        return iter(())

    def __add__(self, other):
        return self


def blank(kind):
    """Return an object of a class that nobody has set up; nothing where a class allows none."""
    for base in (object, tuple, dict, Exception):
        with contextlib.suppress(TypeError):
            return base.__new__(kind)
    return None


def fitting(hint):
    """Return a value that fits an annotation at a glance, and perhaps nothing more."""
    fits = fits_of(hint, closely=True)
    plain = (1, 0.5, "x", True, None, [], [1, 1], [1.0, 1.0, 1.0], {}, np.zeros(1), np.zeros(1, np.int64))
    classes = [
        kind for kind in (hint, typing.get_origin(hint), *typing.get_args(hint)) if isinstance(kind, type)
    ]
    for value in (*plain, np.zeros(1, bool), b"x", ["x", "y"], lambda: None, Anything()):
        if fits(value):
            return value
    for kind in classes:
        value = blank(kind)
        if fits(value):
            return value
    return None


def parameters_of(owner, function):
    """Return the annotations of what a caller gives, and what comes before it: a class or an object."""
    parameters = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    first = []
    if owner is not function and parameters and parameters[0].name in ("self", "cls"):
        first = [owner if parameters.pop(0).name == "cls" else blank(owner)]
    return first, {one.name: hints_of(function).get(one.name, typing.Any) for one in parameters}


@pytest.fixture(scope="module")
def callables():
    return public_callables()


def test_annotations_of_every_public_callable_are_checked(callables):
    known = set().union(*UNCHECKED.values())
    for name, (owner, function) in callables.items():
        _, hints = parameters_of(owner, function)
        is_compiled = function.__module__.startswith("factorwise.kernels.")
        by_scikit_learn = name.endswith(".__init__") and hasattr(owner, "get_params")  # checked by fit
        says_something = any(hint not in (typing.Any, object) for hint in hints.values())
        assert not says_something or is_compiled or by_scikit_learn or hasattr(function, "checks_types"), name
        vague = {key for key, hint in hints.items() if all(map(fits_of(hint), WRONG))}
        assert vague <= known, f"{name} says nothing of {vague - known}: annotate what it may be"


def test_every_public_callable_refuses_what_its_annotations_do_not_allow(callables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")
    rng, calls, fitting_value = random.Random(0), 0, {}
    for name, (owner, function) in callables.items():
        first, hints = parameters_of(owner, function)
        for key, hint in hints.items() if hasattr(function, "checks_types") else ():
            wrong = [value for value in WRONG if not fits_of(hint)(value)]
            for value in rng.sample(wrong, min(len(wrong), 2)):
                right = {}
                for other, wanted in hints.items():
                    if str(wanted) not in fitting_value:
                        fitting_value[str(wanted)] = fitting(wanted)
                    right[other] = fitting_value[str(wanted)]
                calls += 1
                try:
                    function(*first, **right | {key: value})
                except FactorwiseError:
                    pass
                except Exception as error:
                    raise AssertionError(f"{name} with {value!r} as {key} raised {error!r}") from error
    assert calls > 4_000


def same(a, b):
    return (a.x == b.x,)


def whole(cluster):
    return (cluster.x.max() > 0,)


def right_calls():
    """Calls that work, from which wrong ones are made by changing an argument or two."""
    domain = fw.Domain("d", ["a", "b"])
    col = fw.Column.of("c", domain, ["a", "b", "a"])
    var = fw.Variables([col])
    hvar = fw.Variables([fw.Column.hidden("h", domain, 3)])
    fields, vfields = fw.Fields(x=[0, 0, 1]), fw.Fields(v=np.ones((3, 2)))
    pair, size = templates.PairTemplate("p", fields, same, ["same"]), templates.ClusterSize()
    model = fw.Model([pair, size], {"p": [1.0], "cluster size": [0.0, 0.0]})
    amodel = fw.Model([templates.Bias(col), templates.Transitions(col)])
    moves = mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()])
    feats = fw.Features.from_rows([["u"], ["v"], ["u"]])
    table = fw.PairTable.from_squares({"s": np.ones((3, 3))})
    bags = fw.Bags.from_lists([["a"], ["b"], ["a"]])
    graph = fw.FactorGraph([2, 2], [0, 2], [0, 1], [0], [0.0] * 4)
    part = fw.Partition.from_labels([0, 0, 1])
    X, y = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]], [["A", "B"], ["B"]]
    crf = fw.ChainCRF(max_iterations=2).fit(X, y)

    def call(function, /, **right):
        return function, right

    return {
        "Domain": call(fw.Domain, name="d", labels=["a", "b"]),
        "Column.of": call(fw.Column.of, name="c", domain=domain, labels=["a", "b"]),
        "Column.hidden": call(fw.Column.hidden, name="c", domain=domain, rows=3),
        "Column": call(fw.Column, name="c", domain=domain, codes=[0, 1]),
        "Variables": call(fw.Variables, columns=[col]),
        "Assignment": call(fw.Assignment, variables=var, values=[0, 1, 0]),
        "Assignment.from_labels": call(
            fw.Assignment.from_labels, variables=var, labels={"c": ["a", "b", "a"]}
        ),
        "Assignment.uniform": call(fw.Assignment.uniform, variables=var, seed=1),
        "Features": call(
            fw.Features,
            vocabulary=fw.Domain("words", ["u"]),
            indptr=np.array([0, 1]),
            indices=np.array([0]),
            data=np.array([1.0]),
        ),
        "Features.from_rows": call(fw.Features.from_rows, rows=[["u"], {"v": 1.0}]),
        "Fields": call(lambda x, y: fw.Fields(x=x, y=y), x=[0, 1], y=[0.5, 1.0]),
        "Bags": call(fw.Bags, start=[0, 1], key=[0], amount=[1.0]),
        "Bags.from_lists": call(fw.Bags.from_lists, lists=[["a"]]),
        "Bags.from_weights": call(fw.Bags.from_weights, weights=[{"a": 1.0}]),
        "PairTable": call(fw.PairTable, n_items=2, names=["s"], values=[[1.0]]),
        "PairTable.from_squares": call(fw.PairTable.from_squares, squares={"s": np.ones((2, 2))}),
        "Partition.from_clusters": call(fw.Partition.from_clusters, clusters=[[0, 1], [2]]),
        "Partition.singletons": call(lambda n: fw.Partition.singletons(n), n=3),
        "SparseVector": call(fw.SparseVector, index=[0], value=[1.0]),
        "Transfer": call(lambda **given: part.after(fw.Transfer(**given)), items=[0], source=0, target=1),
        "Relabel": call(
            lambda **given: fw.Assignment(hvar, [0, 1, 0]).after(fw.Relabel(**given)),
            variables=[0],
            old=[0],
            new=[1],
        ),
        "Model": call(fw.Model, templates=[pair, size], weights={"p": [1.0], "cluster size": [0.0, 0.0]}),
        "Model.score": call(model.score, world=part),
        "PairTemplate": call(
            templates.PairTemplate, name="p", fields=fields, function=same, statistics=["same"]
        ),
        "ClusterTemplate": call(
            templates.ClusterTemplate, name="p", fields=fields, function=whole, statistics=["s"]
        ),
        "DistinctValues": call(templates.DistinctValues, name="n", keys=bags),
        "BagCosine": call(templates.BagCosine, name="n", keys=bags),
        "AllAgree": call(templates.AllAgree, name="n", keys=bags),
        "SomeAgree": call(templates.SomeAgree, name="n", keys=bags),
        "ClusterSize": call(templates.ClusterSize, name="n"),
        "PairTableTemplate": call(templates.PairTableTemplate, name="n", table=table, aggregates=["count"]),
        "EdgeTemplate": call(
            templates.EdgeTemplate, name="n", n_items=3, edges=[[0, 1]], features=[[1.0]], statistics=["f"]
        ),
        "Bias": call(templates.Bias, column=col, name="n"),
        "Transitions": call(templates.Transitions, column=col, chains=[0, 3]),
        "UnaryFeatures": call(templates.UnaryFeatures, column=col, features=feats),
        "SkipEdges": call(templates.SkipEdges, column=col, pairs=[[0, 2]]),
        "Cardinality": call(templates.Cardinality, column=col, label="a", maximum=2),
        "Tables": call(templates.Tables, variables=var, scopes=[[0, 1]], tables=np.zeros((2, 2))),
        "WeightedTables": call(templates.WeightedTables, variables=var, scopes=[[0, 1]]),
        "Key": call(templates.Key, fields=["x"]),
        "VectorPairTemplate": call(
            lambda **given: templates.VectorPairTemplate(function=lambda a, b: a, **given),
            name="n",
            fields=vfields,
            field="v",
        ),
        "Metropolis": call(mcmc.Metropolis, model=model, proposer=moves),
        "PartitionMixture": call(mcmc.PartitionMixture, moves=list(moves.moves), weights=[0.5, 0.5]),
        "PartitionGibbs": call(mcmc.PartitionGibbs, model=model),
        "Gibbs": call(mcmc.Gibbs, model=amodel, scan="random"),
        "BlockGibbs": call(mcmc.BlockGibbs, model=amodel, blocks=[[0, 1]]),
        "RestrictedGibbs": call(mcmc.RestrictedGibbs, model=model, scans=2),
        "LocalRelabel": call(mcmc.LocalRelabel, model=amodel, sharpness=1.0),
        "ResampleSpan": call(mcmc.ResampleSpan, model=amodel, chains=[[0, 1]], shortest=1, longest=2),
        "RelocateToCandidate": call(mcmc.RelocateToCandidate, start=[0, 1], candidate=[0]),
        "Geometric": call(mcmc.Geometric, start=2.0, end=1.0),
        "Linear": call(mcmc.Linear, start=2.0, end=1.0),
        "Constant": call(mcmc.Constant, value=1.0),
        "UniformSample": call(mcmc.UniformSample, share=0.5),
        "ConfidenceSample": call(mcmc.ConfidenceSample, interval=0.5, z=1.9, minimum=10),
        "PoissonMinibatch": call(mcmc.PoissonMinibatch, variance=1.0),
        "sample": call(
            lambda **given: fw.sample(mcmc.Metropolis(model, moves), part, progress=False, **given),
            draws=5,
            thin=2,
            burn_in=3,
            pairs=[(0, 1)],
            seed=1,
        ),
        "anneal": call(
            lambda **given: fw.anneal(mcmc.Metropolis(model, moves), part, progress=False, **given),
            steps=20,
            schedule=mcmc.Geometric(2.0, 1.0),
            seed=1,
        ),
        "infer": call(fw.infer, graph=graph, budget=1.0, memory=10**7),
        "SampleRank": call(learning.SampleRank, update=learning.Unit(), temperature=1.0, average=True),
        "AdaGrad": call(learning.AdaGrad, rate=1.0, epsilon=1e-3, margin=1.0),
        "Mira": call(learning.Mira, cap=1.0, margin=1.0),
        "ContrastiveDivergence": call(learning.ContrastiveDivergence, length=2, rate=0.1),
        "StructuredPerceptron": call(learning.StructuredPerceptron, rate=1.0),
        "TruthPreference": call(learning.TruthPreference, truth=part, metric="b-cubed"),
        "AccuracyPreference": call(learning.AccuracyPreference, truth=fw.Assignment(var, [0, 1, 0])),
        "Prior": call(learning.Prior, l1=0.1, l2=0.1),
        "OptimizerConfig": call(learning.OptimizerConfig, max_iterations=3, epsilon=1e-3, memory=3),
        "TrainingWorld": call(learning.TrainingWorld, model=model, proposer=moves, start=part, truth=part),
        "PairClusterer.cluster": call(
            lambda left, right, score: fw.PairClusterer(random_state=0).cluster(
                {"left": left, "right": right, "score": score}
            ),
            left=["a", "b"],
            right=["b", "c"],
            score=[0.9, 0.2],
        ),
        "ChainCRF.fit": call(lambda X, y: fw.ChainCRF(max_iterations=2).fit(X, y), X=X, y=y),
        "ChainCRF": call(
            lambda **given: fw.ChainCRF(max_iterations=2).set_params(**given).fit(X, y),
            c1=0.1,
            c2=0.1,
            min_freq=0,
            algorithm="lbfgs",
            order=1,
            n_jobs=1,
        ),
        "ChainCRF.predict": call(crf.predict, X=X),
        "ChainCRF.predict_marginals": call(crf.predict_marginals, X=X),
        "ChainCRF.score": call(crf.score, X=X, y=y),
        "FactorGraph": call(
            fw.FactorGraph,
            cardinality=[2, 2],
            scope_start=[0, 2],
            scope=[0, 1],
            table_start=[0],
            tables=[0.0] * 4,
        ),
        "LinkGraph": call(LinkGraph, first=[0], second=[1], start=[0, 1, 2], neighbor=[1, 0], pair=[0, 0]),
        "Shards": call(lambda labels: Shards(labels), labels=[0, 0, 1]),
        "Partition.from_labels": call(fw.Partition.from_labels, labels=[0, 0, 1]),
        "Matching": call(fw.Matching, n_left=2, n_right=3, pairs=[(0, 2)]),
        "Permutation": call(fw.Permutation, order=[1, 0]),
        "Tree": call(fw.Tree, parents=[None, 0, 0]),
        "Hierarchy": call(fw.Hierarchy, entities=[[0, 1], [2]]),
        "unroll": call(fw.unroll, model=amodel, source=var),
        "parse_network": call(
            fw.networks.parse_network, content=b"MARKOV\n1\n2\n1\n1 0\n2\n1 1\n", syntax="uai"
        ),
        "format_evidence": call(fw.networks.format_evidence, evidence={0: 1}),
        "Unit": call(learning.Unit, rate=1.0, decay=0.5),
        "ConfidenceWeighted": call(learning.ConfidenceWeighted, confidence=0.9, floor=0.5),
        "Arow": call(learning.Arow, regularization=1.0, variance=0.5),
    }


def test_values_of_wrong_types_are_refused_with_an_error_of_ours():
    rng, outcomes = random.Random(0), {"refused": 0, "taken": 0}
    warnings.simplefilter("ignore")
    calls = right_calls()
    for function, right in calls.values():
        function(**right)
    for number in range(CALLS):
        name = sorted(calls)[number % len(calls)]
        function, right = calls[name]
        changed = rng.sample(sorted(right), min(len(right), rng.choice((1, 1, 2))))
        arguments = right | {key: rng.choice(WRONG) for key in changed}
        try:
            function(**arguments)
            outcomes["taken"] += 1
        except FactorwiseError:
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{name} with {changed} of {arguments} raised {error!r}") from error
    with pytest.raises(InvalidArgumentError, match="algorithm"):
        fw.ChainCRF(algorithm=np.array([-1, 5])).training_config()
    assert outcomes["taken"] < CALLS // 4  # any texts are labels of shards, any number above zero is a rate


@pytest.mark.parametrize(
    "of_starts",
    [
        lambda starts: LinkGraph([0], [1], starts, [1, 0], [0, 0]),
        lambda starts: fw.Features(fw.Domain("words", ["u"]), starts, np.array([0, 0]), np.ones(2)),
        lambda starts: fw.Bags(starts, [0, 1], [1.0, 1.0]),
        lambda starts: fw.FactorGraph([2, 2, 2, 2], starts, [0, 1], [0, 0, 0], [0.0] * 4),
        lambda starts: mcmc.RelocateToCandidate(starts, [0, 1]),
        lambda starts: templates.Transitions(fw.Column.hidden("c", fw.Domain("d", ["a"]), 2), chains=starts),
    ],
)
def test_starts_that_fall_by_more_than_their_type_can_say_are_refused(of_starts):
    starts = np.array([0, 2**62, -(2**62) - 5, 2])  # the second difference, as int64, is above zero
    assert (np.diff(starts) > 0).all()
    with pytest.raises(FactorwiseError):
        of_starts(starts)


@check_types
def greet(name: str, times: int = 1, *, others: list[str] | None = None, loud: bool = False) -> str:
    return ", ".join([name, *(others or ())] * times).upper() if loud else name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name of greet must be a string, but 3 was given"),
        ({"name": "a", "times": 2.0}, "times of greet must be a whole number, but 2.0 was given"),
        ({"name": "a", "times": True}, "a whole number, but True"),
        (
            {"name": "a", "others": "bc"},
            "others of greet must be a list of texts or None, but 'bc' was given",
        ),
        ({"name": "a", "others": ["b", 3]}, "a list of texts or None"),
        ({"name": "a", "loud": "yes"}, "loud of greet must be True or False"),
    ],
)
def test_annotations_hold(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        greet(**arguments)
    assert greet("a", np.int64(2), others=["b"], loud=True) == "A, B, A, B"
