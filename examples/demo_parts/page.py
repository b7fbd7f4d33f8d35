"""The demo's report: one page without scripts or anything from the network, readable on a phone.

Whatever comes from data passes through `html.escape` on its way into the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from demo_parts.bibliography import Mention

UNCERTAIN = 20  # pairs to list
WIDTH, HEIGHT, MARGIN = 640, 220, 10  # of the score trace

STYLE = """
:root { color-scheme: light dark; --line: #8886; --faint: #8883; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 0 .8rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .4rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
thead .number { white-space: normal; }
tbody th { background: var(--faint); padding-top: .5rem; }
td { overflow-wrap: anywhere; }
mark { background: #f2b84466; color: inherit; border-radius: .2rem; padding: 0 .1rem; }
mark.wrong { background: #e0525266; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem .8rem; font-size: .9rem; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
.note { font-size: .85rem; opacity: .75; }
"""


@dataclass(frozen=True)
class Outcome:
    """What the page shows.

    run
        What was run: names and values.
    weights
        Of each statistic.
    scores
        Rows of: which clustering, clusters, score, pairwise F1, B-cubed F1.
    trace
        Score while annealing, the start's first.
    truth_score
        Score of the true clustering, for comparison.
    labels
        The entity that each mention was put into.
    pairs, together
        Pairs of mentions and the probability that they are the same person.
    """

    mentions: Sequence[Mention]
    run: dict[str, str]
    weights: dict[str, float]
    scores: Sequence[tuple[str, int, float, float, float]]
    trace: Sequence[float]
    truth_score: float
    labels: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    together: Sequence[float]


def write_page(path: Path, outcome: Outcome) -> None:
    """Write the report."""
    entities = _entities(outcome.labels)
    title = f"{len(outcome.mentions)} mentions, {len(entities)} people found"
    parts = [
        f"<h1>{title}</h1>",
        "<dl>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in outcome.run.items())
        + "</dl>",
        "<h2>Scores</h2>",
        _scores(outcome.scores),
        "<h2>Score while annealing</h2>",
        _trace(outcome.trace, outcome.truth_score),
        "<h2>Most uncertain pairs</h2>",
        _uncertain(outcome),
        "<h2>People found</h2>",
        _people(outcome.mentions, entities),
        "<h2>Weights</h2>",
        _table(
            ["statistic", "weight"],
            [(escape(name), f"{w:+g}") for name, w in outcome.weights.items()],
            numbers=(1,),
        ),
    ]
    page = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</html>\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def _entities(labels: Sequence[int]) -> list[list[int]]:
    """Mentions of each entity, the largest first."""
    members: dict[int, list[int]] = {}
    for mention, label in enumerate(labels):
        members.setdefault(label, []).append(mention)
    return sorted(members.values(), key=len, reverse=True)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Make a table of cells that are HTML already."""

    def row(tag: str, cells: Sequence[str]) -> str:
        kinds = [' class="number"' if k in numbers else "" for k in range(len(cells))]
        return "<tr>" + "".join(f"<{tag}{c}>{x}</{tag}>" for c, x in zip(kinds, cells, strict=True)) + "</tr>"

    body = "\n".join(row("td", cells) for cells in rows)
    return f"<table>\n<thead>{row('th', head)}</thead>\n<tbody>{body}</tbody>\n</table>"


def _scores(scores: Sequence[tuple[str, int, float, float, float]]) -> str:
    rows = [
        (escape(name), f"{clusters}", f"{score:,.1f}", f"{pairwise:.3f}", f"{b_cubed:.3f}")
        for name, clusters, score, pairwise, b_cubed in scores
    ]
    return _table(["clustering", "people", "score", "pairwise F1", "B-cubed F1"], rows, numbers=(1, 2, 3, 4))


def _trace(trace: Sequence[float], truth_score: float) -> str:
    low, high = min(0.0, *trace), max(truth_score, *trace)

    def height(score: float) -> float:
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (score - low) / ((high - low) or 1.0)

    across = WIDTH / max(len(trace) - 1, 1)
    points = " ".join(f"{k * across:.1f},{height(score):.1f}" for k, score in enumerate(trace))
    level = height(truth_score)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Score while annealing">'
        f'<line x1="0" x2="{WIDTH}" y1="{level:.1f}" y2="{level:.1f}" stroke="#999" stroke-dasharray="6 5"/>'
        f'<polyline points="{points}" fill="none" stroke="#2a78c2" stroke-width="2.5"/></svg>'
        f'<p class="note">From {trace[0]:,.1f} at the start to {max(trace):,.1f} at best, steps from left to'
        f" right. The dashed line is the score of the true clustering, {truth_score:,.1f}: where the search"
        " ends above it, the model and not the search is what to improve.</p>"
    )


def _shown(mention: Mention) -> str:
    name = f"{mention.last}, {mention.first}" if mention.first else mention.last
    return (
        f"<b>{escape(name)}</b><br>{escape('; '.join(mention.coauthors))}<br><i>{escape(mention.venue)}</i>"
    )


def _uncertain(outcome: Outcome) -> str:
    order = sorted(range(len(outcome.pairs)), key=lambda k: abs(outcome.together[k] - 0.5))
    rows: list[tuple[str, ...]] = []
    listed: set[int] = set()  # each mention once: one that wavers does so against a whole cluster
    for k in order:
        if len(rows) < UNCERTAIN and not listed & set(outcome.pairs[k]):
            listed |= set(outcome.pairs[k])
            first, second = (outcome.mentions[i] for i in outcome.pairs[k])
            truth = "same" if first.person == second.person else "differ"
            rows.append((_shown(first), _shown(second), f"{outcome.together[k]:.2f}", truth))
    return _table(["mention", "mention", "P(same)", "truth"], rows, numbers=(2,))


def _people(mentions: Sequence[Mention], entities: Sequence[Sequence[int]]) -> str:
    """One block of rows per entity; what differs from the majority is marked."""
    blocks = []
    for members in entities:
        listed = [mentions[i] for i in members]
        last, first, venue, person = (
            _majority([getattr(m, name) for m in listed]) for name in ("last", "first", "venue", "person")
        )
        company = Counter(name for m in listed for name in m.coauthors)
        several = len(listed) > 1
        rows = [
            f"<td>{_marked(m.last, m.last != last)}, {_marked(m.first or '(none)', m.first != first)}</td>"
            f"<td>{'; '.join(_marked(n, several and company[n] == 1) for n in m.coauthors)}</td>"
            f"<td>{_marked(m.venue, m.venue != venue)}</td>"
            f'<td class="number">{_marked(str(m.person), m.person != person, "wrong")}</td>'
            for m in listed
        ]
        count = f"{len(listed)} mentions" if several else "1 mention"
        name = f"{last}, {first}" if first else str(last)
        body = "".join(f"<tr>{row}</tr>\n" for row in rows)
        blocks.append(f'<tbody><tr><th colspan="4">{escape(name)} ({count})</th></tr>\n{body}</tbody>')
    head = '<thead><tr><th>name</th><th>with</th><th>venue</th><th class="number">truth</th></tr></thead>'
    legend = (
        '<p class="note"><mark>Marked</mark>: differs from what most mentions of the person have; a'
        ' co-author: no other mention has them. <mark class="wrong">Red</mark>: in truth another person.</p>'
    )
    return f"{legend}<table>{head}{''.join(blocks)}</table>"


def _majority(values: Sequence[str] | Sequence[int]) -> str | int:
    """Return the most frequent value; what was not printed does not count unless nothing was."""
    printed = [value for value in values if value != ""]
    return Counter(printed or values).most_common(1)[0][0]


def _marked(text: str, mark: bool, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<mark{attribute}>{escape(text)}</mark>" if mark else escape(text)
