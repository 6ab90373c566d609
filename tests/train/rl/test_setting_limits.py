"""The limits of the settings of a GRPO checkpoint, their defaults, and what a paper's terms fill in."""

import pytest

from darkroom.train.rl.methods import METHODS, named_method, options_of, settings_of
from darkroom.train.rl.methods.base import Method, RolloutScore, printed_terms
from darkroom.train.rl.methods.rule_based import AdaptiveMethod
from darkroom.train.rl.settings import JudgeOptions, MethodDefaults
from darkroom.train.runs import TrainError
from tests.train.outcomes import looked, outcome

LEAST = {
    "epochs": 0.0,
    "generations": 2,
    "learning_rate": 0.0,
    "beta": 0.0,
    "epsilon": 0.0,
    "temperature": 0.01,
    "top_p": 0.01,
    "repetition_penalty": 1.0,
    "oversample": 1.0,
    "max_rounds": 1,
    "max_tokens": 1,
    "min_pixels": 784,
}


@pytest.mark.parametrize("name", LEAST)
def test_a_setting_has_a_least_value(name):
    needed = {"generations": 2, "learning_rate": 1e-6, "max_rounds": 4}
    least = LEAST[name]
    assert getattr(MethodDefaults(**{**needed, name: least}), name) == least
    with pytest.raises(ValueError, match=name):
        MethodDefaults(**{**needed, name: least - (1 if isinstance(least, int) else 0.001)})


@pytest.mark.parametrize(("name", "most"), [("top_p", 1.0)])
def test_a_setting_has_a_largest_value(name, most):
    needed = {"generations": 2, "learning_rate": 1e-6, "max_rounds": 4}
    assert getattr(MethodDefaults(**needed, **{name: most}), name) == most
    with pytest.raises(ValueError, match=name):
        MethodDefaults(**needed, **{name: most + 0.001})


def test_terms_that_no_paper_states_are_these():
    terms = MethodDefaults(generations=2, learning_rate=1e-6, max_rounds=4)
    assert (terms.epochs, terms.beta, terms.epsilon, terms.temperature, terms.top_p) == (1.0, 0.0, 0.2, 1.0, 1.0)
    assert (terms.repetition_penalty, terms.oversample, terms.max_tokens, terms.min_pixels) == (1.0, 1.0, 4096, None)
    assert (terms.loss_type, terms.scale, terms.schedule, terms.adaptive_temperature) == (
        "dapo",
        "none",
        "linear",
        False,
    )


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("batch_size", 1, None),
        ("accumulation", 1, None),
        ("repetition_chars", 2, None),
        ("repetition_share", 0.01, 1.0),
        ("repetition_times", 2, None),
        ("repetition_min_chars", 0, None),
    ],
)
def test_settings_of_a_checkpoint_have_limits(name, least, most):
    batches = {"generations": 2, "batch_size": 2} if name != "batch_size" else {"generations": 2, "accumulation": 2}
    for value, step in ((least, -1), (most, 1)):
        if value is not None:
            assert getattr(settings_of("codev", **{**batches, name: value}), name) == value
            with pytest.raises(ValueError, match=name):
                settings_of("codev", **{**batches, name: value + (0.001 if isinstance(value, float) else 1) * step})


def test_settings_that_nobody_gave():
    settings = settings_of("codev")
    assert (settings.max_steps, settings.accumulation, settings.seed, settings.engine) == (-1, 1, 0, "transformers")
    assert (settings.batch_size, settings.generations, settings.protocol, settings.judge) == (8, 8, "thyme", "")
    assert (settings.repetition, settings.repetition_chars, settings.prompt, settings.options) == (None, None, None, {})
    assert settings.method_file == ""
    judge = JudgeOptions()
    assert (judge.url, judge.model, judge.n_votes, judge.rubric) == ("", "", None, "strict")
    assert JudgeOptions(n_votes=1).n_votes == 1
    with pytest.raises(ValueError, match="n_votes"):
        JudgeOptions(n_votes=0)


@pytest.mark.parametrize(
    ("given", "ok"),
    [
        ({"generations": 4, "batch_size": 2, "accumulation": 2}, True),
        ({"generations": 4, "batch_size": 2}, False),
        ({"generations": 2, "batch_size": 4, "oversample": 1.5}, True),
        ({"generations": 2, "batch_size": 4, "oversample": 1.25}, False),  # five rollouts of two
        ({"generations": 2, "batch_size": 4, "accumulation": 2, "oversample": 1.25}, True),
        ({"generations": 2, "batch_size": 2, "oversample": 1.25}, False),  # two and a half
        ({"generations": 4, "batch_size": 4, "oversample": 2.0}, True),
    ],
)
def test_a_batch_has_whole_groups_before_and_after_the_selection(given, ok):
    if ok:
        assert settings_of("codev", **given).generations == given["generations"]
        return
    with pytest.raises(TrainError, match="multiple"):
        settings_of("codev", **given)


@pytest.mark.parametrize(
    ("texts", "options", "trainer"),
    [
        (["method.weight_tool=0.3"], {"weight_tool": 0.3}, {}),
        (["method.weight_tool=0.3", "trainer.delta=2.5"], {"weight_tool": 0.3}, {"delta": 2.5}),
        ([], {}, {}),
    ],
)
def test_options_are_read_from_the_command_line(texts, options, trainer):
    settings = settings_of("codev", options=texts)
    assert settings.options == options
    assert settings.trainer == trainer


@pytest.mark.parametrize("text", ["weight_tool=0.3", "method.weight_tool=", "method.weight_tool", "model.x=1"])
def test_an_option_that_sets_nothing_is_named(text):
    with pytest.raises(TrainError, match=f"found '{text.partition('=')[0]}'"):
        settings_of("codev", options=["method.weight_accuracy=2", text])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight_tool": "much"}, r"method\.weight_tool: .*; found 'much'"),
        ({"weight_tol": 1, "a": 2}, "codev has no field a, weight_tol; it has weight_accuracy, weight_tool, "),
        ({"weight_tool": 1.0}, "needs"),
    ],
)
def test_an_option_that_cannot_be_is_one_line(options, said):
    with pytest.raises(TrainError, match=said):
        named_method("codev", options)


def test_options_change_a_method_and_none_leaves_it_as_it_is():
    assert options_of(named_method("codev", {"weight_tool": "0.25"}))["weight_tool"] == 0.25
    assert options_of(named_method("codev")) == options_of(METHODS["codev"]())
    with pytest.raises(TrainError, match="unknown method 'codex'; known: thyme, "):
        named_method("codex")


def test_a_papers_terms_come_with_the_places_where_it_states_them():
    terms, places = printed_terms("adaptive")
    assert (terms.generations, terms.max_rounds, terms.epochs, terms.top_p) == (16, 6, 3.0, 0.95)
    assert places["top_p"] == "table A1"
    assert "scale" not in places
    assert terms.scale == "group"
    assert "batch" in places


@pytest.mark.parametrize(
    ("parts", "n", "modes"),
    [
        ((1, 1, 2), 4, "forced forbidden free free"),
        ((1, 1, 2), 8, "forced forced forbidden forbidden free free free free"),
        ((2, 1, 1), 4, "forced forced forbidden free"),
        ((1, 1, 1), 3, "forced forbidden free"),
    ],
)
def test_a_group_is_divided_by_its_parts(parts, n, modes):
    method = AdaptiveMethod(**dict(zip(("forced", "forbidden", "free"), parts, strict=True)))
    assert list(method.modes(n)) == modes.split()


def test_a_group_that_cannot_be_divided_is_named_with_its_parts():
    with pytest.raises(
        TrainError, match=r"into quarters \(1 forced, 1 forbidden, 2 free\): 6 rollouts.* multiple of 4"
    ):
        AdaptiveMethod().modes(6)
    with pytest.raises(TrainError, match="into 3 parts"):
        AdaptiveMethod(free=1).modes(4)
    for part in ("forced", "forbidden", "free"):
        with pytest.raises(ValueError, match="each is at least 1"):
            AdaptiveMethod(**{part: 0})


def test_a_method_of_ones_own_has_these_answers():
    method = Method()
    assert (method.broken, method.breaks_over_limit, method.shows_images, method.ranks_groups) == (
        {"timeout", "memory"},
        False,
        True,
        True,
    )
    assert method.modes(3) == ("free",) * 3
    assert RolloutScore(1.0, 1.0, {}).is_trained is True


def test_what_a_rollout_said_and_ran():
    rollout = outcome("red", looked(), looked("error", error="x"), looked("timeout"))
    assert (rollout.n_calls, rollout.n_ok, rollout.used_tool, rollout.answer) == (3, 1, True, "red")
    assert rollout.thought == "I look.\nI look.\nI look.\nSo it is."
    assert rollout.text == "\n".join(rollout.turns)
    bare = outcome(None)
    assert (bare.n_calls, bare.n_ok, bare.used_tool, bare.answer, bare.thought) == (0, 0, False, None, "So it is.")
    assert (bare.seconds, bare.n_over_limit, bare.sandbox_error) == (0.0, 0, None)


def test_a_broken_rollout_says_by_which_program():
    rollout = outcome("red", looked(), looked("error", error="NameError: x"), looked("timeout"))
    assert rollout.failed(frozenset({"error", "timeout"})) == "program 2: error: NameError: x"
    assert rollout.failed(frozenset({"timeout"})) == "program 3: timeout: no error text"
    assert rollout.failed(frozenset()) is None
    assert outcome("red", sandbox_error="gone").failed(frozenset()) == "gone"
