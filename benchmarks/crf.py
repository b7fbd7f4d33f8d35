"""Chain CRFs against python-crfsuite 0.9.12: same attributes, same objective, one run.

    .venv/bin/python benchmarks/crf.py [--rounds 3] [--quick] [PART ...]

Parts: iteration, generated, whole, online, tagging, sparse, corpora. CoNLL-2000, WNUT-17 and UD-EWT are
looked for in FACTORWISE_DATA (seq_conll2000, seq_wnut17, seq_ud_ewt); without them only ``generated`` runs.

Every contender runs in a process of its own, in turns, and the smallest time of all rounds counts. CRFsuite
has one thread; its iterations are timed by its own log, which is CPU time. Ours are timed twice: CPU time
with one thread, wall time with two. Both read the same attribute lists from the same file, except in
``whole``, which goes from the CoNLL file to the saved model the way a user of each would.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from peers import ONE_THREAD, Peer, PeerUnavailableError, run_here
from timing import table, verdict

CRFSUITE = Peer("crfsuite", ("python-crfsuite==0.9.12",))
TWO_THREADS = dict.fromkeys(ONE_THREAD, "2")
PEAK_BAR = 400.0
OPTIMUM = 10738.6276  # of NLL + ||w||^2 on CoNLL-2000 with these attributes


# attribute lists: one token a line, its label and its attributes between tabs, a blank line between sentences


def write_attributes(path: Path, sentences: Iterator[tuple[list[list[str]], list[str]]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for attributes, labels in sentences:
            for token, label in zip(attributes, labels, strict=True):
                stream.write("\t".join([label, *token]) + "\n")
            stream.write("\n")


def read_attributes(path: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    sentences, labels = [], []
    for block in Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n")]
        sentences.append([row[1:] for row in rows])
        labels.append([row[0] for row in rows])
    return sentences, labels


def conll_sentences(path: Path, encoding: str = "utf-8") -> Iterator[list[list[str]]]:
    sentence: list[list[str]] = []
    for line in path.read_text(encoding=encoding).split("\n"):
        if line.strip():
            sentence.append(line.split())
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def attributes_of(sentence: list[list[str]]) -> list[list[str]]:
    """Word, affixes, shape, neighbours and conjunctions: 26 attributes and some flags."""
    words = ["<-2>", "<-1>", *(token[0] for token in sentence), "<+1>", "<+2>"]
    tags = ["<-2>", "<-1>", *(token[1] for token in sentence), "<+1>", "<+2>"]
    found = []
    for at in range(2, len(words) - 2):
        word = words[at]
        shape = "".join(
            "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
        )
        token = ["bias", f"w={word}", f"l={word.lower()}", f"s2={word[-2:]}", f"s3={word[-3:]}"]
        token += [f"p2={word[:2]}", f"shape={shape}", "short=" + re.sub(r"(.)\1+", r"\1", shape)]
        token += [f"w[{k}]={words[at + k]}" for k in (-2, -1, 1, 2)]
        token += [f"w[-1]|w={words[at - 1]}|{word}", f"w|w[1]={word}|{words[at + 1]}"]
        token += [f"p[{k}]={tags[at + k]}" for k in (-2, -1, 0, 1, 2)]
        token += [f"p[{k}]|p[{k + 1}]={tags[at + k]}|{tags[at + k + 1]}" for k in (-2, -1, 0, 1)]
        token += [f"p[{k}..]={'|'.join(tags[at + k : at + k + 3])}" for k in (-2, -1, 0)]
        flags = {
            "digit": word.isdigit(),
            "title": word.istitle(),
            "upper": word.isupper(),
            "first": at == 2,
            "last": at == len(words) - 3,
        }
        found.append(token + [name for name, holds in flags.items() if holds])
    return found


def generated(sentences: int, seed: int = 0) -> Iterator[tuple[list[list[str]], list[str]]]:
    """75 attributes a token, most of them rare: words, pairs and noise that depend on a hidden label."""
    import numpy as np  # here: the peer's environment has none

    rng = np.random.default_rng(seed)
    labels = 22
    follow = rng.dirichlet(np.full(labels, 0.15), size=labels)
    for _ in range(sentences):
        length = int(np.clip(rng.normal(24, 9), 3, 70))
        label = [int(rng.integers(labels))]
        for _ in range(length - 1):
            label.append(int(rng.choice(labels, p=follow[label[-1]])))
        # a frequent half that follows the label, a rare half that hardly does
        often = (rng.zipf(1.5, size=(length, 40)) + 37 * np.array(label)[:, None]) % 2_000
        seldom = rng.zipf(1.22, size=(length, 35)) % 8_000
        rows = [
            [f"a{slot}={value}" for slot, value in enumerate(one)]
            + [f"b{slot}={value}" for slot, value in enumerate(other)]
            for one, other in zip(often.tolist(), seldom.tolist(), strict=True)
        ]
        yield rows, [f"L{code}" for code in label]


# contenders; each prints one line of JSON


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def crfsuite_train(sentences: Any, labels: Any, model: str, algorithm: str, **options: Any) -> Any:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    for tokens, truth in zip(sentences, labels, strict=True):
        trainer.append(tokens, truth)
    trainer.set_params(options)
    begin = time.process_time()
    trainer.train(model)
    return trainer, time.process_time() - begin


def crfsuite_fit(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    sentences, labels = read_attributes(data)
    algorithm = options.pop("algorithm", "lbfgs")
    trainer, cpu = crfsuite_train(sentences, labels, model, algorithm, **options)
    log = trainer.logparser.iterations
    return {
        "seconds": [float(step["time"]) for step in log],
        "objective": [float(step["loss"]) for step in log],
        "active": [int(step.get("active_features", 0)) for step in log],
        "cpu": cpu,
        "peak": peak_mb(),
    }


def crfsuite_tag(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    import pycrfsuite

    sentences, labels = read_attributes(data)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    times = []
    for _ in range(options.get("repeats", 3)):
        begin = time.process_time()
        predicted = [tagger.tag(tokens) for tokens in sentences]
        times.append(time.process_time() - begin)
    tokens = sum(map(len, labels))
    return {"tokens_per_second": tokens / min(times), "predicted": predicted}


def crfsuite_whole(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    began, begin = time.perf_counter(), time.process_time()
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for sentence in conll_sentences(Path(data)):
        trainer.append(attributes_of(sentence), [token[-1] for token in sentence])
    trainer.set_params(options)
    trainer.train(model)
    cpu, wall = time.process_time() - begin, time.perf_counter() - began
    return {"cpu": cpu, "wall": wall, "peak": peak_mb(), "iterations": len(trainer.logparser.iterations)}


def our_fit(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    from factorwise import ChainCRF

    sentences, labels = read_attributes(data)
    ChainCRF(max_iterations=2, **_without(options, "max_iterations")).fit(sentences[:50], labels[:50])
    crf = ChainCRF(n_jobs=int(os.environ["NUMBA_NUM_THREADS"]), **options)
    began, begin = time.perf_counter(), time.process_time()
    crf.fit(sentences, labels)
    cpu, wall = time.process_time() - begin, time.perf_counter() - began
    crf.save(model)
    steps = crf.training_log_
    seconds = [after.seconds - before.seconds for before, after in pairwise(steps)]
    return {
        "seconds": seconds,
        "objective": [step.objective for step in steps],
        "active": [step.active for step in steps],
        "weights": len(crf.tagger_.weights),
        "cpu": cpu,
        "wall": wall,
        "final": crf.objective_,
        "iterations": crf.n_iter_,
        "peak": peak_mb(),
    }


def our_tag(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    from factorwise import ChainCRF

    sentences, labels = read_attributes(data)
    crf = ChainCRF.load(model, n_jobs=1)
    crf.predict(sentences[:10])
    times = []
    for _ in range(options.get("repeats", 3)):
        begin = time.process_time()
        predicted = crf.predict(sentences)
        times.append(time.process_time() - begin)
    tokens = sum(map(len, labels))
    return {"tokens_per_second": tokens / min(times), "predicted": predicted}


def our_whole(data: str, model: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run the command line, as a user would, and measure the process."""
    import subprocess

    command = [str(Path(sys.executable).with_name("factorwise")), "tag", "fit", data, "--model", model]
    command += ["--quiet", "--json", "--threads", os.environ["NUMBA_NUM_THREADS"]]
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"cpu": cpu, "wall": wall, "peak": peak, "report": json.loads(done.stdout)}


def _without(options: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}


# what is compared


class Contest:
    """Runs contenders in turns and keeps the smallest times."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds

    def run(self, contenders: dict[str, tuple[str, Path, str, dict[str, Any], int]]) -> dict[str, list[Any]]:
        """Each contender: function, data, model, options, threads."""
        results: dict[str, list[Any]] = {name: [] for name in contenders}
        for _ in range(self.rounds):
            for name, (function, data, model, options, threads) in contenders.items():
                words = [function, str(data), str(self.folder / model), json.dumps(options)]
                variables = ONE_THREAD if threads == 1 else TWO_THREADS
                runner = CRFSUITE.run if function.startswith("crfsuite") else run_here
                results[name].append(runner(Path(__file__), words, variables=variables))
        return results


def fastest_iteration(runs: list[Any]) -> float:
    """Median iteration of the fastest run: one line-search trial, as nearly all have."""
    return min(median(run["seconds"]) for run in runs)


def compare_iterations(contest: Contest, data: Path, title: str, bars: tuple[float, float]) -> None:
    options = {"c2": 1.0, "max_iterations": 15}
    runs = contest.run(
        {
            "CRFsuite": ("crfsuite_fit", data, "peer.crfsuite", {**options, "c1": 0.0}, 1),
            "ours, 1 thread": ("our_fit", data, "ours.fw", options, 1),
            "ours, 2 threads": ("our_fit", data, "ours.fw", options, 2),
        }
    )
    peer = fastest_iteration(runs["CRFsuite"])
    rows = [("CRFsuite", f"{peer:.4f}", "1.0", f"{runs['CRFsuite'][0]['objective'][-1]:.2f}", "")]
    for name, bar in (("ours, 1 thread", bars[0]), ("ours, 2 threads", bars[1])):
        own = fastest_iteration(runs[name])
        ratio = peer / own
        rows.append(
            (
                name,
                f"{own:.4f}",
                f"{ratio:.1f}",
                f"{runs[name][0]['objective'][-1]:.2f}",
                f"bar {bar:g}: {verdict(ratio, bar)}",
            )
        )
    print(f"{title}: {runs['ours, 1 thread'][0]['weights']} weights, seconds an iteration of L-BFGS, c2 = 1")
    print(table(("", "seconds", "times less", "objective after 15", ""), rows), flush=True)


def compare_whole(contest: Contest, train: Path) -> None:
    runs = contest.run(
        {
            "CRFsuite": ("crfsuite_whole", train, "whole.crfsuite", {"c1": 0.0, "c2": 1.0}, 1),
            "ours": ("our_whole", train, "whole.fw", {"c2": 1.0}, 2),
        }
    )
    peer, own = (min(runs[name], key=lambda run: run["wall"]) for name in ("CRFsuite", "ours"))
    ratio = peer["wall"] / own["wall"]
    rows = [
        (name, f"{run['wall']:.1f}", f"{run['cpu']:.1f}", f"{run['peak']:.0f}")
        for name, run in (("CRFsuite", peer), ("ours, 2 threads", own))
    ]
    print("from the CoNLL-2000 file to the saved model, c2 = 1, to convergence")
    print(table(("", "wall s", "CPU s", "peak MB"), rows))
    objective = own["report"]["training"]["objective"]
    print(f"times less: {ratio:.1f} (bar 6: {verdict(ratio, 6.0)});", end=" ")
    print(f"peak memory (bar {PEAK_BAR} MB): {verdict(own['peak'], PEAK_BAR, at_most=True)}")
    print(
        f"objective {objective:.4f}, optimum {OPTIMUM}: {(objective - OPTIMUM) / OPTIMUM:.1e} relative",
        flush=True,
    )


def compare_online(contest: Contest, data: Path) -> None:
    rows = []
    for algorithm, bar in (("ap", 5.0), ("pa", None), ("arow", None), ("l2sgd", None)):
        options = {"algorithm": algorithm, "max_iterations": 10}
        runs = contest.run(
            {
                "peer": ("crfsuite_fit", data, "online.crfsuite", options, 1),
                "ours": ("our_fit", data, "online.fw", options, 1),
            }
        )
        peer, own = fastest_iteration(runs["peer"]), fastest_iteration(runs["ours"])
        judged = "" if bar is None else f"bar {bar:g}: {verdict(peer / own, bar)}"
        rows.append((algorithm, f"{peer:.3f}", f"{own:.3f}", f"{peer / own:.1f}", judged))
    print("seconds a pass over CoNLL-2000, one thread")
    print(table(("", "CRFsuite", "ours", "times less", ""), rows), flush=True)


def compare_tagging(contest: Contest, train: Path, test: Path) -> None:
    options = {"c2": 1.0, "max_iterations": 30}
    once = Contest(contest.folder, 1)
    once.run(
        {
            "peer": ("crfsuite_fit", train, "tag.crfsuite", {**options, "c1": 0.0}, 1),
            "ours": ("our_fit", train, "tag.fw", options, 2),
        }
    )
    runs = contest.run(
        {
            "CRFsuite": ("crfsuite_tag", test, "tag.crfsuite", {}, 1),
            "ours": ("our_tag", test, "tag.fw", {}, 1),
        }
    )
    peer, own = (max(run["tokens_per_second"] for run in runs[name]) for name in ("CRFsuite", "ours"))
    print("tagging CoNLL-2000 test from attribute lists, tokens a CPU second, one thread")
    rows = [("CRFsuite", f"{peer:,.0f}", ""), ("ours", f"{own:,.0f}", f"{own / peer:.1f} times")]
    print(table(("", "tokens/s", ""), rows))
    print(f"bar 5: {verdict(own / peer, 5.0)}", flush=True)


def compare_sparse(data: Path, test: Path, contest: Contest, quick: bool) -> None:
    options = {"c1": 0.1, "c2": 0.1, "max_iterations": 10 if quick else 100}
    once = Contest(contest.folder, 1)
    runs = once.run(
        {
            "CRFsuite": ("crfsuite_fit", data, "sparse.crfsuite", options, 1),
            "ours": ("our_fit", data, "sparse.fw", options, 2),
        }
    )
    peer, own = runs["CRFsuite"][0], runs["ours"][0]
    goal = peer["objective"][-1]
    reached = next((k + 1 for k, value in enumerate(own["objective"]) if value <= goal), None)
    rows = [
        (
            "CRFsuite",
            f"{goal:.2f}",
            str(len(peer["objective"])),
            str(peer["active"][-1]),
            f"{peer['cpu']:.1f}",
        ),
        (
            "ours",
            f"{own['objective'][-1]:.2f}",
            str(len(own["objective"])),
            str(own["active"][-1]),
            f"{own['cpu']:.1f}",
        ),
    ]
    print("c1 = c2 = 0.1 on CoNLL-2000")
    print(table(("", "objective", "iterations", "active weights", "CPU s"), rows))
    print(f"CRFsuite's last objective was reached by ours after {reached} iterations", flush=True)


def compare_corpora(contest: Contest, folder: Path, root: Path, quick: bool) -> None:
    from factorwise.apps.tagging.features.extraction import TemplateExtractor
    from factorwise.apps.tagging.features.templates import default_templates
    from factorwise.io.conll import read_columns
    from factorwise.metrics.sequence import score_spans, token_accuracy

    corpora = {
        "WNUT-17": ("seq_wnut17", "train.conll", "test.conll", (0,), 1, None),
        "UD-EWT": ("seq_ud_ewt", "train.tsv", "test.tsv", (0,), 2, "# "),
        "CoNLL-2000": ("seq_conll2000", "train.txt", "test.txt", (0, 1), 2, None),
    }
    print("trained to convergence with c2 = 1 on the same attributes (bundled templates), scored on test")
    for title, (name, train_name, test_name, columns, label, comment) in corpora.items():
        parts = []
        for file in (train_name, test_name):
            read = read_columns(root / name / file, comment=comment)
            extractor = TemplateExtractor(default_templates(len(columns)))
            encoded = extractor.fit_encode([read.column(k) for k in columns], read.start)
            names = list(extractor.names())
            flat = [names[k] for k in encoded.rows.indices.tolist()]
            bounds, truth = encoded.rows.indptr.tolist(), read.sentences(label)
            tokens = iter(flat[a:b] for a, b in pairwise(bounds))
            path = folder / f"{name}.{len(parts)}.tsv"
            write_attributes(path, (([next(tokens) for _ in one], one) for one in truth))
            parts.append((path, truth))
        options = {"c1": 0.0, "c2": 1.0} | ({"max_iterations": 10} if quick else {})
        once = Contest(contest.folder, 1)
        fit = once.run(
            {
                "CRFsuite": ("crfsuite_fit", parts[0][0], f"{name}.crfsuite", options, 1),
                "ours": ("our_fit", parts[0][0], f"{name}.fw", options, 2),
            }
        )
        tag = once.run(
            {
                "CRFsuite": ("crfsuite_tag", parts[1][0], f"{name}.crfsuite", {"repeats": 1}, 1),
                "ours": ("our_tag", parts[1][0], f"{name}.fw", {"repeats": 1}, 1),
            }
        )
        rows = []
        for contender in ("CRFsuite", "ours"):
            predicted, truth = tag[contender][0]["predicted"], parts[1][1]
            f1 = "" if title == "UD-EWT" else f"{score_spans(truth, predicted).micro.f1:.4f}"
            rows.append(
                (
                    f"{title}, {contender}",
                    f1,
                    f"{token_accuracy(truth, predicted):.4f}",
                    f"{fit[contender][0]['objective'][-1]:.2f}",
                    f"{fit[contender][0]['cpu']:.1f}",
                )
            )
        print(table(("", "span F1", "accuracy", "objective", "CPU s"), rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help="which parts; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    options = parser.parse_args()
    root = Path(os.environ.get("FACTORWISE_DATA", "")) if "FACTORWISE_DATA" in os.environ else None
    there = root is not None and (root / "seq_conll2000").is_dir()
    parts = options.parts or ["iteration", "generated", "whole", "online", "tagging", "sparse", "corpora"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contest = Contest(folder, 1 if options.quick else options.rounds)
        train, test = folder / "train.tsv", folder / "test.tsv"
        raw = folder / "train.txt"
        if there and root is not None:
            limit = 300 if options.quick else None
            for source, target in (
                (root / "seq_conll2000/train.txt", train),
                (root / "seq_conll2000/test.txt", test),
            ):
                chosen = list(conll_sentences(source))[:limit]
                write_attributes(target, ((attributes_of(s), [token[-1] for token in s]) for s in chosen))
                if target == train:
                    raw.write_text("\n".join("\n".join(" ".join(t) for t in s) + "\n" for s in chosen))
        steps: dict[str, Callable[[], None]] = {
            "iteration": lambda: compare_iterations(contest, train, "CoNLL-2000", (5.0, 10.0)),
            "generated": lambda: run_generated(contest, folder, options.quick),
            "whole": lambda: compare_whole(contest, raw),
            "online": lambda: compare_online(contest, train),
            "tagging": lambda: compare_tagging(contest, train, test),
            "sparse": lambda: compare_sparse(train, test, contest, options.quick),
            "corpora": lambda: compare_corpora(contest, folder, root or Path(), options.quick),
        }
        for part in parts:
            if part != "generated" and not there:
                print(f"{part}: left out, FACTORWISE_DATA has no seq_conll2000")
                continue
            try:
                steps[part]()
            except PeerUnavailableError as absent:
                sys.exit(f"{part}: {absent}")
            print(flush=True)


def run_generated(contest: Contest, folder: Path, quick: bool) -> None:
    data = folder / "generated.tsv"
    write_attributes(data, generated(200 if quick else 8_936))
    compare_iterations(contest, data, "generated, 75 attributes a token", (17.0, 30.0))


if __name__ == "__main__":
    roles = {f.__name__: f for f in (crfsuite_fit, crfsuite_tag, crfsuite_whole, our_fit, our_tag, our_whole)}
    if len(sys.argv) > 1 and sys.argv[1] in roles:
        print(json.dumps(roles[sys.argv[1]](sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))))
    else:
        main()
