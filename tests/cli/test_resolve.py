"""``factorwise resolve``: learning and finding entities."""

import json
import tomllib
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from factorwise.apps.resolution.blocking import joins
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.merge_odds import MergeLine, MergeOdds
from factorwise.apps.resolution.training import ladder
from factorwise.cli import main
from factorwise.cli.learned_weights import TOP
from factorwise.cli.resolve import apply as resolve_apply
from factorwise.cli.resolve import progress as resolve_progress
from factorwise.cli.resolve.fit import bottleneck
from factorwise.cli.resolve.progress import progress_text
from factorwise.inference.mcmc.shards import component_search
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.inference.mcmc.shards.search import SearchProgress
from factorwise.io.models.files import read_model
from factorwise.io.tables.reading import read_table
from factorwise.metrics.clustering import b_cubed
from record_cases import people, read_csv, without, write_csv

RECORDS = people(120)
FEW = people(24)
PAIRS = [
    {"id": RECORDS[2 * k]["id"], "other": RECORDS[2 * k + 1]["id"],
     "same": int(RECORDS[2 * k]["person"] == RECORDS[2 * k + 1]["person"])}
    for k in range(60)
]  # fmt: skip


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with labelled records, fewer without labels, a model, and the entities it finds."""
    place = tmp_path_factory.mktemp("resolve")
    write_csv(place / "labelled.csv", RECORDS)
    write_csv(place / "few.csv", without(FEW, "person"))
    words = ("--id", "id", "--entity", "person", "--quiet", "--model", place / "m.fw")
    quietly("resolve", "fit", place / "labelled.csv", *words)
    words = ("--id", "id", "--quiet", "--model", place / "m.fw", "-o", place / "out.csv")
    quietly("resolve", "apply", place / "few.csv", *words)
    return place


@pytest.fixture
def fit(run, folder, tmp_path):
    """Learn from the labelled records with more options; return the summary."""

    def fit(*words, data=folder / "labelled.csv", more=()):
        words = ("--id", "id", "--model", tmp_path / "m.fw", "--json", *words)
        result = run("resolve", "fit", data, *more, *words)
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return fit


@pytest.fixture
def apply(run, folder, tmp_path):
    """Find the entities of the few records with more options; return that of each id, and the summary."""

    def apply(*words, data=(folder / "few.csv",), out=tmp_path / "o.csv", model=folder / "m.fw"):
        words = (*words, "--id", "id", *(() if model is None else ("--model", model)), "-o", out)
        result = run("resolve", "apply", *data, "--json", *words)
        assert result.code == 0, result.err
        return {row["id"]: row["entity"] for row in read_csv(out)}, json.loads(result.out)

    return apply


# learning


def test_the_summary_tells_of_data_fields_rules_quality_and_time(fit, tmp_path):
    document = fit("--entity", "person")
    entities = len({record["person"] for record in RECORDS})
    assert document["data"] == {
        "records": len(RECORDS), "labelled": len(RECORDS), "entities": entities, "pairs": 0,
    }  # fmt: skip
    kinds = {one["name"]: one["kind"] for one in document["fields"]}
    assert list(kinds) == ["first_name", "surname", "born", "town", "email"]
    assert (kinds["surname"], kinds["born"], kinds["email"]) == ("name", "date", "email")
    assert all(one["note"] for one in document["fields"])
    blocking = document["blocking"]
    assert blocking["records"] == len(RECORDS)
    assert blocking["recall"] == {"pairs": 1.0, "connected": 1.0}
    assert all(0.0 < one["recall"] <= 1.0 for one in blocking["rules"])
    assert sum(one["new"] for one in blocking["rules"]) == blocking["pairs"] + blocking["cut"]
    assert document["training"]["held_out"] > 20
    assert document["training"]["b_cubed"] > 0.9
    assert len(document["weights"]["largest"]) == TOP
    assert set(document["seconds"]) == {"reading", "loading", "learning", "writing", "all"}
    saved = Knowledge.load(tmp_path / "m.fw")
    assert document["temperature"] == saved.temperature
    assert [one["rule"] for one in blocking["rules"]] == [rule.name for rule in saved.rules]


@pytest.mark.parametrize(
    ("connected", "recall", "reported"),
    [(1.0, 0.5, False), (0.995, 0.995, False), (0.95, 0.93, True), (0.95, 0.85, False), (0.95, 0.97, True)],
)
def test_candidates_are_called_the_bottleneck_where_they_lose_half_of_what_recall_misses(
    connected, recall, reported
):
    blocking = {"recall": {"pairs": 0.1, "connected": connected}}
    told = list(bottleneck(blocking, {"recall": recall}))
    assert bool(told) == reported
    assert all("5.0% of the links" in text and "Give columns" in text for text in told)


def test_text_tells_the_same_with_recall_and_held_out_quality(run, folder, tmp_path):
    words = ("--id", "id", "--entity", "person", "--model", tmp_path / "m.fw")
    result = run("resolve", "fit", folder / "labelled.csv", *words)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("m.fw  (")
    begins = {line.split("  ")[1].strip(): line for line in lines if line.startswith("  ")}
    assert f"{len(RECORDS)} records, {len(RECORDS)} labelled, 120 entities" in begins["data"]
    assert "records of entities that were held out" in begins["B-cubed F1"]
    assert "recall" in lines[lines.index("candidates") + 1].split()
    assert "  recall: 1.0000 of true pairs, 1.0000 of the links in entities" in lines
    assert "fields" in lines
    assert "largest weights" in lines


def test_kinds_that_were_written_can_be_changed_and_given(fit, run, folder, tmp_path):
    fit("--entity", "person", "--write-fields", tmp_path / "f.toml")
    written = tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8"))["fields"]
    assert written["born"] == {"kind": "date"}
    (tmp_path / "g.toml").write_text('[fields.born]\nkind = "ignore"\n[fields.town]\nkind = "text"\n')
    document = fit("--entity", "person", "--fields", tmp_path / "g.toml")
    kinds = {one["name"]: one["kind"] for one in document["fields"]}
    assert (kinds["born"], kinds["town"], kinds["email"]) == ("ignore", "text", "email")
    assert not any("born" in one["rule"] for one in document["blocking"]["rules"])


def test_columns_can_be_left_out(fit):
    for words in (("--ignore", "town,email"), ("--ignore", "town", "--ignore", "email")):
        document = fit("--entity", "person", *words)
        assert {one["name"] for one in document["fields"]} == {"first_name", "surname", "born"}


def test_without_entities_weights_are_found_from_the_records(run, folder, tmp_path):
    words = ("--id", "id", "--ignore", "person", "--model", tmp_path / "m.fw", "--json")
    result = run("resolve", "fit", folder / "labelled.csv", *words)
    assert result.code == 0
    assert "the weights were found without labels" in result.err
    document = json.loads(result.out)
    assert (document["data"]["entities"], document["training"]["labelled"]) == (None, 0)
    assert "recall" not in document["blocking"]


def test_labelled_pairs_are_learned_from_with_and_without_entities(run, fit, folder, tmp_path):
    path = write_csv(tmp_path / "pairs.csv", PAIRS)
    document = fit("--entity", "person", "--pairs", path)
    assert document["data"]["pairs"] == len(PAIRS)
    assert [one["name"] for one in read_model(tmp_path / "m.fw").provenance["data"]][1] == "pairs.csv"
    words = ("--id", "id", "--ignore", "person", "--model", tmp_path / "n.fw", "--pairs", path)
    result = run("resolve", "fit", folder / "labelled.csv", *words)
    assert result.code == 0
    assert "found from pairs and from what records look like" in result.err
    assert f"{len(PAIRS)} labelled pairs" in result.out
    other = Knowledge.load(tmp_path / "n.fw").weights.values
    run("resolve", "fit", folder / "labelled.csv", *words[:-2], "--quiet")
    alone = Knowledge.load(tmp_path / "n.fw").weights.values
    assert len(other) != len(alone) or (other != alone).any()


def test_verbose_tells_of_each_training_method_and_of_all_weights(run, folder, tmp_path):
    words = ("--id", "id", "--entity", "person", "--model", tmp_path / "m.fw", "--verbose", "--json")
    result = run("resolve", "fit", folder / "labelled.csv", *words)
    document = json.loads(result.out)
    assert "candidate pairs by" in result.err
    assert "unlabelled weights, scaled: B-cubed F1 " in result.err
    assert len(document["weights"]["largest"]) == document["weights"]["all"]


def test_provenance_names_the_data_and_the_seed(fit, tmp_path):
    fit("--entity", "person", "--seed", 5)
    saved = read_model(tmp_path / "m.fw").provenance
    assert (saved["seed"], saved["data"][0]["name"]) == (5, "labelled.csv")


def test_an_interrupt_while_learning_leaves_nothing(run, folder, tmp_path, monkeypatch):
    def interrupt(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(ladder, "cluster_by", interrupt)
    words = ("--id", "id", "--entity", "person", "--model", tmp_path / "m.fw")
    result = run("resolve", "fit", folder / "labelled.csv", *words)
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_learning_says_how_it_goes_and_a_bar_shows_the_rounds(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(resolve_progress, "show_progress", lambda options: True)
    words = ("--id", "id", "--entity", "person", "--model", tmp_path / "m.fw")
    err = run("resolve", "fit", folder / "labelled.csv", *words).err
    assert "unlabelled weights, scaled: B-cubed F1 " in err
    assert "comparisons of each pair" in err
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    err = run("resolve", "apply", folder / "few.csv", *words).err
    assert "walking" in err
    assert "proposals a second" in err


# finding entities


def test_the_entities_are_those_of_the_estimator_and_named_by_their_smallest_id(folder):
    found = read_csv(folder / "out.csv")
    assert [row["id"] for row in found] == [record["id"] for record in FEW]
    expected = EntityResolver.load(folder / "m.fw").resolve(folder / "few.csv", id="id").table().to_pydict()
    assert [row["entity"] for row in found] == expected["entity"]
    assert all(row["entity"] <= row["id"] for row in found)
    assert {row["entity"] for row in found if row["id"] == row["entity"]} == {row["entity"] for row in found}
    assert all(0.0 < float(row["confidence"]) <= 1.0 for row in found)
    truth = [record["person"] for record in FEW]
    assert b_cubed(truth, [row["entity"] for row in found]).f1 > 0.9


def test_the_summary_tells_of_candidates_walk_and_time(apply, folder, tmp_path):
    found, document = apply()
    assert (document["records"], document["entities"]) == (len(FEW), len(set(found.values())))
    assert document["bytes"] == (tmp_path / "o.csv").stat().st_size
    assert document["model"] == "m.fw"
    assert document["blocking"]["rules"]
    assert document["search"]["stopped"] in ("settled", "rounds")
    assert set(document["seconds"]) == {"reading", "loading", "candidates", "walk", "writing", "all"}


def test_the_table_of_blocks_is_printed_before_the_walk(run, folder, tmp_path, monkeypatch):
    seen = []

    def watch(bar, progress):
        seen.append(progress.round)

    monkeypatch.setattr(resolve_progress.WalkBar, "__call__", watch)
    printed = []
    monkeypatch.setattr(
        resolve_apply, "tell_on_the_way", lambda lines: printed.extend((line, len(seen)) for line in lines)
    )
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    done = run("resolve", "apply", folder / "few.csv", *words)
    assert done.code == 0
    table = [text for text, rounds in printed if rounds == 0]
    assert table[0] == "candidates"
    assert table[1].split() == ["blocks", "largest", "pairs", "new", "pairs", "rule"]
    assert any("candidate pairs, " in line for line in table)
    assert any("surname" in line for line in table)
    assert len(table) == len(printed)
    assert done.out.startswith("o.csv  (")


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv.gz"])
def test_the_format_follows_the_ending(run, folder, tmp_path, ending):
    from factorwise.io.tables.reading import read_table

    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / f"o.{ending}", "--quiet")
    assert run("resolve", "apply", folder / "few.csv", *words).code == 0
    found = read_table(tmp_path / f"o.{ending}")
    if ending == "parquet":
        assert pq.read_table(tmp_path / "o.parquet").equals(found)
    assert found.column_names == ["id", "entity", "confidence"]
    expected = read_csv(folder / "out.csv")
    assert found.column("entity").to_pylist() == [row["entity"] for row in expected]


def test_the_number_of_threads_does_not_matter(apply):
    assert apply("--threads", 1)[0] == apply("--threads", 2)[0]


def test_without_a_model_the_records_themselves_say_what_is_alike(run, folder, tmp_path):
    result = run("resolve", "apply", folder / "few.csv", "--id", "id", "-o", tmp_path / "o.csv", "--json")
    assert result.code == 0
    assert "note: no model was given" in result.err
    assert json.loads(result.out)["model"] is None
    found = [row["entity"] for row in read_csv(tmp_path / "o.csv")]
    assert b_cubed([record["person"] for record in FEW], found).f1 > 0.6


def test_more_tables_are_written_when_asked_for(apply, tmp_path):
    names = ("entities", "canonical", "pairs", "second-best")
    found, document = apply(*(word for name in names for word in (f"--{name}", tmp_path / f"{name}.csv")))
    assert sorted(document["also_written"]) == sorted(f"{name}.csv" for name in names)
    entities = {row["entity"]: row for row in read_csv(tmp_path / "entities.csv")}
    assert set(entities) == set(found.values())
    for name, row in entities.items():
        assert int(row["records"]) == list(found.values()).count(name)
        assert 0.0 < float(row["coherence"]) <= 1.0
    canonical = {row["entity"]: row for row in read_csv(tmp_path / "canonical.csv")}
    assert canonical[found["100"]]["surname"] == "Lee"
    assert canonical[found["100"]]["first_name"] == "Ann"
    pairs = read_csv(tmp_path / "pairs.csv")
    assert len(pairs) == document["uncertain_pairs"]
    assert all(0.01 < float(row["probability"]) < 0.99 and row["id"] in found for row in pairs)


def test_groups_in_doubt_are_told_in_ids_with_the_shares_of_both_clusterings(apply, folder, tmp_path):
    unsure = replace(Knowledge.load(folder / "m.fw"), merges=MergeOdds(MergeLine(0.0, 0.01, 0.01, 0.0)))
    unsure.save(tmp_path / "m.fw")
    found, _ = apply("--second-best", tmp_path / "second.csv", model=tmp_path / "m.fw")
    doubtful = read_csv(tmp_path / "second.csv")
    assert list(doubtful[0]) == ["group", "id", "best", "second", "best_share", "second_share"]
    assert {row[name] for row in doubtful for name in ("id", "best", "second")} <= set(found)
    assert all(0.0 < float(row["second_share"]) <= float(row["best_share"]) < 1.0 for row in doubtful)


def test_a_posterior_without_files_is_counted(apply):
    drawn, plain = apply("--posterior")[1], apply()[1]
    assert (drawn["uncertain_pairs"] is not None, drawn["draws"]) == (True, 100)
    assert (plain["uncertain_pairs"], plain["draws"]) == (None, None)


def test_pairs_can_be_tied_and_parted(apply, tmp_path):
    found, _ = apply()
    assert found["100"] == found["101"]
    other = next(one for one, entity in found.items() if entity != found["100"])
    (tmp_path / "must.csv").write_text(f"a,b\n100,{other}\n")
    (tmp_path / "cannot.csv").write_text("a,b\n100,101\n")
    tied, _ = apply("--must-link", tmp_path / "must.csv", "--cannot-link", tmp_path / "cannot.csv")
    assert tied["100"] == tied[other]
    assert tied["100"] != tied["101"]


def test_several_files_are_linked_and_a_source_has_each_entity_once(apply, tmp_path):
    left = write_csv(tmp_path / "left.csv", without(FEW[::2], "person"))
    right = write_csv(tmp_path / "right.csv", without(FEW[1::2], "person"))
    found, document = apply("--one-per-source", data=(left, right))
    assert document["records"] == len(FEW)
    sides = [{record["id"] for record in side} for side in (FEW[::2], FEW[1::2])]
    for side in sides:
        entities = [found[one] for one in side]
        assert len(set(entities)) == len(entities)
    assert len(set(found.values())) < len(FEW)


def test_a_column_can_say_the_source(apply, tmp_path):
    records = [{**record, "origin": "ab"[place % 2]} for place, record in enumerate(without(FEW, "person"))]
    data = write_csv(tmp_path / "in.csv", records)
    found, _ = apply("--source", "origin", "--one-per-source", data=(data,))
    for origin in "ab":
        entities = [found[record["id"]] for record in records if record["origin"] == origin]
        assert len(set(entities)) == len(entities)


def test_one_record_per_source_is_kept_to_while_learning(fit, tmp_path):
    sides = [write_csv(tmp_path / f"{k}.csv", RECORDS[k::2]) for k in range(2)]
    within = fit("--entity", "person", data=sides[0], more=(sides[1],))
    across = fit("--entity", "person", "--one-per-source", data=sides[0], more=(sides[1],))
    assert across["blocking"]["pairs"] < within["blocking"]["pairs"]


def test_the_context_can_be_left_out(fit):
    assert any("in context" in method for method in fit("--entity", "person")["training"]["methods"])
    without_context = fit("--entity", "person", "--no-context")["training"]["methods"]
    assert not any("in context" in method for method in without_context)


def test_ids_that_files_have_in_common_can_be_told_apart(apply, run, folder, tmp_path):
    data = write_csv(tmp_path / "left.csv", without(FEW[:6], "person"))
    other = write_csv(tmp_path / "right.csv", without(FEW[:6], "person"))
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    refused = run("resolve", "apply", data, other, *words)
    assert refused.code == 2
    assert "give --prefix-ids" in refused.err
    found, _ = apply("--prefix-ids", data=(data, other))
    assert found["left:100"] == found["right:100"]


def test_ctrl_c_in_the_walk_writes_what_it_has(run, folder, tmp_path, monkeypatch):
    def interrupt(bar, progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(resolve_progress.WalkBar, "__call__", interrupt)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--json")
    words += ("--checkpoint", tmp_path / "kept", "--checkpoint-seconds", 0)
    result = run("resolve", "apply", folder / "few.csv", *words)
    assert result.code == 130
    assert "interrupted after 2 rounds: what was found so far is written. Started again, the" in result.err
    assert json.loads(result.out)["search"]["stopped"] == "interrupted"
    assert [row["id"] for row in read_csv(tmp_path / "o.csv")] == [record["id"] for record in FEW]


def test_ctrl_c_before_the_first_round_is_done_leaves_nothing(run, folder, tmp_path, monkeypatch):
    def interrupt(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(linkage_search._WalkRounds, "round", interrupt)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--json")
    result = run("resolve", "apply", folder / "few.csv", *words)
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_clusterings_are_drawn_writes_all_else(run, folder, tmp_path, monkeypatch):
    def interrupt(resolver, found):
        raise KeyboardInterrupt

    monkeypatch.setattr(EntityResolver, "draw", interrupt)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--json")
    words += ("--pairs", tmp_path / "p.csv", "--entities", tmp_path / "e.csv")
    result = run("resolve", "apply", folder / "few.csv", *words)
    assert result.code == 130
    assert "interrupted while other clusterings were drawn" in result.err
    assert json.loads(result.out)["also_written"] == ["e.csv"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.csv", "o.csv"]


def test_ctrl_c_while_candidates_are_found_leaves_nothing(run, folder, tmp_path, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(joins, "join_blocks", interrupted)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    result = run("resolve", "apply", folder / "few.csv", *words)
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_a_budget_of_rounds_or_seconds_ends_the_walk(apply):
    _, document = apply("--rounds", 1)
    assert document["search"]["rounds"] <= 21
    _, document = apply("--seconds", 1e-9)
    assert (document["search"]["rounds"], document["search"]["stopped"]) == (0, "time")


@pytest.fixture
def killed(run, folder, tmp_path, monkeypatch):
    """Run ``resolve apply`` until it dies in a round, and return the options it was given."""

    def killed(round_number, *words):
        def die(bar, progress):
            if progress.round == round_number:
                raise RuntimeError("killed")

        command = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", *words)
        with monkeypatch.context() as patch:
            patch.setattr(resolve_progress.WalkBar, "__call__", die)
            assert run("resolve", "apply", folder / "few.csv", *command).code == 1
        return command

    return killed


def test_a_run_that_was_killed_goes_on_to_the_same_answer(apply, run, folder, tmp_path, killed):
    words = ("--checkpoint", tmp_path / "kept", "--checkpoint-seconds", 0)
    command = killed(3, *words)
    assert not (tmp_path / "o.csv").exists()
    assert (tmp_path / "kept" / "search.fw").exists()
    refused = run("resolve", "apply", folder / "few.csv", *command, "--seed", 1)
    assert refused.code == 2
    assert "is the checkpoint of another run" in refused.err
    (tmp_path / "kept" / ".0123.part").touch()  # as left behind when it is killed while writing
    apply(*words)
    assert (tmp_path / "o.csv").read_bytes() == (folder / "out.csv").read_bytes()
    assert list((tmp_path / "kept").iterdir()) == []


def test_verbose_tells_of_each_round(run, folder, tmp_path):
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--verbose", "--rounds", 3)
    err = run("resolve", "apply", folder / "few.csv", *words).err
    rounds = [line for line in err.splitlines() if line.startswith("round ")]
    assert [line.split()[1] for line in rounds[:3]] == ["1", "2", "3"]
    assert all("score " in line and " clusters, " in line and " s left" in line for line in rounds)


def test_the_time_left_is_that_of_the_rounds_left():
    first = SearchProgress(1, 40, 0.5, 10.0, 7, 1_000, 9.0)
    now = SearchProgress(5, 40, 0.1, 20.0, 6, 4_001_000, 11.0)
    text = progress_text(now, first, 20, None)
    assert text == "score 20.0, 6 clusters, 2.0M proposals a second, 8 s left"
    assert progress_text(now, first, 20, 14.0).endswith(" 3 s left")
    assert progress_text(now._replace(round=21), first, 20, None).endswith("at most 2 s left")
    assert progress_text(first, None, 20, None).endswith("111 proposals a second, 171 s left")


def test_of_groups_the_time_left_is_that_of_all_which_are_left():
    first = SearchProgress(1, 40, 0.02, 10.0, 7, 0, 9.0, "group")
    now = SearchProgress(21, 40, 0.02, 20.0, 6, 0, 29.0, "group")
    assert progress_text(now, first, 12, None) == "score 20.0, 6 clusters, 19 s left"
    assert progress_text(now._replace(round=5), first, 12, None).endswith("clusters, 175 s left")


def test_groups_are_told_as_groups(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 10)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--verbose")
    err = run("resolve", "apply", folder / "few.csv", *words).err
    groups = [line for line in err.splitlines() if line.startswith("group ")]
    assert [line.split(":")[0] for line in groups] == [
        f"group {number} of {len(groups)}" for number in range(1, len(groups) + 1)
    ]
    assert len(groups) > 2
    assert not any("proposals" in line for line in groups)
    assert "round " not in err


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_ctrl_c_between_groups_says_how_to_go_on(run, folder, tmp_path, monkeypatch, scheme):
    def interrupt(bar, progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 10)
    kept = f"{scheme}{tmp_path / 'kept'}"
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--checkpoint", kept)
    with monkeypatch.context() as patch:
        patch.setattr(resolve_progress.WalkBar, "__call__", interrupt)
        err = run("resolve", "apply", folder / "few.csv", *words).err
    assert "interrupted after 2 of " in err
    assert f"goes on from the checkpoint in {kept}" in err
    assert (
        "went on from the checkpoint, after group 2."
        in run("resolve", "apply", folder / "few.csv", *words).err
    )


# looking inside


def test_inspect_shows_fields_rules_training_and_weights(run, folder):
    document = json.loads(run("inspect", folder / "m.fw", "--json").out)
    inside, saved = document["resolution"], Knowledge.load(folder / "m.fw")
    assert [one["name"] for one in inside["fields"]] == [one.name for one in saved.fields]
    assert inside["rules"] == [rule.name for rule in saved.rules]
    assert inside["training"]["records"] == len(RECORDS)
    assert len(inside["weights"]["largest"]) == TOP
    sizes = [abs(one["weight"]) for one in inside["weights"]["largest"]]
    assert sizes == sorted(sizes, reverse=True)
    lines = run("inspect", folder / "m.fw").out.splitlines()
    assert {"fields", "blocking rules", "training", "largest weights"} <= set(lines)
    everything = json.loads(run("inspect", folder / "m.fw", "--json", "--verbose").out)["resolution"]
    assert len(everything["weights"]["largest"]) == len(saved.weights_by_name())  # of links and of contexts


def test_a_search_by_groups_goes_on_after_a_kill(apply, run, folder, tmp_path, killed, monkeypatch):
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 10)
    apply()
    whole = (tmp_path / "o.csv").read_bytes()
    (tmp_path / "o.csv").unlink()
    words = ("--checkpoint", tmp_path / "kept", "--checkpoint-seconds", 0)
    command = killed(3, *words)
    assert [path.name for path in (tmp_path / "kept").glob("manifest-*")] == ["manifest-000002.json"]
    refused = run("resolve", "apply", folder / "few.csv", *command, "--seed", 1)
    assert refused.code == 2
    assert "is the checkpoint of another run" in refused.err
    apply(*words)
    assert (tmp_path / "o.csv").read_bytes() == whole
    assert list((tmp_path / "kept").iterdir()) == []


def test_entities_are_also_written_in_parts_and_read_from_an_address(run, folder, tmp_path):
    records = tmp_path / "few.parquet"
    pq.write_table(read_table(folder / "few.csv"), records)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.parquet", "--json")
    (tmp_path / "kept").write_text("no folder")
    wrong = ("--checkpoint", tmp_path / "kept")
    for further, code in (("--dry-run",), 0), (wrong, 2):
        assert run("resolve", "apply", records, *words, *further, "--parts", tmp_path / "parts").code == code
        assert not (tmp_path / "parts").exists()
    done = run("resolve", "apply", f"file://{records}", *words, "--parts", tmp_path / "parts")
    assert done.code == 0, done.err
    assert (tmp_path / "parts" / "_SUCCESS").exists()
    assert read_table(tmp_path / "parts").equals(read_table(tmp_path / "o.parquet"))
    again = run("resolve", "apply", records, *words, "--parts", tmp_path / "parts")
    assert again.code == 2
    assert "has files, such as '_SUCCESS'" in again.err
