"""XMLBIF 0.3: Bayesian networks in XML. Declarations of entities are refused, so nothing is expanded."""

from __future__ import annotations

from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError
from factorwise.io.networks.network import Network, build_network, check_distribution, check_size

_LEAVES = ("NAME", "OUTCOME", "VALUE", "FOR", "GIVEN", "TABLE")  # elements whose text is read


class _Reader:
    """Collects variables and definitions while the parser walks through the document.

    labels
        Labels of each variable.
    definitions
        The texts of each definition, by element.
    """

    def __init__(self) -> None:
        self.labels: dict[str, list[str]] = {}
        self.definitions: list[dict[str, list[str]]] = []
        self.block: dict[str, list[str]] | None = None
        self.text: list[str] | None = None

    def start(self, name: str, _: object) -> None:
        """Begin a block or the text of a leaf."""
        if name.upper() in ("VARIABLE", "DEFINITION"):
            self.block = {leaf: [] for leaf in _LEAVES}
        elif name.upper() in _LEAVES:
            self.text = []

    def data(self, text: str) -> None:
        """Collect the text of a leaf."""
        if self.text is not None:
            self.text.append(text)

    def end(self, name: str) -> None:
        """Complete a leaf or a block."""
        kind = name.upper()
        if kind in _LEAVES and self.text is not None:
            if self.block is not None:
                self.block[kind].append("".join(self.text).strip())
            self.text = None
        elif kind == "VARIABLE" and self.block is not None:
            self._add_variable(self.block)
            self.block = None
        elif kind == "DEFINITION" and self.block is not None:
            self.definitions.append(self.block)
            self.block = None

    def _add_variable(self, block: dict[str, list[str]]) -> None:
        labels = block["OUTCOME"] or block["VALUE"]
        if len(block["NAME"]) != 1 or block["NAME"][0] in self.labels:
            raise DataFileError(
                f"a VARIABLE must have one NAME of its own, but has {block['NAME'][:3]}. Correct the file."
            )
        if not labels or len(set(labels)) != len(labels):
            raise DataFileError(
                f"variable {block['NAME'][0]!r} must have different OUTCOMEs, but has {labels[:8]}."
                " Correct the file."
            )
        self.labels[block["NAME"][0]] = labels


def parse_xmlbif(content: bytes) -> Network:
    """Read a Bayesian network from the bytes of an XMLBIF file."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = _refuse_entities
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataFileError(f"not well-formed XML: {error}. Correct the file, or name its format.") from None
    except (LookupError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"the encoding of the XML cannot be read: {error}. Save it in UTF-8.") from None
    tables = [_table(definition, reader.labels) for definition in reader.definitions]
    defined = [scope[-1] for scope, _ in tables]
    for name in reader.labels:
        if defined.count(name) != 1:
            raise DataFileError(
                f"variable {name!r} has {defined.count(name)} DEFINITIONs instead of one. Correct the file."
            )
    return build_network(reader.labels, tables, "BAYES")


def _refuse_entities(name: str, *_: object) -> None:
    raise DataFileError(
        f"the XML declares an entity {name[:40]!r}, but entities are not supported. Replace it by its text."
    )


def _table(
    definition: dict[str, list[str]], labels: dict[str, list[str]]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the parents and the variable of a definition and the table over them."""
    scope = [*definition["GIVEN"], *definition["FOR"]]
    unknown = [name for name in scope if name not in labels]
    if unknown or len(definition["FOR"]) != 1 or len(set(scope)) != len(scope):
        raise DataFileError(
            f"a DEFINITION is for {definition['FOR'][:3]} given {definition['GIVEN'][:8]}: it must name"
            " one variable, and different declared parents. Correct the file."
        )
    sizes = [len(labels[name]) for name in scope]
    try:
        values = np.array(" ".join(definition["TABLE"]).split(), dtype=np.float64)
    except ValueError as error:
        raise DataFileError(f"the TABLE of {scope[-1]!r} must contain numbers only: {error}.") from None
    check_size(len(values), sizes, repr(scope[-1]))
    check_distribution(scope[-1], values.reshape(-1, sizes[-1]))
    return scope, values.reshape(sizes)
