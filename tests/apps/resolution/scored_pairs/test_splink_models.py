"""Model files of splink."""

import json

import pytest

from factorwise.apps.resolution.scored_pairs.splink_models import read_splink_model
from factorwise.errors import DataFileError


def test_the_prior_and_the_names_of_columns_are_read(tmp_path):
    path = tmp_path / "model.json"
    content = {"probability_two_random_records_match": 0.01, "unique_id_column_name": "key"}
    path.write_text(json.dumps(content | {"link_type": "link_only", "comparisons": []}))
    model = read_splink_model(path)
    assert model == (0.01, "key", "source_dataset", True)
    assert model.expected_pairs(101) == pytest.approx(50.5)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"probability_two_random_records_match": 2}', "[" * 99_999])
def test_files_that_are_no_model_are_refused(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=r"model\.json"):
        read_splink_model(path)
    with pytest.raises(DataFileError, match="no such file"):
        read_splink_model(tmp_path / "other.json")
