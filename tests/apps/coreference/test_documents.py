import json

import numpy as np
import pytest

from coreference_cases import discourse, record
from factorwise.apps.coreference import discourses, document_from, read_documents
from factorwise.errors import DataFileError, EmptyWorldError, InvalidArgumentError

GOOD = {"id": "a", "tokens": ["Ann", "saw", "her", "."], "mentions": [{"start": 0, "end": 1}]}


def written(path, *lines):
    path.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    )
    return path


def changed(**keys):
    return {**GOOD, **keys}


def mention(**keys):
    return changed(mentions=[GOOD["mentions"][0], {"start": 2, "end": 3, **keys}])


def test_a_file_gives_one_document_a_line_and_skips_blank_ones(tmp_path):
    path = written(
        tmp_path / "a.jsonl", b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), b"", changed(id="b"), b""
    )
    first, second = read_documents(path)
    assert (first.id, second.id) == ("a", "b")
    assert first.tokens == ("Ann", "saw", "her", ".")
    assert first.sentences == ((0, 4),)
    assert first.mentions[0].entity is None


def test_what_is_not_read_is_kept_in_the_record(tmp_path):
    path = written(tmp_path / "a.jsonl", changed(genre="fiction"))
    assert read_documents(path)[0].record["genre"] == "fiction"


def test_a_document_without_id_is_named_by_its_line(tmp_path):
    nameless = {key: value for key, value in GOOD.items() if key != "id"}
    path = written(tmp_path / "a.jsonl", GOOD, b"", nameless)
    assert read_documents(path)[1].id == "document 3"


@pytest.mark.parametrize(
    ("line", "told", "remedy"),
    [
        (b'{"tokens": [', "is not JSON", "one whole object on each line"),
        (b'{"tokens": ["\xff"]}', "not UTF-8", "Save the file as UTF-8"),
        ([1, 2], "holds [1, 2]", "an object with 'tokens' and 'mentions'"),
        ({"mentions": []}, "has no 'tokens'", "needs the lists 'tokens' and 'mentions'"),
        ({"tokens": ["a"]}, "has no 'mentions'", "needs the lists 'tokens' and 'mentions'"),
        (changed(tokens="Ann saw"), "'tokens' is 'Ann saw'", "give a list"),
        (changed(tokens=[], mentions=[]), "'tokens' is empty", "leave the document out"),
        (changed(tokens=["Ann", 3]), "token 1 is 3", "strings that are not empty"),
        (changed(mentions=[7]), "mention 0: is 7", "'start' and 'end'"),
        (changed(mentions=[{"start": 0}]), "mention 0: has no 'end'", "give the token positions"),
        (mention(start="2"), "mention 1: 'start' is '2'", "a whole number"),
        (mention(start=True), "mention 1: 'start' is True", "a whole number"),
        (mention(end=9), "mention 1: the span 2 to 9", "one past the last token"),
        (mention(end=2), "mention 1: the span 2 to 2", "one past the last token"),
        (mention(start=-1), "mention 1: the span -1 to 3", "start counts from 0"),
        (mention(head=3), "mention 1: 'head' is 3", "correct it, or leave it out"),
        (mention(mtype="XYZ"), "mention 1: 'mtype' is 'XYZ'", "NAM, NOM, PRO"),
        (mention(entity=[1]), "mention 1: 'entity' is [1]", "a string or a whole number"),
        (
            changed(mentions=[{"id": 5, "start": 0, "end": 1}, {"id": 5, "start": 1, "end": 2}]),
            "id 5",
            "its own",
        ),
        (changed(sentences=[[0, 2], [3, 4]]), "sentence 1 is [3, 4]", "starts at token 2"),
        (changed(sentences=[[0, 2]]), "sentences end at token 2 of 4", "leave 'sentences' out"),
        (changed(sentences=[[0, 9]]), "sentence 0 is [0, 9]", "ends by 4"),
        (changed(full_until="all"), "'full_until' is 'all'", "leave it out"),
        (GOOD, "document id 'a' was given in line 1", "give each its own"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_the_fault_and_a_remedy(tmp_path, line, told, remedy):
    path = written(tmp_path / "some.jsonl", GOOD, line)
    with pytest.raises(DataFileError) as refused:
        read_documents(path)
    for part in ("some.jsonl, line 2", told, remedy):
        assert part in str(refused.value)


def test_a_file_without_documents_is_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"holds no document\. Give one JSON object a line"):
        read_documents(written(tmp_path / "a.jsonl", b"", b""))


def test_a_missing_file_is_told_with_what_to_check(tmp_path):
    with pytest.raises(FileNotFoundError, match="Check the path"):
        read_documents(tmp_path / "none.jsonl")


def test_mentions_of_a_discourse_stand_in_the_order_of_the_text_outer_ones_first():
    data = record("< < Her >PER uncle >PER met < Ann >PER .")
    data["mentions"].reverse()
    (found,) = discourses([document_from(data)])
    assert [(m.start, m.end) for m in found.mentions] == [(0, 2), (0, 1), (3, 4)]
    assert found.places == ((0, 2), (0, 1), (0, 0))


def test_documents_of_a_topic_share_their_entities():
    found = discourse("< Ann >PER/NAM/x left < Rome >LOC/NAM/y .", "< Rome >LOC/NAM/y fell .", scope="topic")
    assert found.name == "t"
    np.testing.assert_array_equal(found.truth(), [0, 1, 1])


def test_each_document_is_by_itself_within_documents():
    documents = [document_from(record("< Ann >PER/NAM/x left .", id=name)) for name in ("a", "b")]
    assert [found.name for found in discourses(documents)] == ["a", "b"]


def test_types_and_the_annotated_part_decide_which_mentions_are_taken():
    data = record("< Ann >PER < left >ACT < Rome >LOC . < She >PER slept .", full_until=4)
    documents = [document_from(data)]
    assert [m.type for m in discourses(documents)[0].mentions] == ["PER", "ACT", "LOC"]
    assert [m.type for m in discourses(documents, without_types=["ACT"])[0].mentions] == ["PER", "LOC"]
    assert [m.type for m in discourses(documents, types=["PER"])[0].mentions] == ["PER"]


def test_documents_without_mentions_are_left_out_and_nothing_at_all_is_refused():
    empty, full = document_from(record("Nothing here .")), document_from(record("< Ann >PER left ."))
    assert len(discourses([empty, full])) == 1
    with pytest.raises(EmptyWorldError, match="check the documents"):
        discourses([empty])


def test_topics_are_needed_only_where_documents_are_joined_by_them():
    documents = [document_from(record("< Ann >PER left ."))]
    with pytest.raises(DataFileError, match=r"has no 'topic'.*use scope='document'"):
        discourses(documents, scope="topic")
    with pytest.raises(InvalidArgumentError, match="'document' or 'topic', but 'corpus'"):
        discourses(documents, scope="corpus")


def test_truth_needs_an_entity_of_every_mention():
    with pytest.raises(DataFileError, match=r"d0: mention 1 has no 'entity'.*or only predict"):
        discourse("< Ann >PER/NAM/x saw < her >PER/PRO .").truth()
