"""Discrete networks in published formats, and as objects of other libraries.

`read_network` reads UAI (Markov and Bayesian), BIF, XMLBIF and libDAI's ``.fg``, also packed with gzip;
`read_evidence` reads the evidence files of the UAI competitions; `write_uai` and `write_evidence` write both.
`from_pgmpy` and `from_networkx` convert objects of those libraries, which need not be installed otherwise.
All of them return a `Network`: a factor graph with the names of its variables and labels.
"""

from __future__ import annotations

from factorwise.io.networks.files import parse_network, read_evidence, read_network
from factorwise.io.networks.network import Network
from factorwise.io.networks.objects import from_networkx, from_pgmpy
from factorwise.io.networks.uai import format_evidence, format_uai, write_evidence, write_uai

__all__ = [
    "Network",
    "format_evidence",
    "format_uai",
    "from_networkx",
    "from_pgmpy",
    "parse_network",
    "read_evidence",
    "read_network",
    "write_evidence",
    "write_uai",
]
