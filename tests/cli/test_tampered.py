"""Files that were tampered with are used or refused with a reason; many more by ``make fuzz``."""

import os

import pytest

import tampering
from factorwise.io.models.files import write_model

CASES = int(os.environ.get("FACTORWISE_FUZZ_CASES", "300")) // 10
KINDS = (
    "tag.fw",
    "order2.fw",
    "global.fw",
    "align.fw",
    "flows.fw",
    "coref.fw",
    "resolve.fw",
    "weights",
    "checkpoint",
    "shards",
)


@pytest.fixture(scope="module")
def uses(tmp_path_factory):
    made = tampering.all_uses(tmp_path_factory.mktemp("uses"))
    assert set(made) == set(KINDS)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_tampered_files_are_used_or_refused(uses, kind):
    outcomes = [tampering.use_case(uses, kind, number) for number in range(CASES)]
    for number, outcome in enumerate(outcomes):
        assert outcome in ("used", "refused"), f"case {number} of {kind}: {outcome}"
    assert "refused" in outcomes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith(".fw")])
def test_what_is_tampered_with_is_used_as_it_was(uses, kind, monkeypatch):
    use = uses[kind]
    monkeypatch.chdir(use.folder)
    write_model("tampered.fw", use.model)
    tampering.run_line(use.words)
