"""Model files of splink."""

import json

import pyarrow as pa
import pytest

from factorwise.apps.resolution.scored_pairs.splink_models import read_splink_model
from factorwise.errors import DataFileError


def test_the_prior_and_the_names_of_columns_are_read(tmp_path):
    path = tmp_path / "model.json"
    content = {"probability_two_random_records_match": 0.01, "unique_id_column_name": "key"}
    path.write_text(json.dumps(content | {"link_type": "link_only", "comparisons": []}))
    model = read_splink_model(path)
    assert model == (0.01, "key", "source_dataset", True, {})
    assert model.expected_pairs(101) == pytest.approx(50.5)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"probability_two_random_records_match": 2}', "[" * 99_999])
def test_files_that_are_no_model_are_refused(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=r"model\.json"):
        read_splink_model(path)
    with pytest.raises(DataFileError, match="no such file"):
        read_splink_model(tmp_path / "other.json")


NAME = {
    "output_column_name": "name",
    "comparison_levels": [
        {"is_null_level": True, "sql_condition": "name_l IS NULL"},
        {"m_probability": 0.8, "u_probability": 0.1},
        {"m_probability": 0.15, "u_probability": 0.15},
        {"m_probability": 0.05, "u_probability": 0.8},
    ],
}


def model_of(tmp_path, *comparisons):
    path = tmp_path / "model.json"
    content = {"probability_two_random_records_match": 0.5, "comparisons": comparisons}
    path.write_text(json.dumps(content))
    return read_splink_model(path)


def test_levels_without_a_score_are_weighed_by_m_and_u(tmp_path):
    model = model_of(tmp_path, NAME)
    pairs = pa.table({"unique_id_l": [1, 1, 1, 2], "unique_id_r": [2, 3, 4, 3], "gamma_name": [2, 1, 0, -1]})
    weights = model.weigh(pairs)["match_weight"].to_pylist()
    assert weights == pytest.approx([3.0, 0.0, -4.0, 0.0])
    scored = pairs.append_column("match_probability", pa.array([0.5] * 4))
    assert model.weigh(scored).equals(scored)


def test_levels_that_do_not_fit_the_model_are_refused(tmp_path):
    other = {**NAME, "output_column_name": "town"}
    pairs = pa.table({"unique_id_l": [1], "unique_id_r": [2], "gamma_name": [3]})
    with pytest.raises(DataFileError, match="no levels of 'gamma_town'"):
        model_of(tmp_path, NAME, other).weigh(pairs)
    with pytest.raises(DataFileError, match="has levels 0 to 2"):
        model_of(tmp_path, NAME).weigh(pairs)
    wrong = {"output_column_name": "name", "comparison_levels": [{"m_probability": 2, "u_probability": 0.1}]}
    with pytest.raises(DataFileError, match="cannot be read"):
        model_of(tmp_path, wrong)
