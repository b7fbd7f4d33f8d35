from thinning import thinned


def test_every_combination_is_there_once_and_every_value_runs_always():
    axes = "abc", range(4), (True, False)
    parameters = thinned(*axes)
    values = [parameter.values for parameter in parameters]
    assert len(set(values)) == len(values) == 3 * 4 * 2
    always = [parameter.values for parameter in parameters if not parameter.marks]
    assert len(always) == 4
    assert [set(seen) for seen in zip(*always, strict=True)] == [set(axis) for axis in axes]
