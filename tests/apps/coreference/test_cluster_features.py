import numpy as np
import pytest

from coreference_cases import discourse
from factorwise.apps.coreference import cluster_templates, mention_fields
from factorwise.apps.coreference.cluster_features import CLASHES, MAKE_UP
from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.walks.frames import make_frame, run
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.testing import check_template
from factorwise.world.partition import Partition

TEXT = (
    "< Mr. Lee >PER/NAM saw < Ann Ray >PER/NAM . < He >PER/PRO and < she >PER/PRO met < the men >PER/NOM ."
    " < I >PER/PRO knew < Lee >PER/NAM , < a cook >PER/NOM . < They >PER/PRO saw < him >PER/PRO ."
)
LEE, ANN, HE, SHE, MEN, TELLER, LEE_AGAIN, COOK, THEY, HIM = range(10)


def told(*members):
    found = {}
    for template in cluster_templates(discourse(TEXT)):
        values = template.of(np.array(members, np.int32), 0)
        found |= dict(zip(template.statistic_names, values.tolist(), strict=True))
    return found


def test_fields_describe_each_mention_by_numbers():
    fields = mention_fields(discourse(TEXT))
    assert fields["pronoun"].values.tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 1, 1]
    names = fields["name"].values
    assert names[LEE] == names[LEE_AGAIN] > 0
    assert names[ANN] not in (0, names[LEE])
    assert fields["noun"].values[[LEE, HE]].tolist() == [0, 0]
    assert fields["telling"].values.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("members", "holds", "fails"),
    [
        ([HE], "a pronoun alone", "pronouns only"),
        ([LEE], "a name alone", "has a name"),
        ([COOK], "a nominal alone", "nominals without a name"),
        ([HE, HIM], "pronouns only", "many pronouns only"),
        ([HE, HIM, SHE, THEY], "many pronouns only", "has a name"),
        ([LEE, HE], "has a name", "pronouns only"),
        ([COOK, HE], "nominals without a name", "has a name"),
        ([LEE, SHE], "both genders", "three names or more"),
        ([LEE, TELLER], "a narrator with a name", "both genders"),
    ],
)
def test_a_cluster_is_told_by_what_it_is_made_of(members, holds, fails):
    found = told(*members)
    assert found[holds] == 1
    assert found[fails] == 0


def test_clashes_are_counted():
    assert told(LEE, HE, HIM, SHE)["mentions of the rarer gender"] == 1
    assert told(LEE, HE, MEN, THEY)["mentions of the rarer number"] == 2
    assert told(LEE, ANN, LEE_AGAIN)["further names"] == 1
    assert told(MEN, COOK, HE)["further nouns"] == 1
    assert told(HE, HIM)["further names"] == 0
    assert told(HE, HIM)["further nouns"] == 0


def test_all_statistics_have_names():
    assert [t.statistic_names for t in cluster_templates(discourse(TEXT))] == [MAKE_UP, CLASHES]


@pytest.mark.parametrize("number", [0, 1])
def test_templates_account_for_every_move(number):
    template = cluster_templates(discourse(TEXT))[number]
    check_template(template, Partition.singletons(10), steps=60)


def test_compiled_statistics_are_those_of_plain_python():
    model = Model(cluster_templates(discourse(TEXT)))
    for labels in ([0] * 10, [0, 1, 0, 1, 2, 3, 0, 0, 2, 0], list(range(10))):
        world = Partition.from_labels(np.array(labels))
        plain = model.statistics(world).to_dense(model.blocks.size)
        programs = model_programs(model, world)
        frame = make_frame(programs.arrays, np.zeros(2, np.uint64), weights=model.blocks.size)
        for program in programs.templates:
            run(Bound(program, frame), "totals")
        np.testing.assert_allclose(frame.gradient.value, plain, rtol=1e-6)
