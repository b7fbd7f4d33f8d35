"""Networks in the formats in which they are published: the same in all, and faults in one line."""

import gzip
from itertools import product
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from factorwise.errors import DataFileError, FactorwiseError, InvalidArgumentError
from factorwise.inference.exact import Enumeration
from factorwise.io.networks import (
    format_uai,
    from_networkx,
    from_pgmpy,
    parse_network,
    read_evidence,
    read_network,
    write_evidence,
    write_uai,
)
from factorwise.io.networks.uai import (
    format_best,
    format_marginals,
    format_partition,
    parse_evidence,
    parse_marginals,
)

MARKOV = "MARKOV\n3\n2 2 3\n2\n2 0 1\n3 0 1 2\n4\n1 0.5 0.25 0\n12\n1 2 3 4 5 6 7 8 9 1 2 3\n"

# sprinkler: P(rain), P(sprinkler | rain), P(wet | sprinkler, rain)
RAIN = np.array([0.2, 0.8])
SPRINKLER = np.array([[0.01, 0.4], [0.99, 0.6]])
WET = np.array([[[0.99, 0.9], [0.8, 0.0]], [[0.01, 0.1], [0.2, 1.0]]])

BIF = """// a garden
network garden { property author "x; y"; }
variable rain { type discrete [ 2 ] { yes, no }; property "weather"; }
variable sprinkler { type discrete[2] { on, off }; }
variable "wet" { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.2, 0.8; }
/* the child first, in the table of all rows */
probability ( sprinkler | rain ) { table 0.01, 0.4, 0.99, 0.6; }
probability ( wet | sprinkler, rain ) {
  (on, yes) 0.99, 0.01;
  (on, no) 0.9, 0.1;
  (off, yes) 0.8, 0.2;
  default 0.0, 1.0;
}
"""
XMLBIF = """<?xml version="1.0"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>
<BIF VERSION="0.3"><NETWORK><NAME>garden</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>sprinkler</NAME><OUTCOME>on</OUTCOME><OUTCOME>off</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<DEFINITION><FOR>rain</FOR><TABLE>0.2 0.8</TABLE></DEFINITION>
<DEFINITION><FOR>sprinkler</FOR><GIVEN>rain</GIVEN><TABLE>0.01 0.99 0.4 0.6</TABLE></DEFINITION>
<DEFINITION><FOR>wet</FOR><GIVEN>sprinkler</GIVEN><GIVEN>rain</GIVEN>
<TABLE>0.99 0.01 0.9 0.1 <!-- off --> 0.8 0.2 0.0 1.0</TABLE></DEFINITION>
</NETWORK></BIF>
"""


def joint(network):
    """The probability of every setting, by the names of its labels."""
    names = network.labels
    settings = list(product(*(range(len(labels)) for labels in names)))
    weights = np.exp([network.graph.score(setting) for setting in settings])
    return {
        tuple(labels[code] for labels, code in zip(names, setting, strict=True)): weight
        for setting, weight in zip(settings, weights, strict=True)
    }


def garden():
    settings = product(enumerate(("yes", "no")), enumerate(("on", "off")), enumerate(("yes", "no")))
    return {(a, b, c): RAIN[i] * SPRINKLER[j, i] * WET[k, j, i] for (i, a), (j, b), (k, c) in settings}


def assert_is_garden(network):
    assert network.names == ("rain", "sprinkler", "wet")
    assert network.kind == "BAYES"
    found, wanted = joint(network), garden()
    assert found.keys() == wanted.keys()
    np.testing.assert_allclose([found[key] for key in wanted], list(wanted.values()), atol=1e-15)


def cpd(variables, values, states):
    sizes = [len(states[name]) for name in variables]
    return SimpleNamespace(
        variable=variables[0], variables=variables, values=values, cardinality=sizes, state_names=states
    )


def pgmpy_garden():
    """What pgmpy's objects look like from outside."""
    states = {"rain": ["yes", "no"], "sprinkler": ["on", "off"], "wet": ["yes", "no"]}
    parts = [
        cpd(["rain"], RAIN, states),
        cpd(["wet", "sprinkler", "rain"], WET, states),
        cpd(["sprinkler", "rain"], SPRINKLER, states),
    ]
    return SimpleNamespace(get_cpds=lambda: parts, nodes=lambda: list(states))


def networkx_garden():
    graph = nx.DiGraph()
    graph.add_node("rain", labels=["yes", "no"], table=RAIN)
    graph.add_node("sprinkler", labels=["on", "off"], table=SPRINKLER)
    graph.add_node("wet", labels=["yes", "no"], table=WET)
    graph.add_edges_from([("rain", "sprinkler"), ("sprinkler", "wet"), ("rain", "wet")])
    return graph


@pytest.mark.parametrize(
    "network",
    [
        lambda: parse_network(BIF.encode(), syntax="bif"),
        lambda: parse_network(XMLBIF.encode(), syntax="xmlbif"),
        lambda: parse_network(gzip.compress(BIF.encode()), name="garden.bif.gz"),
        lambda: from_pgmpy(pgmpy_garden()),
        lambda: from_networkx(networkx_garden()),
    ],
    ids=["BIF", "XMLBIF", "packed", "pgmpy", "networkx"],
)
def test_the_same_network_comes_out_of_every_format(network):
    assert_is_garden(network())


def test_a_network_in_uai_format_is_read_as_it_is_written(tmp_path):
    network = parse_network(MARKOV.encode(), name="m.uai")
    assert network.kind == "MARKOV"
    assert network.graph.table_of(0)[1, 1] == -np.inf
    np.testing.assert_allclose(np.exp(network.graph.table_of(1)).ravel(), [*range(1, 10), 1, 2, 3])
    write_uai(tmp_path / "again.uai", network)
    again = read_network(tmp_path / "again.uai")
    np.testing.assert_allclose(np.exp(again.graph.tables), np.exp(network.graph.tables), rtol=1e-15)
    assert (
        format_uai(parse_network(format_uai(network).encode(), name="x.uai")).split()[:12]
        == (MARKOV.split()[:12])
    )


def test_first_variable_of_a_libdai_factor_runs_fastest():
    text = "2\n\n1\n7\n3\n3\n0 1\n1 2\n2 3\n\n2\n7 4\n3 2\n4\n0 1\n1 2\n3 5\n5 7\n"
    network = parse_network(text.encode(), syntax="fg")
    assert network.names == ("4", "7")
    np.testing.assert_allclose(np.exp(network.graph.table_of(1)), [[1, 5], [2, 0], [0, 7]])
    np.testing.assert_allclose(np.exp(network.graph.table_of(0)), [1, 2, 3])


def test_undirected_networkx_graphs_have_tables_at_nodes_and_edges():
    graph = nx.Graph()
    graph.add_node("b", cardinality=2, table=[1.0, 3.0])
    graph.add_node("a", cardinality=3)
    graph.add_edge("a", "b", table=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    network = from_networkx(graph)
    assert network.names == ("b", "a")
    assert network.kind == "MARKOV"
    assert np.exp(network.graph.score([1, 2])) == pytest.approx(18.0)


@pytest.mark.parametrize("text", ["2 0 1 2 2\n", "1\n2 0 1 2 2\n", "1 2\n0 1\n2 2"])
def test_both_layouts_of_evidence_files_are_read(text, tmp_path):
    path = tmp_path / "e.evid"
    path.write_text(text)
    network = parse_network(MARKOV.encode(), name="m.uai")
    assert read_evidence(path, network) == {0: 1, 2: 2}


@pytest.mark.parametrize("text", ["", "0", "0\n", "1\n0\n"])
def test_evidence_files_may_observe_nothing(text):
    assert parse_evidence(text, np.full(2, 2)) == {}


def test_evidence_makes_every_other_label_impossible(tmp_path):
    network = parse_network(BIF.encode(), syntax="bif")
    evidence = network.codes({"wet": "yes"})
    assert evidence == {2: 0}
    exact = Enumeration().marginals(network.given(evidence).graph)
    wanted = {key: value for key, value in garden().items() if key[2] == "yes"}
    assert exact.log_partition == pytest.approx(np.log(sum(wanted.values())))
    assert exact.node[0][0] == pytest.approx(
        sum(value for key, value in wanted.items() if key[0] == "yes") / sum(wanted.values())
    )
    write_evidence(tmp_path / "e.evid", evidence)
    assert read_evidence(tmp_path / "e.evid", network) == evidence
    with pytest.raises(InvalidArgumentError, match=r"no variable .* did you mean 'rain'"):
        network.codes({"rainy": "yes"})
    with pytest.raises(InvalidArgumentError, match=r"has no label .* choose from 'yes', 'no'"):
        network.codes({"wet": "maybe"})
    with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
        network.given({0: 2})


def test_answers_have_the_format_of_the_competition():
    graph = parse_network(MARKOV.encode(), name="m.uai").graph
    exact = Enumeration()
    marginals = exact.marginals(graph)
    for read, written in zip(parse_marginals(format_marginals(marginals)), marginals.node, strict=True):
        np.testing.assert_allclose(read, written, atol=1e-9)
    best = exact.best(graph)
    assert format_best(best).split() == ["MAP", "3", *map(str, best.values)]
    answer = float(format_partition(marginals.log_partition).split()[1])
    assert 10**answer == pytest.approx(np.exp(marginals.log_partition))


FAULTS = [
    ("m.uai", "", "the file ends before the word MARKOV or BAYES"),
    ("m.uai", "GRAPH 1", "begins with MARKOV or BAYES"),
    ("m.uai", MARKOV[:-12], "truncated"),
    ("m.uai", MARKOV + "7", "1 words after the last table"),
    ("m.uai", MARKOV.replace("0.5", "-0.5"), "entry of -0.5"),
    ("m.uai", MARKOV.replace("0.5", "nan"), "entry of nan"),
    ("m.uai", MARKOV.replace("0.5", "x"), "must be numbers"),
    ("m.uai", MARKOV.replace("\n4\n", "\n5\n"), "has 5 entries, but its variables require 4"),
    ("m.uai", MARKOV.replace("2 0 1\n3", "2 0 9\n3"), "different variables from 0 to 2"),
    ("m.uai", MARKOV.replace("2 0 1\n3", "2 0 0\n3"), "different variables from 0 to 2"),
    ("m.uai", MARKOV.replace("2 2 3", "2 0 3"), "whole number of 1 or more"),
    ("m.uai", "MARKOV 1 999999999 0", "the limit is"),
    ("g.bif", BIF[:400], "truncated"),
    ("g.bif", BIF.replace("0.2, 0.8", "0.2, 0.7"), "sums to 0.9"),
    ("g.bif", BIF.replace("0.2, 0.8", "-0.2, 1.2"), "entry of -0.2"),
    ("g.bif", BIF.replace("0.2, 0.8", "0.2"), "1 numbers in a row that needs 2"),
    ("g.bif", BIF.replace("(on, no)", "(on, maybe)"), "not labels of"),
    ("g.bif", BIF.replace("  default 0.0, 1.0;\n", ""), "no row for some labels"),
    ("g.bif", BIF.replace("( wet |", "( wit |"), "declared before"),
    ("g.xml", XMLBIF[:300], "not well-formed XML"),
    ("g.xml", XMLBIF.replace("<!ELEMENT BIF ( NETWORK )*>", '<!ENTITY a "b">'), "entities are not supported"),
    ("g.xml", XMLBIF.replace("0.2 0.8", "0.2 0.7 0.1"), "has 3 entries, but its variables require 2"),
    ("g.fg", "1\n2\n0 1\n2 2\n1\n4 1\n", "numbered from 0 to 3"),
    ("g.fg", "1\n3\n0 1 2\n9999 9999 9999\n0\n", "which is the limit"),
    ("g.net", BIF, "does not determine the format"),
    ("g.uai", "\x00\xff", "not text in UTF-8"),
]


@pytest.mark.parametrize(("name", "text", "message"), FAULTS)
def test_faults_are_told_in_one_line_that_names_the_file(name, text, message):
    with pytest.raises(DataFileError, match=message) as caught:
        parse_network(text.encode("latin-1"), name=name)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 0 1", "truncated"),
        ("1 0 9", "labels: use numbers from 0 to 1"),
        ("1 9 0", "use numbers from 0 to 2"),
        ("2 0 1 0 0", "to 1 and to 0"),
        ("2\n1 0 1\n2 0 1 1 1", "2 samples"),
        ("1 0 -1", "whole number of 0 or more"),
    ],
)
def test_faults_of_evidence_are_told(text, message):
    with pytest.raises(FactorwiseError, match=message):
        parse_evidence(text, np.full(3, 2))


def test_objects_without_what_is_needed_are_refused():
    with pytest.raises(InvalidArgumentError, match="get_cpds or get_factors"):
        from_pgmpy(SimpleNamespace())
    incomplete = pgmpy_garden()
    incomplete.nodes = lambda: ["rain", "sprinkler", "wet", "roof"]
    with pytest.raises(InvalidArgumentError, match="'roof' has no CPD"):
        from_pgmpy(incomplete)
    graph = nx.path_graph(2)
    with pytest.raises(InvalidArgumentError, match="'labels' nor 'cardinality'"):
        from_networkx(graph)
    nx.set_node_attributes(graph, 2, "cardinality")
    with pytest.raises(InvalidArgumentError, match="has no 'table'"):
        from_networkx(graph)


def test_marginals_that_end_after_their_count_are_refused():
    with pytest.raises(DataFileError, match="the number of labels of variable 0"):
        parse_marginals("MAR 1")
