"""Every method's rewards, against the papers' formulas computed by hand."""

import asyncio
from dataclasses import replace

import pytest

from darkroom.train.rl.methods import METHODS, Judges, named_method
from darkroom.train.rl.methods.judged import ThymeMethod
from darkroom.train.rl.rollouts import scoring
from darkroom.train.runs import TrainError
from tests.train.outcomes import QUESTION_IMAGE, looked, outcome


def scored(name, *group):
    method = METHODS[name]() if isinstance(name, str) else name
    return asyncio.run(method.score(group, Judges()))


def rewards(name, *group):
    return [one.reward for one in scored(name, *group)]


def test_thyme_is_result_and_half_the_format():
    assert rewards("thyme", outcome("red"), outcome("blue"), outcome(None)) == [1.5, 0.5, 0.0]


def test_thyme_code_pays_a_right_answer_for_programs_that_ran():
    half_ran = outcome("red", looked(), looked("error", error="NameError"))
    assert rewards("thyme_code", half_ran, outcome("blue", looked())) == [1.0 * (1 + 0.5 * 0.5) + 0.5, 0.5]


def test_thyme_released_takes_a_wrong_answer_for_worse_than_none():
    assert rewards("thyme_released", outcome("red"), outcome("blue"), outcome(None)) == [1.5, -0.5, 0.0]


def test_pyvision_pays_a_right_answer_for_every_program_that_ran():
    assert rewards("pyvision", outcome("red", looked(), looked()), outcome("red"), outcome("blue", looked())) == [
        pytest.approx(1.2),
        1.0,
        0.0,
    ]


def test_pyvision_released_trains_on_failed_programs_and_pays_for_them():
    failed = outcome("red", looked("error", error="NameError: x"), looked())
    assert failed.failed(METHODS["pyvision_released"]().broken) is None
    assert rewards("pyvision_released", failed) == [pytest.approx(1.2)]
    assert outcome(None, looked("timeout")).failed(METHODS["pyvision_released"]().broken)


def test_codev_without_a_judge_knows_redlines_only():
    whole = looked(code="image.save('again.png')", images=(QUESTION_IMAGE,))
    right, misused, wrong = scored("codev", outcome("red", looked()), outcome("red", whole), outcome("blue"))
    assert (right.reward, wrong.reward) == (1.0, 0.0)
    assert misused.reward == pytest.approx(1.0 + 0.5 * -0.5)
    assert misused.parts["redlines"] == 1.0


def adaptive_group(n_right_forced, n_right_forbidden, *free):
    forced = [outcome("red" if n < n_right_forced else "blue", looked(), mode="forced") for n in range(4)]
    forbidden = [outcome("red" if n < n_right_forbidden else "blue", mode="forbidden") for n in range(4)]
    return [*forced, *forbidden, *free]


def test_adaptive_follows_the_papers_equations():
    """Forced rollouts are right 3 of 4 times, forbidden ones 1 of 4: tools are needed."""
    used, unused = outcome("red", looked()), outcome("blue")
    found = scored("adaptive", *adaptive_group(3, 1, used, used, used, unused))
    assert found[0].reward == pytest.approx(1 + 0.08 * 1.2)
    assert found[3].reward == pytest.approx(0.08 * 1.2)
    steady = -0.1 * (0.75 * 0.25)
    assert found[8].reward == pytest.approx(1 + 0.05 * 1.6 + steady)
    assert found[11].reward == pytest.approx(0.05 * -1.0 + steady)
    assert found[8].parts["necessity"] == 1.0


def test_adaptive_pays_for_no_tool_where_none_is_needed():
    used, unused = outcome("red", looked()), outcome("red")
    found = scored("adaptive", *adaptive_group(2, 2, used, unused))
    assert found[9].parts["alignment"] == 1.6
    assert found[8].parts["alignment"] == 1.2


def test_adaptive_takes_disobedience_off():
    found = scored("adaptive", outcome("red", mode="forced"), outcome("red", looked(), mode="forbidden"))
    assert [one.reward for one in found] == [pytest.approx(1 - 0.08)] * 2


def test_adaptive_needs_no_tool_where_all_forced_rollouts_broke():
    found = scored("adaptive", outcome("blue", mode="forbidden"), outcome("red"))
    assert found[1].parts["necessity"] == 0.0


@pytest.mark.parametrize("n_rollouts", [4, 8, 16])
def test_adaptive_divides_a_group_as_four_four_eight(n_rollouts):
    modes = METHODS["adaptive"]().modes(n_rollouts)
    assert [modes.count(mode) * 16 // n_rollouts for mode in ("forced", "forbidden", "free")] == [4, 4, 8]


def test_adaptive_refuses_a_group_without_quarters():
    with pytest.raises(TrainError, match="quarters"):
        METHODS["adaptive"]().modes(6)


def test_figr_pays_for_a_drawing_where_one_helps():
    drew = [looked()]
    helps, not_, unknown, none = (
        outcome("red", *drew, suitable=True),
        outcome("red", *drew, suitable=False),
        outcome("red", *drew),
        outcome("red", suitable=True),
    )
    assert rewards("figr", helps, not_, unknown, none) == [3.0, 2.2, 2.2, 2.0]


def test_figr_pays_a_wrong_answer_for_its_form_alone():
    assert rewards("figr", outcome("blue", looked(), suitable=True)) == [1.0]


def test_figr_takes_printed_numbers_for_no_drawing():
    assert rewards("figr", outcome("red", looked(images=()), suitable=True)) == [2.0]


def test_figr_released_wants_exactly_one_image():
    two = looked(images=(QUESTION_IMAGE, QUESTION_IMAGE))
    one, more = outcome("red", looked(), suitable=True), outcome("red", two, suitable=True)
    assert rewards("figr_released", one, more) == [pytest.approx(0.8 + 1.2), pytest.approx(0.8)]


def test_a_part_is_named_after_the_ablation():
    (found,) = scored(ThymeMethod(addition="none"), outcome("red"))
    assert found.reward == 1.5


def test_ablations_pay_for_no_tool():
    whole = looked(code="image.save('again.png')", images=(QUESTION_IMAGE,))
    assert rewards("pyvision_without_tool_reward", outcome("red", looked())) == [1.0]
    assert rewards("codev_accuracy_only", outcome("red", whole)) == [1.0]


def test_without_suitability_a_drawing_is_worth_as_much_everywhere():
    (plain,), (without,) = (rewards(name, outcome("red", looked())) for name in ("figr", "figr_without_suitability"))
    assert without - plain == pytest.approx(0.8)


def test_the_rule_against_libraries_is_a_field_of_pyvision():
    assert named_method("pyvision", {"mode": "no_libraries"}).modes(2) == ("no_libraries", "no_libraries")
    assert METHODS["pyvision"]().modes(2) == ("free", "free")


def test_without_the_visual_reward_a_drawing_earns_nothing():
    assert rewards("figr_without_visual_reward", outcome("red", looked(), suitable=True)) == [2.0]


def test_stored_necessity_is_the_rows():
    used, unused = outcome("red", looked()), outcome("red")
    prior = replace(used.question, necessity_prior=0.5)
    group = [replace(one, question=prior) for one in adaptive_group(2, 2, used, unused)]
    assert scored("adaptive", *group)[8].parts["alignment"] == 1.2
    assert scored("adaptive_stored_necessity", *group)[8].parts["alignment"] == 1.6
    assert scored("adaptive_stored_necessity", *adaptive_group(2, 2, used, unused))[8].parts["alignment"] == 1.2


def test_weights_that_a_paper_excludes_are_one_line():
    with pytest.raises(TrainError, match=r"method: Value error, TAPO needs \|weight_tool\| < \|weight_accuracy\|"):
        named_method("codev", {"weight_tool": "2"})
    with pytest.raises(TrainError, match="alignment needs b2 > b3 > 0"):
        named_method("adaptive", {"b3": "3"})


def test_a_group_is_divided_as_its_fields_say():
    modes = named_method("adaptive", {"forced": 2, "free": 5}).modes(8)
    assert [modes.count(mode) for mode in ("forced", "forbidden", "free")] == [2, 1, 5]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_does(name):
    method = METHODS[name]()
    assert method.says
    assert method.wants_judge
    assert method.protocol in ("thyme", "pyvision", "tool_call")
    assert len(method.modes(16)) == 16


def test_a_program_that_failed_breaks_a_rollout_of_pyvision_alone():
    failed = outcome("red", looked("error", error="NameError: x"))
    assert failed.failed(METHODS["pyvision"]().broken) == "program 1: error: NameError: x"
    assert failed.failed(METHODS["thyme"]().broken) is None


def test_images_beyond_the_sandboxs_limits_break_a_rollout_of_pyvision_alone():
    many = replace(outcome("red", looked()), n_over_limit=3)
    broken = {name: asyncio.run(scoring.scored([many], METHODS[name](), Judges(), size=1)).broken for name in METHODS}
    by_paper = {name for name in METHODS if name.startswith("pyvision")} - {"pyvision_released"}
    assert {name for name, (why,) in broken.items() if why} == by_paper
    assert broken["pyvision"] == ("3 images exceed the sandbox's limits",)


def test_a_program_that_ran_out_of_time_breaks_any_rollout():
    failed = outcome("red", looked("timeout", error="10 s are over"))
    assert all(failed.failed(make().broken) for make in METHODS.values())


def test_a_sandbox_that_failed_breaks_any_rollout():
    assert outcome("red", sandbox_error="SandboxClosed: gone").failed(frozenset()) == "SandboxClosed: gone"
