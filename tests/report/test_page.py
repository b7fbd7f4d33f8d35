"""The page as text: what is inside, and that nothing of it is markup."""

import json
import re

import numpy as np
import pytest

from factorwise.report import Facts, Report, Table, write_report
from factorwise.report.page import as_script_data
from report_cases import EVIL, report


def embedded(page):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(data)


def test_text_of_users_never_becomes_markup():
    page = report().to_html()
    assert page.count("<script") == 3  # the data, the charts, the code
    assert "<img" not in page
    assert "window.harmed" in page
    assert page.count("window.harmed = 1</script>") == 0


def test_data_come_back_as_they_were():
    sections = embedded(report().to_html())
    assert sections[0]["rows"] == [["command", EVIL], ["score", None]]
    assert sections[2]["series"][0]["y"] == [0.5, 0.6, "infinite"]
    assert sections[5]["entities"][0]["members"][0] == ["0a", EVIL, "Rome", 0.25]
    assert [section["kind"] for section in sections] == [
        "facts", "table", "chart", "chart", "chart", "entities", "pairs", "sentences", "matrix",
    ]  # fmt: skip


def test_the_page_loads_nothing():
    page = report("plain").to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert not re.search(r"@import|url\(", page.split("<script")[0])


def test_numbers_of_numpy_and_half_characters_are_written():
    rows = [["n", np.float32(0.5)], ["array", np.array([1, 2])], ["half", "\ud800"]]
    assert json.loads(as_script_data(rows)) == [["n", 0.5], ["array", [1, 2]], ["half", "\ud800"]]


def test_a_report_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "r.html"
    size = write_report(path, Report(title="T", sections=[Facts(title="F", rows=[])], version="1"))
    assert path.stat().st_size == size
    before = path.read_bytes()
    bad = Report(title="T", sections=[Table(title="x", columns=["a"], rows=[[object()]])], version="1")
    with pytest.raises(TypeError):
        write_report(path, bad)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
