"""Generated code for factors that come and go with the labels: a user's two functions inside compiled ones.

All such templates of a model are one program. Term k has its keys in ``mine.keys_k``, scratch with more rows
than its function may claim; its weights begin at ``mine.offset[k]`` of ``mine.weights``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorwise.kernels.compile.composition import Source
from factorwise.kernels.compile.programs import Written


@dataclass(frozen=True)
class TouchedTerm:
    """One template: which factors a variable touches, and their statistics.

    width, limit
        Integers in a key, and most keys that one variable may touch.
    """

    touched: Source
    statistics: Source
    size: int
    width: int
    limit: int


_KEYS = """
@inlined
def fresh_{number}(keys, row):
    for earlier in range(row):
        same = True
        for k in range({width}):
            same = same and keys[earlier, k] == keys[row, k]
        if same:
            return False
    return True


@inlined
def keys_{number}(world, mine, move):
    count = {touched}(world.value, move.item, mine.keys_{number})
    if count < 0 or count > {limit}:
        move.overflow = 2
        return 0
    return count
"""

_SCORE = """
@inlined
def score_{number}(world, mine, move):
    keys, offset, weights = mine.keys_{number}, mine.offset[{number}], mine.weights
    total = 0.0
    for row in range(keys_{number}(world, mine, move)):
        if fresh_{number}(keys, row):
            found = {statistics}(world.value, keys[row])
{sums}    return total
"""

_PUT = """
@inlined
def put_{number}(world, mine, move, gradient, sign):
    keys, offset = mine.keys_{number}, mine.offset[{number}]
    for row in range(keys_{number}(world, mine, move)):
        if fresh_{number}(keys, row):
            found = {statistics}(world.value, keys[row])
{puts}    return
"""

_FUNCTIONS = {
    "gain": (
        ("world", "mine", "move"),
        """
@inlined
def touched_gain(world, mine, move):
    before = {scores}
    world.value[move.item] = move.target
    after = {scores}
    world.value[move.item] = move.source
    return after - before
""",
    ),
    "gains": (
        ("world", "mine", "move", "choice"),
        """
@inlined
def touched_gains(world, mine, move, choice):
    for k in range(move.choices):
        world.value[move.item] = choice.targets[k]
        choice.out[k] += {scores}
    world.value[move.item] = move.source
""",
    ),
    "gradient": (
        ("world", "mine", "move", "gradient"),
        """
from factorwise.kernels.walks.library import put


@inlined
def put_all(world, mine, move, gradient, sign):
{all_puts}    return


@inlined
def touched_gradient(world, mine, move, gradient):
    put_all(world, mine, move, gradient, -1.0)
    world.value[move.item] = move.target
    put_all(world, mine, move, gradient, 1.0)
    world.value[move.item] = move.source
""",
    ),
}


def touched_functions(terms: Sequence[TouchedTerm]) -> dict[str, Written]:
    """Write ``gain``, ``gains`` and ``gradient`` of some templates."""
    sources = dict.fromkeys(source.text for term in terms for source in (term.touched, term.statistics))
    helpers = {"gain": _SCORE, "gains": _SCORE, "gradient": _PUT}
    found = {}
    for role, (arguments, text) in _FUNCTIONS.items():
        parts = list(sources)
        if role == "gradient":
            parts.insert(0, text[: text.index("@inlined")])
            text = text[text.index("@inlined") :]
        parts += [_filled(_KEYS + helpers[role], number, term) for number, term in enumerate(terms)]
        numbers = range(len(terms))
        scores = " + ".join(f"score_{number}(world, mine, move)" for number in numbers)
        puts = "".join(f"    put_{number}(world, mine, move, gradient, sign)\n" for number in numbers)
        parts.append(text.format(scores=scores, all_puts=puts))
        found[role] = Written(f"touched_{role}", "\n\n".join(parts), arguments)
    return found


def _filled(text: str, number: int, term: TouchedTerm) -> str:
    indent = " " * 12
    return text.format(
        number=number,
        width=term.width,
        limit=term.limit,
        touched=term.touched.name,
        statistics=term.statistics.name,
        sums="".join(
            f"{indent}total += weights[offset + {k}] * np.float64(found[{k}])\n" for k in range(term.size)
        ),
        puts="".join(
            f"{indent}put(gradient, move, offset + {k}, sign * np.float64(found[{k}]))\n"
            for k in range(term.size)
        ),
    )
