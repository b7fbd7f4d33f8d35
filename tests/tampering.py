"""Files that were tampered with, and what they are used for: each is used or refused, and none does harm.

A tampered file is consistent as far as checksums go, so that only what it says can give it away: numbers,
names, arrays, types and shapes are changed in one to three places. Run by itself, it uses as many as it is
told to, in processes that may die of one, which would be reported with its number::

    python tests/tampering.py --cases 200000 --processes 2
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from command_lines import whole_folder
from factorwise import Model, Partition
from factorwise.apps.resolution.linked_items import LinkedItems
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.resolving import Keeping, searched
from factorwise.cli import main
from factorwise.distributed import LocalExecutor, ShardKeeping
from factorwise.distributed.search import entities_of
from factorwise.errors import FactorwiseError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.checkpoints import FILE
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.weights import load_weights, save_weights
from factorwise.io.shard_files import ShardStore, _table
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.rng import split_mix_words
from resolution_cases import known_of, people_table
from shard_cases import planted

LONGEST = 20  # seconds of processor time for one file
NUMBERS = (-1, 0, 1, 2, 7, 10**6, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, -0.0, 0.5, 1e-320)
OTHERS = (
    1e308,
    -1e308,
    None,
    True,
    False,
    "",
    "x",
    "\x00",
    "__class__",
    "1",
    [],
    {},
    [[]],
    [None],
    ["a", 1],
    {"a": 1},
)
FILLINGS = (0, -1, 1, 2, 127, 2**31 - 1, -(2**31), 2**62, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324)
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "<i2", "|b1", "|u1", "<c16", "<U3", "|S2", ">f8", ">i4")
SWAPPED = ">"  # no table holds such numbers, nor complex ones


# --- changing what a file says ------------------------------------------------------------------------


def tampered(rng, model):
    """Return a model file with one to three changes."""
    metadata, arrays = json.loads(json.dumps(dict(model.metadata))), dict(model.arrays)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if arrays and rng.random() < 0.5:
            change_array(rng, arrays)
        else:
            change_value(rng, metadata)
    return ModelFile(kind=model.kind, metadata=metadata, arrays=arrays, provenance=model.provenance)


def change_value(rng, document):
    """Replace, remove, double or exchange one of the values of a JSON document."""
    places = [(owner, key) for owner, key in places_of(document)]
    if not places:
        return
    owner, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del owner[key]
        case 1:
            other, name = rng.choice(places)
            owner[key] = json.loads(
                json.dumps(other.get(name) if isinstance(other, dict) else at(other, name))
            )
        case 2 if isinstance(owner, list):
            owner.insert(rng.randrange(len(owner) + 1), owner[key])
        case 3 if isinstance(owner[key], int | float) and not isinstance(owner[key], bool):
            owner[key] = rng.choice(
                (owner[key] + 1, owner[key] - 1, -owner[key], float(owner[key]), str(owner[key]))
            )
        case _:
            owner[key] = copy.deepcopy(rng.choice(NUMBERS + OTHERS))  # changed later, it must be its own


def at(values, place):
    return values[place] if place < len(values) else None


def places_of(value):
    """Yield every place in a JSON document, as what holds it and the key or number."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places_of(value[key])


def change_array(rng, arrays):
    """Change entries, length, order, type or shape of one array, or remove it."""
    name = rng.choice(sorted(arrays))
    array = np.array(arrays[name])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        match rng.randrange(9):
            case 0 | 1 | 2 | 3 if array.size and array.dtype.kind in "biuf":
                for _ in range(rng.choice((1, 1, 3))):
                    filling = np.float64(rng.choice(FILLINGS))
                    array.reshape(-1)[rng.randrange(array.size)] = filling.astype(array.dtype)
            case 4 if array.ndim:
                array = array[: rng.randrange(len(array) + 1)]
            case 5 if array.ndim and len(array):
                array = np.concatenate([array, array[: rng.randrange(1, len(array) + 1)]])
            case 6 if array.ndim:
                array = array[rng.sample(range(len(array)), len(array))]
            case 7:
                array = array.astype(rng.choice(DTYPES)) if array.dtype.kind in "biuf" else array[..., None]
            case _:
                if rng.random() < 0.5:
                    del arrays[name]
                    return
                array = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1))))
    arrays[name] = array


# --- what files are used for --------------------------------------------------------------------------


class CommandUse:
    """A model file that a line of the command line reads."""

    def __init__(self, folder, name, line):
        self.folder, self.model = folder, read_model(folder / name)
        words = [word for word in line.split() if word not in ("--report", "out.html")]
        self.words = ["tampered.fw" if word == name else word for word in words]

    def __call__(self, rng):
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            write_model("tampered.fw", tampered(rng, self.model))
            words = self.words if rng.random() < 0.9 else ["inspect", "tampered.fw"]
            run_line(words)
        finally:
            os.chdir(before)


def run_line(words):
    """Run the command line; raise what it takes for an internal error, or `FactorwiseError` if it refuses."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            main.main([*words, "--quiet", "--threads", "1", "--json"])
        except SystemExit as left:
            code = left.code
    if code == 2:
        raise FactorwiseError(errors.getvalue())
    if code != 0:
        raise AssertionError(f"exit code {code}: {errors.getvalue()}")


class WeightsUse:
    """Weights of a model built in code: load, then score."""

    def __init__(self, folder):
        self.folder, self.world = folder, Partition.from_labels([0, 0, 1, 2])
        self.fresh = lambda: Model([ClusterSize("size")])
        model = self.fresh()
        save_weights(folder / "weights.fw", model)
        self.saved = read_model(folder / "weights.fw")

    def __call__(self, rng):
        write_model(self.folder / "weights.fw", tampered(rng, self.saved))
        model = self.fresh()
        load_weights(self.folder / "weights.fw", model)
        model.score(self.world)


class CheckpointUse:
    """A checkpoint of a search in one piece: go on from it."""

    search = LinkSearch(rounds=3, sweeps=1, extra=1)

    def __init__(self, folder):
        people = people_table(40)
        self.folder, self.linked = folder / "kept", link(people, known_of(people), team=Team(1))
        self.keeping = Keeping(str(self.folder), 0.0, "run ")
        self.team = Team(1)

        def stop(progress):
            if progress.round == 2:
                raise KeyboardInterrupt

        self.run(stop)
        self.saved = read_model(self.folder / FILE)

    def run(self, watch=None):
        linked = LinkedItems(self.linked.unit, self.linked.links)  # every record by itself
        return searched(linked, self.search, seed=1, team=self.team, keeping=self.keeping, watch=watch)

    def __call__(self, rng):
        changed = tampered(rng, self.saved)
        metadata = {**changed.metadata}
        if rng.random() < 0.95:  # of another run, it would be refused without a look
            metadata["fingerprint"] = self.saved.metadata["fingerprint"]
        made = ModelFile(kind=changed.kind, metadata=metadata, arrays=changed.arrays)
        write_model(self.folder / FILE, made)
        self.run()


class ShardUse:
    """A checkpoint of a search in shards, of which the manifest or the rows of a shard are changed."""

    search = LinkSearch(rounds=4, sweeps=1, extra=0)

    def __init__(self, folder):
        self.folder, self.problem = folder / "shards", planted(n=40)
        self.store = ShardStore(str(self.folder))
        self.keeping = ShardKeeping(self.store, "run", 1)
        executor = LocalExecutor(1)

        def stop(progress):
            if progress.round == 3:
                raise KeyboardInterrupt

        self.problem.search(executor, 2, search=self.search, keeping=self.keeping, watch=stop)
        self.saved = self.store.latest("run")
        self.columns = [self.store.read(file) for file in self.saved.files]
        self.manifest = next(self.folder.glob("manifest-*.json"))
        self.text = json.loads(self.manifest.read_text())

    def __call__(self, rng):
        text, files = json.loads(json.dumps(self.text)), []
        if rng.random() < 0.3:
            for _ in range(rng.randrange(1, 4)):
                change_value(rng, text)
            if rng.random() < 0.9:
                text["fingerprint"] = "run"
        else:
            shard = rng.randrange(len(self.columns))
            columns = dict(self.columns[shard])
            for _ in range(rng.randrange(1, 3)):
                change_array(rng, columns)
            files.append(self.write_rows(rng, shard, columns, text))
        self.manifest.write_text(json.dumps(text))
        executor = LocalExecutor(1)
        try:
            self.problem.search(
                executor, None, count=2, search=self.search, keeping=ShardKeeping(self.store, "run", 10**6)
            )
            entities_of(executor, 40)
        finally:
            for path in files:
                path.unlink(missing_ok=True)

    def write_rows(self, rng, shard, columns, text):
        """Write rows as Parquet beside those of the checkpoint, with the checksum that they have."""
        name = f"shard-{shard:05d}-{rng.randrange(16**16):016x}.parquet"
        path = self.folder / name
        try:
            table = _table(columns)
            table.validate(full=True)  # Arrow would write, and read, where there is nothing
        except (KeyError, pa.ArrowException, ValueError, TypeError):  # not even a table: as plain columns
            plain = {
                key: pa.array(value.ravel())
                for key, value in columns.items()
                if value.dtype.kind != "c" and not value.dtype.str.startswith(SWAPPED)
            }
            longest = min((len(value) for value in plain.values()), default=0)
            table = pa.table({key: value[:longest] for key, value in plain.items()})
        pq.write_table(table, path)
        items = np.asarray(columns.get("item", ()))
        entry = [name, len(items), text["files"][shard][2]]
        with contextlib.suppress(Exception):
            entry[2] = int(split_mix_words(items.astype(np.uint64)).sum(dtype=np.uint64))
        text["files"][shard] = entry
        return path


def all_uses(folder):
    """Make small files of every kind in a folder, and return what uses tampered copies of them."""
    place = whole_folder(folder)
    for name, more in (("order2", "--order 2"), ("global", "--global auto")):
        line = f"tag fit tags.txt --max-iterations 2 {more} --model {name}.fw"
        before = Path.cwd()
        os.chdir(place)
        try:
            with contextlib.suppress(FactorwiseError):
                run_line(line.split())
        finally:
            os.chdir(before)
    lines = {
        "tag.fw": "tag apply tags.txt --model tag.fw -o out.txt",
        "order2.fw": "tag apply tags.txt --model order2.fw -o out.txt",
        "global.fw": "tag apply tags.txt --model global.fw -o out.txt",
        "align.fw": "align apply a.jsonl b.jsonl --model align.fw -o out.tsv",
        "flows.fw": "flows apply counts.csv --model flows.fw -o out.csv",
        "coref.fw": "coref apply docs.jsonl --model coref.fw -o out.jsonl",
        "resolve.fw": "resolve apply records.csv --id id --model resolve.fw -o out.csv",
    }
    uses = {name: CommandUse(place, name, line) for name, line in lines.items() if (place / name).exists()}
    uses["weights"] = WeightsUse(folder)
    uses["checkpoint"], uses["shards"] = CheckpointUse(folder), ShardUse(folder)
    return uses


#: How often each kind is taken: those that are used quickly more often.
SHARES = {"resolve.fw": 1, "coref.fw": 1, "checkpoint": 8, "shards": 4}
USUAL = 6


def use_case(uses, kind, number):
    """Use one tampered file; return ``"used"``, ``"refused"``, or what went wrong."""
    rng = random.Random(f"{kind} {number}")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            uses[kind](rng)
    except FactorwiseError as error:
        return "refused" if str(error).strip() else "refused without a word"
    except Exception:
        return traceback.format_exc()
    return "used"


# --- many cases, in processes that may die ------------------------------------------------------------


def work(folder, begin, step, cases, kinds):
    """Use every ``step``-th case from ``begin`` on; what is begun and was counted goes to a file."""
    uses = all_uses(folder)
    turns = [kind for kind in uses for _ in range(SHARES.get(kind, USUAL)) if not kinds or kind in kinds]
    counts = Counter()
    for number in range(begin, cases, step):
        kind = turns[(number // step) % len(turns)]
        (folder / "at").write_text(json.dumps([number, kind, counts]))
        signal.setitimer(signal.ITIMER_PROF, LONGEST)  # whose signal ends the process, compiled code or not
        outcome = use_case(uses, kind, number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if outcome not in ("used", "refused"):
            print(f"case {number} of {kind}: {outcome}", flush=True)
            outcome = "wrong"
        counts[f"{kind} {outcome}"] += 1
    (folder / "at").write_text(json.dumps([cases, "", counts]))


def supervise(root, worker, options):
    """Run the cases of one worker, in a new process whenever one has died; return what was counted."""
    begin, counts = options.begin + worker, Counter()
    while begin < options.cases:
        place = Path(tempfile.mkdtemp(dir=root))
        numbers = [str(number) for number in (begin, options.processes, options.cases)]
        done = subprocess.run(
            [sys.executable, __file__, "--work", place, *numbers, *options.kinds], check=False
        )
        at, kind, counted = json.loads((place / "at").read_text())
        counts.update(counted)
        if done.returncode == 0:
            break
        print(f"DIED with {done.returncode} at case {at} of {kind}", flush=True)
        counts["died"] += 1
        begin = at + options.processes
    return counts


def main_many():
    """Use many cases and print how often they were used, refused, or went wrong; exit with 1 if any did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(options.processes) as pool:
        parts = pool.map(lambda worker: supervise(root, worker, options), range(options.processes))
        counts = sum(parts, Counter())
    for name, count in sorted(counts.items()):
        print(f"{count:8,} {name}")
    print(f"{sum(counts.values()):8,} in all")
    sys.exit(any(name == "died" or name.endswith(" wrong") for name in counts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), *map(int, sys.argv[3:6]), sys.argv[6:])
    else:
        main_many()
