"""A store that is resolved, added to, looked up, and reviewed."""

import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from curation_cases import answer_by_truth, make_store, people
from factorwise import EntityResolver
from factorwise.apps.resolution.curation import Curator, Review, engine
from factorwise.apps.resolution.curation.curator import ONE_PER_SOURCE
from factorwise.apps.resolution.curation.estimates import CellAnswers, estimate_quality
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.teaching import fit_around, label_links
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.errors import InvalidArgumentError
from factorwise.metrics.clustering import b_cubed
from factorwise.store import Store
from factorwise.world.links import LinkGraph


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def resolved(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("stores") / "resolved.duckdb"
    make_store(path, table).close()
    return path


@pytest.fixture
def store(resolved, tmp_path):
    path = tmp_path / "people.duckdb"
    path.write_bytes(resolved.read_bytes())
    with Store.open(path) as opened:
        yield opened


def truth_of(table):
    return table.column("person").to_numpy()


def test_resolving_into_a_store_finds_the_entities(store, table):
    assert b_cubed(truth_of(table), store.membership()).f1 > 0.85
    assert store.execute("SELECT command, outcome FROM runs") == [("init", "done")]
    with pytest.raises(InvalidArgumentError, match="records already"):
        Curator(store).resolve(table, table.column("id").combine_chunks(), source="again")


def test_added_records_join_entities_that_are_there(store, table):
    again = people(60, seed=0)
    ids = pa.array([f"new {k}" for k in range(again.num_rows)])
    before = store.membership()
    added = Curator(store).add(again.drop_columns(["person"]), ids, source="b.csv")
    after = store.membership()
    assert added.records == again.num_rows
    assert added.joined > 0.9 * added.records  # the same records once more
    assert (after[: len(before)] == before).mean() > 0.9
    both = np.concatenate([truth_of(table), truth_of(again)])
    assert b_cubed(both, after).f1 > 0.85
    assert (after[len(before) :] == before).mean() > 0.85


def test_ids_stay_through_ten_batches_and_fifty_decisions(store, table):
    """Replays all moves: an entity keeps the id that most of its records had, and the history tells each."""
    truth, random = truth_of(table), np.random.default_rng(3)
    first = store.n_records
    for batch in range(10):
        again = table.filter(pc.equal(pc.bit_wise_and(table.column("person"), 7), batch % 8))
        again = again.set_column(
            again.column_names.index("mail"), "mail", pa.nulls(again.num_rows, pa.string())
        )
        strangers = people(4, seed=batch + 1)
        new = pa.concat_tables([again, strangers], promote_options="permissive")
        ids = pa.array([f"{batch}.{k}" for k in range(new.num_rows)])
        Curator(store).add(new.drop_columns(["person"]), ids, source=f"{batch}.csv")
        person = truth_of(new) + np.where(np.arange(new.num_rows) < again.num_rows, 0, 1_000 * (batch + 1))
        truth = np.concatenate([truth, person])
        review = Review(store, random_state=batch)
        for _ in range(5):
            said = np.where(random.random(len(truth)) < 0.1, -1, truth)  # some answers are wrong
            answer_by_truth(review, review.next(), np.unique(said, return_inverse=True)[1])
    assert len(store.decisions()) == 50
    now, used, kept, told = np.full(store.n_records, -1), set(), 0, set()
    moves = store.query("SELECT change, record, coalesce(before, -1) AS before, after FROM moves").to_pandas()
    for change, part in moves.groupby("change"):
        before = now.copy()
        assert (before[part.record] == part.before).all()
        now[part.record] = part.after
        for entity in np.unique(now[now >= 0]).tolist():
            had = before[now == entity]
            names, counts = np.unique(had[had >= 0], return_counts=True)
            if entity in before:
                assert counts[names == entity] == counts.max()  # its id is that of most of its records
                kept += 1
            else:
                assert entity not in used  # no id is used again
        used |= set(now.tolist())
        told |= {(change, *pair) for pair in zip(part.before, part.after, strict=True) if pair[0] >= 0}
    assert now.tolist() == store.membership().tolist()
    assert store.n_records > first + 100
    assert kept > 1_000
    gave = store.execute("SELECT change, entity, other, cause FROM entity_history WHERE event = 'gave'")
    assert {one[:3] for one in gave} == told
    assert {one[3] for one in gave} == {"run", "decision"}


def test_records_of_strangers_become_entities_of_their_own(store):
    strange = pa.table(
        {
            "id": ["x", "y"],
            "first": ["zoltan", "zoltan"],
            "last": ["quibble", "quibble"],
            "born": ["1822-01-02", "1822-01-02"],
            "mail": [None, None],
        }
    )
    added = Curator(store).add(strange, pa.array(["x", "y"]), source="c.csv")
    entities = store.entities_of(store.find_ids(["x", "y"]))
    assert entities[0] == entities[1]
    assert added.joined == 0
    assert added.moved == 0


def test_a_record_is_looked_up_with_reasons(store, table):
    curator = Curator(store)
    record = next(one for one in table.to_pylist() if one["mail"] and one["born"])
    best = curator.lookup(record)[0]
    row = store.find_ids([record["id"]])
    assert best.entity == store.entities_of(row)[0]
    assert best.probability > 0.8
    assert any("mail" in name for name, _ in best.reasons)
    assert curator.lookup({"first": "zoltan", "last": "quibble"}) == []
    assert curator.lookup({}) == []


def test_lookup_follows_answers_what_is_undone_and_new_records(store, table):
    curator = Curator(store)
    records = [one for one in table.to_pylist() if one["mail"] and one["born"]]
    record = records[0]
    rows = store.find_ids([record["id"], records[-1]["id"]])

    def check():
        best = curator.lookup(record)[0]
        assert best.entity == store.entities_of(rows)[0]
        assert best.records == len(store.members([best.entity]))

    check()
    review = Review(store)
    review.merge([record["id"], records[-1]["id"]], who="Ann")
    check()
    review.undo(who="Ann")
    check()
    new = table.filter(pc.equal(table["id"], record["id"])).drop_columns(["person"])
    curator.add(new, pa.array(["new"]), source="b.csv")
    check()


def test_draws_keep_to_decisions(store):
    ids = store.ids().to_pylist()
    store.decide([[0], [len(ids) - 1]], "same", who="Ann")
    drawn = Curator(store).draws(6)
    assert drawn.shape == (6, len(ids))
    assert (drawn[:, 0] == drawn[:, -1]).all()


def test_answers_make_the_entities_better_and_are_kept(store, table):
    truth = truth_of(table)
    before = b_cubed(truth, store.membership()).f1
    review = Review(store, random_share=0.2)
    asked = set()
    for _ in range(40):
        question = review.next("Ann")
        if question is None:
            break
        assert review.next("Ann") is question
        pair = (question.choice.left, question.choice.right)
        assert frozenset(pair) not in asked
        if question.kind != "whole":  # of two that are both taken out nothing is said
            asked.add(frozenset(pair))
        same = truth[pair[0]] == truth[pair[1]]
        answer_by_truth(review, question, truth)
        labels = review.engine.labels
        assert (labels[pair[0]] == labels[pair[1]]) == same
        assert labels.tolist() == store.membership().tolist()
    assert b_cubed(truth, store.membership()).f1 > max(before, 0.97)
    quality = review.quality()
    assert quality.answers > 0
    assert quality.precision.low <= quality.precision.estimate <= quality.precision.high
    again = Review(store)
    assert again.engine.verdicts.asked.keys() == review.engine.verdicts.asked.keys()
    np.testing.assert_allclose(
        again.engine.records.scores, review.engine.records.scores, atol=0.05
    )  # the fit begins elsewhere, and stops when steps are small


def test_a_question_about_whole_entities_takes_out_who_does_not_belong(store, table):
    review = Review(store, random_share=0.0)
    entity = int(np.bincount(store.membership()).argmax())
    rows = np.flatnonzero(store.membership() == entity)
    other = int(np.flatnonzero(store.membership() != entity)[0])
    choice = review.engine.describe(int(rows[0]), int(rows[1]), "expected change")
    choice = choice._replace(kind="whole", records=(*rows.tolist(), other))
    question = review._question(choice)
    review._taken[question.number] = question
    assert question.entities == (*([0] * len(rows)), 1)
    assert "entity now" in question._repr_html_()
    names = [str(record["id"]) for record in question.shown]
    with pytest.raises(InvalidArgumentError, match="takes some of the records out"):
        review.answer(question, "all but", taken_out=names)
    with pytest.raises(InvalidArgumentError, match="does not show a record 'nobody'"):
        review.answer(question, "all but", taken_out=["nobody"])
    before = store.membership()
    review.answer(question, "all but", taken_out=[names[0], names[-1]], who="Ann")
    labels = store.membership()
    assert labels[rows[0]] != labels[rows[1]]
    assert len(np.unique(labels[rows[1:]])) == 1
    assert labels[other] != labels[rows[1]]
    assert review.engine.verdicts.known(int(rows[0]), other) is None  # nothing was said of these two
    assert review.undo(who="Ann") is not None
    assert store.membership().tolist() == before.tolist()


def test_learning_in_the_background_comes_to_the_same(resolved, tmp_path, table):
    truth = truth_of(table)
    found = []
    for background in (False, True):
        path = tmp_path / f"{background}.duckdb"
        path.write_bytes(resolved.read_bytes())
        review = Review(path, random_share=0.0, background=background)
        for _ in range(25):
            question = review.next()
            if question is None:
                break
            answer_by_truth(review, question, truth)
        review.learn()
        assert review.engine.labels.tolist() == review.store.membership().tolist()
        found.append(b_cubed(truth, review.engine.labels).f1)
        review.close()
    assert min(found) > 0.97


@pytest.mark.parametrize("end", ["answer", "close"])
def test_an_error_while_learning_in_the_background_is_raised_later(resolved, tmp_path, monkeypatch, end):
    path = tmp_path / "people.duckdb"
    path.write_bytes(resolved.read_bytes())
    review = Review(path, random_share=0.0, background=True)
    prepare, failed, learned = review.engine.prepare, threading.Event(), threading.Event()

    def fail():
        failed.set()
        raise ZeroDivisionError

    def learn():
        learned.set()
        return prepare()

    monkeypatch.setattr(review.engine, "prepare", fail)
    review.answer(review.next(), "same")
    assert failed.wait(60)
    monkeypatch.setattr(review.engine, "prepare", learn)
    if end == "answer":
        review._lesson.set()  # the learner is still there
        assert learned.wait(60)
        answers, question = review.answers, review.next()
        with pytest.raises(ZeroDivisionError):
            review.answer(question, "same")
        assert review.answers == answers
        review.answer(question, "same")
        review.close()
    else:
        with pytest.raises(ZeroDivisionError):
            review.close()


def test_learning_and_answers_have_threads_of_their_own(store, monkeypatch):
    teams = {}

    class Search:
        def run(self, walk, *, seed, team):
            teams["learning"] = team

    settle = LinkedRecords.settle

    def settled(self, *arguments, team, **options):
        teams["answers"] = team
        return settle(self, *arguments, team=team, **options)

    monkeypatch.setattr(engine, "LEARNING", Search())
    monkeypatch.setattr(LinkedRecords, "settle", settled)
    review = Review(store, random_share=0.0, n_jobs=2)
    monkeypatch.setattr(LinkedRecords, "unsettled", lambda self, labels: np.arange(2))
    review.answer(review.next(), "same")
    assert teams["learning"].threads == teams["answers"].threads == 2
    assert teams["learning"] is not teams["answers"]


def test_two_people_are_asked_different_questions(store):
    review = Review(store, random_share=0.0)
    one, two = review.next("Ann"), review.next("Bo")
    assert one.number != two.number
    assert {one.choice.left, one.choice.right} != {two.choice.left, two.choice.right}
    review.answer(one, "unsure", who="Ann")
    with pytest.raises(InvalidArgumentError, match="not open"):
        review.answer(one, "same", who="Ann")
    assert "<table>" in two._repr_html_()


def test_entities_are_split_and_merged_by_hand_and_that_is_undone(store):
    review = Review(store)
    before = store.membership()
    entity = int(np.bincount(before).argmax())
    ids = [one["id"] for one in review.members(entity)]
    review.split(ids[:1], who="Ann")
    now = store.membership()
    assert now[store.find_ids(ids[:1])[0]] != now[store.find_ids(ids[1:2])[0]]
    other = next(one for one in store.ids().to_pylist() if one not in ids)
    review.merge([ids[0], other], who="Ann")
    rows = store.find_ids([ids[0], other])
    assert len(np.unique(store.entities_of(rows))) == 1
    assert review.undo(who="Ann") is not None
    assert store.membership().tolist() == now.tolist()
    assert review.undo(who="Ann") is not None
    assert store.membership().tolist() == before.tolist()
    assert review.undo(who="Ann") is None
    assert review.entities(other)[0]["records"] >= 1


def test_a_question_that_was_open_when_an_answer_was_taken_back_can_be_asked_again(store):
    review = Review(store, random_share=0.0)
    review.answer(review.next("Ann"), "unsure", who="Ann")
    waiting = review.next("Ann")
    review.undo(who="Ann")
    asked = set()
    while (question := review.next("Ann")) is not None and len(asked) < 5:
        asked.add(frozenset(question.ids))
        review.answer(question, "unsure", who="Ann")
    assert frozenset(waiting.ids) in asked


def test_a_review_without_answers_keeps_no_model(resolved, tmp_path):
    path = tmp_path / "people.duckdb"
    path.write_bytes(resolved.read_bytes())

    def count_models():
        with Store.open(path) as opened:
            return opened.execute("SELECT count(*) FROM models")[0][0]

    before = count_models()
    for _ in range(2):  # what a later review learns takes the place of what an earlier one did
        review = Review(path)
        review.answer(review.next(), "same")
        review.close()
        assert count_models() == before + 1
    Review(path).close()
    assert count_models() == before + 1


def test_disagreements_are_asked_again(store):
    store.decide([[0], [1]], "same", who="Ann")
    store.decide([[0], [1]], "different", who="Bo")
    review = Review(store)
    question = review.next("Cy")
    assert question.reason == "disagreement"
    review.answer(question, "different", who="Cy")
    assert [one["answer"] for one in store.decisions()] == ["different", "different"]
    assert review.engine.verdicts.conflicts == []


@pytest.mark.parametrize("answer", ["same", "different", "unsure"])
@pytest.mark.parametrize("earlier", [[[0, 1]], [[0, 3], [3, 1]]])
def test_a_disagreement_about_several_records_is_asked_once(store, earlier, answer):
    for one, two in earlier:
        store.decide([[one], [two]], "same", who="Ann")
    disputed = store.decide([[0, 2], [1]], "all but", who="Bo")
    review = Review(store, random_share=0.0)
    question = review.next("Cy")
    assert question.reason == "disagreement"
    assert (question.choice.left, question.choice.right) == (0, 1)
    review.answer(question, answer, who="Cy")
    counted = [one["decision"] for one in store.decisions()]
    assert (disputed in counted) == (answer != "same" and len(earlier) == 1)  # else it still contradicts them
    for again in (review, Review(store, random_share=0.0)):
        following = again.next("Cy")
        assert following is None or following.reason != "disagreement"


def decision(answer, *parts, context=()):
    return {"parts": [list(part) for part in parts], "context": context, "answer": answer}


def test_verdicts_follow_from_each_other():
    verdicts = Verdicts(
        [decision("same", [1], [2]), decision("same", [3], [4]), decision("different", [2], [3])]
    )
    assert verdicts.known(1, 4) is False
    assert verdicts.known(1, 2) is True
    assert verdicts.known(1, 5) is None
    assert not verdicts.add(decision("same", [1], [4]))
    assert len(verdicts.conflicts) == 1
    limits = verdicts.within(np.array([1, 2, 3, 4]))
    limits.check()
    assert limits.must.tolist() == [[0, 1], [2, 3]]
    assert verdicts.add(decision("same", [4], [9], context=[[], [2, 7]]))
    assert verdicts.known(9, 7) is True
    assert verdicts.known(9, 2) is False  # what was shown beside gives way to what was said


def test_an_answer_about_many_groups_counts_for_no_more_than_one_about_two():
    rows = np.triu_indices(6, 1)
    graph = LinkGraph.from_pairs(6, *rows)
    pair = {"answer": "different", "parts": [[0], [1]], "context": [[2], [3]]}
    parts = [[0, 1, 2], [3], [4], [5]]
    whole = {"answer": "all but", "parts": parts, "context": []}
    apart = {"answer": "different", "parts": [[row] for row in range(6)], "context": []}
    one, several, all_apart = (label_links(answer, graph).weight.sum() for answer in (pair, whole, apart))
    assert one == pytest.approx(4.0)
    assert 0.0 < several <= one
    assert all_apart == pytest.approx(one)


def test_regression_around_a_prior_has_a_zero_gradient():
    random = np.random.default_rng(0)
    features, same = random.normal(size=(30, 4)), random.random(30) < 0.4
    offset, spread = random.normal(size=30), np.array([1.0, 0.5, 2.0, 0.3])
    weight = random.uniform(0.2, 2.0, 30)
    found, covariance = fit_around(features, offset, same, weight, spread)

    def loss(change):
        odds = offset + features @ change
        return weight @ (np.logaddexp(0, odds) - same * odds) + 0.5 * np.sum((change / spread) ** 2)

    step = 1e-4
    for k in range(4):
        unit = np.eye(4)[k] * step
        slope = (loss(found + unit) - loss(found - unit)) / (2 * step)
        assert abs(slope) < 1e-2
        curve = (loss(found + unit) - 2 * loss(found) + loss(found - unit)) / step**2
        assert curve == pytest.approx(np.linalg.inv(covariance)[k, k], rel=1e-2)


RATES = np.array([[0.01, 0.3], [0.1, 0.6], [0.3, 0.8], [0.5, 0.97]])  # by stratum, apart and together


def made_up_links(random):
    """Return strata of links, whether they are within an entity, whether of one, and how often such are."""
    stratum = random.integers(0, 4, 4_000)
    together = random.random(4_000) < np.array([0.02, 0.2, 0.7, 0.98])[stratum]
    rate = RATES[stratum, together.astype(int)]
    return stratum, together, random.random(4_000) < rate, rate


def estimate_of(links, drawn):
    """Return the estimate after answers to some links, of which probabilities were too low before."""
    stratum, together, same, rate = links
    cell = 2 * stratum + together
    left = np.setdiff1d(np.arange(4_000), drawn)
    one, inside = same[drawn], together[drawn]
    return estimate_quality(
        ((one & inside).sum(), (one & ~inside).sum(), (~one & inside).sum()),
        np.bincount(cell[left], minlength=8),
        [np.array([k**1.5]) for k in RATES.ravel()],
        CellAnswers(cell[drawn], rate[drawn] ** 1.5, one),
    )


def draw_of_strata(random, stratum, each):
    return np.concatenate([random.choice(np.flatnonzero(stratum == k), each, False) for k in range(4)])


@pytest.mark.statistical
def test_intervals_cover_the_truth():
    """Of 200 estimates at 90 %, fewer than 170 cover the truth by chance with a probability below 1e-5."""
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        links = made_up_links(random)
        stratum, together, same, _ = links
        quality = estimate_of(links, draw_of_strata(random, stratum, 15))
        precision, recall = same[together].mean(), (same & together).sum() / same.sum()
        covered += quality.precision.low <= precision <= quality.precision.high
        covered += quality.recall.low <= recall <= quality.recall.high
    assert covered >= 340


@pytest.mark.statistical
def test_as_many_further_answers_as_foretold_about_halve_the_wider_interval():
    random = np.random.default_rng(2)
    ratios = []
    for _ in range(20):
        links = made_up_links(random)
        before = estimate_of(links, draw_of_strata(random, links[0], 10))
        after = estimate_of(links, draw_of_strata(random, links[0], 10 + before.to_halve // 4))
        widths = [max(q.high - q.low for q in (found.precision, found.recall)) for found in (before, after)]
        ratios.append(widths[1] / widths[0])
    assert 0.4 <= np.median(ratios) <= 0.65


def test_a_model_is_put_in_with_what_is_not_used_told_and_follows_the_size(table, tmp_path):
    resolver = EntityResolver(n_jobs=1).fit(table.slice(0, 60), "person", id="id")
    fitted = resolver.knowledge_
    resolver.knowledge_ = replace(fitted, further={"tally": np.ones(3)})
    told = []
    records = table.drop_columns(["person"])
    with Store.create(tmp_path / "s.duckdb") as store:
        curator = Curator(store)
        ids = records.column("id").combine_chunks()
        curator.resolve(records, ids, source="a", resolver=resolver, on_message=told.append)
        assert ["tally" in text for text in told] == [True]
        larger = np.log(table.num_rows / 60)
        assert curator.knowledge.weights.link == pytest.approx(fitted.weights.link - larger)
        again = Curator(store).knowledge  # read from the store: nothing is taken off twice
        np.testing.assert_allclose(again.weights.values, curator.knowledge.weights.values)
        new = pa.array([f"new {k}" for k in range(len(ids))])
        curator.add(records, new, source="b")
        twice = Curator(store).knowledge.weights.link
        assert twice == pytest.approx(again.weights.link - np.log(2))


def test_one_per_source_holds_in_a_store_unless_a_person_says_otherwise(tmp_path, table):
    rows = people(60, each=1).to_pylist()
    shops = [row | {"id": f"{shop}{row['id']}", "source": shop} for shop in "ab" for row in rows]
    records = pa.Table.from_pylist(shops)
    ids = records.column("id").combine_chunks()
    with Store.create(tmp_path / "s.duckdb") as store:
        Curator(store).resolve(records.drop_columns(["person"]), ids, source="x", leave_out=("id",))
        store.set_fact(ONE_PER_SOURCE, "source")
        again = pa.Table.from_pylist([row | {"id": f"again {row['id']}"} for row in shops[:10]])
        new = again.column("id").combine_chunks()
        Curator(store).add(again.drop_columns(["person"]), new, source="y")
        labels = store.membership()
        assert labels[0] != labels[len(ids)]  # the same record once more, of the same shop
        review = Review(store)
        review.merge([ids[0].as_py(), new[0].as_py()])
        assert len(np.unique(store.membership()[[0, len(ids)]])) == 1
