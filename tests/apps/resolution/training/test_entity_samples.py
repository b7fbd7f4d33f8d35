"""Samples of entities that large tables are learned from."""

import numpy as np

from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.training import entity_samples
from factorwise.apps.resolution.training.entity_samples import sample_entities
from record_cases import people


def test_few_records_are_all_learned_from():
    assert sample_entities(np.zeros(100, np.int32), 0) is None


def test_entities_are_drawn_whole_and_records_of_none_in_the_same_share(monkeypatch):
    monkeypatch.setattr(entity_samples, "MOST_RECORDS", 3_000)
    rng = np.random.default_rng(0)
    entity = np.where(rng.random(30_000) < 0.5, -1, rng.integers(0, 4_000, 30_000)).astype(np.int32)
    rows = sample_entities(entity, 1)
    assert (np.diff(rows) > 0).all()
    assert abs(len(rows) - 3_000) < 300
    assert abs((entity[rows] < 0).sum() - 1_500) < 150
    drawn = np.unique(entity[rows][entity[rows] >= 0])
    assert np.isin(np.flatnonzero(np.isin(entity, drawn)), rows).all()
    assert rows.tolist() != sample_entities(entity, 2).tolist()


def test_a_model_is_fitted_on_the_sample_and_says_how_many_records_that_was(monkeypatch):
    monkeypatch.setattr(entity_samples, "MOST_RECORDS", 150)
    records, told = people(130), []
    resolver = EntityResolver(passes=2, steps=10, rounds=6, n_jobs=1)
    resolver.fit(records, "person", id="id", tell=told.append)
    fitted = resolver.knowledge_.training["records"]
    assert 100 < fitted < 200 < len(records)
    assert f"learning from the {fitted} records of some entities" in told
    assert resolver.score(records, "person") > 0.9
