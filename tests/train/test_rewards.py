import pytest

from train.rewards import accuracy, formatted, thyme


@pytest.mark.parametrize(
    ("result", "consistency", "form", "reward"),
    [(1, 1, 1, 2.0), (1, 0, 1, 1.5), (1, 1, 0, 1.5), (1, 0, 0, 1.0), (0, 1, 1, 0.5), (0, 1, 0, 0.0)],
)
def test_the_reward_is_the_formula_of_thyme(result, consistency, form, reward):
    assert thyme(result=result, consistency=consistency, format=form) == reward


def test_consistency_earns_nothing_for_a_wrong_answer():
    assert thyme(result=0, consistency=1, format=1) == thyme(result=0, consistency=0, format=1)


@pytest.mark.parametrize(
    ("answer", "gold", "choices", "right"),
    [
        ("red", "red", (), 1.0),
        ("Red.", "red", (), 1.0),
        ("51.0", "51", (), 1.0),
        ("blue", "red", (), 0.0),
        (None, "red", (), 0.0),
        ("B", "B", ("A. red", "B. blue"), 1.0),
        ("blue", "B", ("A. red", "B. blue"), 1.0),
        ("A", "B", ("A. red", "B. blue"), 0.0),
    ],
)
def test_an_answer_is_right_when_it_says_the_gold_answer(answer, gold, choices, right):
    assert accuracy(answer, gold, choices=choices) == right


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("<think>I look.</think>\n<answer>red</answer>", 1.0),
        ("<think>a\n<code>\n```python\nx\n```\n</code>\nb</think>\n<answer>red</answer>", 1.0),
        ("<think>I look.</think><answer></answer>", 0.0),
        ("I look.</think>\n<answer>red</answer>", 0.0),
        ("<think>I look.\n<answer>red</answer>", 0.0),
        ("<think>a</think>\n<answer>red</answer>\n<answer>blue</answer>", 0.0),
        ("<think>a</think>\n<answer>red</answer> and more", 0.0),
        ("", 0.0),
    ],
)
def test_the_format_is_one_thought_and_one_answer(text, well):
    assert formatted(text) == well
