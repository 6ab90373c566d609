"""Corrupted answers, kind by kind: every one is pinned, since a row is only as good as what it was tried on."""

import pytest

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth
from darkroom.pipelines.verification.grading.corruptions import (
    LONG,
    Corruption,
    Discrimination,
    boxes,
    choices,
    correct_spellings,
    corruptions,
    expressions,
    lists,
    numbers,
    phrased,
    rival_number,
    spelled,
    texts,
)


def asked(answer: str, question: str = "What is it?", *, of: tuple[str, ...] = ()) -> Sample:
    image = ImageRef("a" * 64, 1000, 800, "RGB", "PNG")
    return Sample("s", "test", "1", "", (image,), question, of, answer, Truth(), "object")


def said(several) -> list[str]:
    return [corruption.text for corruption in several]


@pytest.mark.parametrize(
    ("answer", "changed"),
    [
        ("100", ["200", "101", "1007", "-100", "1000", "100, 1007", "100 100"]),
        ("-12.50", ["-22.50", "-12.51", "-12.507", "12.50", "-125.0", "-12.50, 12.507", "-12.50 12.50"]),
        ("1,209", ["2,209", "1,200", "1,2097", "-1,209", "12090", "1,209, 1,2097", "1,209 1,209"]),
        ("0", ["1", "07", "00", "0, 07", "0 0"]),
        ("$-5", ["$-6", "$-6", "$-57", "$5", "$-50", "$-5, 57", "$-5 5", "$-5 cm", "5 cent"]),
        ("9.5", ["1.5", "9.6", "9.57", "-9.5", "950", "9.5, 9.57", "9.5 9.5"]),
    ],
)  # fmt: skip
def test_a_number_has_a_digit_a_sign_or_its_point_changed(answer, changed):
    assert said(numbers(asked(answer), Grader("number"))) == changed


def test_a_changed_number_lies_outside_of_the_tolerance():
    assert said(numbers(asked("100"), Grader("number", 0.05)))[:2] == ["200", "1007"]
    assert "110" not in said(numbers(asked("100"), Grader("number", 0.1)))
    assert "101" in said(numbers(asked("100"), Grader("number", 0.009)))
    assert "101" not in said(numbers(asked("100"), Grader("number", 0.01)))


def test_a_number_gets_every_other_unit_of_its_dimension_and_one_of_another():
    several = said(numbers(asked("12 cm"), Grader("number")))
    assert {"12 kg", "12 mm", "12 m", "12 km", "12 ft"} <= set(several)
    assert "12 cm" not in several
    assert several.count("12 m") == 1
    assert "12 kg" in said(numbers(asked("12"), Grader("number", unit="cm")))
    assert "12 cm" in said(numbers(asked("12 kg"), Grader("number")))


def test_an_expression_has_a_constant_or_a_sign_changed_or_one_added():
    assert said(expressions(asked("x+1"))) == ["x+2", "x+2", "x+1, 17", "x+1 1", "x-1", "x+1+1"]
    assert said(expressions(asked("3 - x"))) == ["4 - x", "4 - x", "3, 37 - x", "3 3 - x", "3 + x", "3 - x+1"]
    assert said(expressions(asked("-x"))) == ["-x+1"]
    assert (rival_number("12"), rival_number("x")) == ("22", "x1")


def test_every_other_choice_is_named_by_letter_and_by_text():
    several = list(choices(asked("A", of=("A. red", "B. green", "C. Green"))))
    assert said(several)[:8] == ["B", "B. green", "AB", "A. green", "C", "C. Green", "AC", "A. Green"]
    assert said(several)[8:12] == ["A, B, C", "red, green, Green", "A B C", "red green Green"]
    assert said(several)[-2:] == ["A. red\nB. green\nC. Green", "Z"]
    assert said(choices(asked("A", of=("A. red", "B. green"))))[:3] == ["B", "B. green", "green"]


def test_of_several_right_choices_each_alone_is_wrong():
    several = list(choices(asked("A, B", of=("A. red", "B. green", "C. x"))))
    assert several[:2] == [Corruption("choice missing", "A"), Corruption("choice missing", "B")]
    assert said(several)[2:7] == ["C", "C. x", "x", "A, BC", "A, B. x"]
    assert said(choices(asked("A, Z", of=("A. red", "Z. green")))) == ["A", "Z", "Q"]


@pytest.mark.parametrize(
    ("answer", "changed"),
    [
        ("red car", ["red cr", "red car", "red cax", "red car zanzibar", "zanzibar red car", "red car, red car",
                     "zanzibar", "car"]),
        ("box", ["bx", "xob", "boy", "box zanzibar", "zanzibar box", "box, box", "zanzibar"]),
        ("x", ["y", "x zanzibar", "zanzibar x", "x, x", "zanzibar"]),
        ("B12", ["B22", "B2", "21B", "B1x", "B12 zanzibar", "zanzibar B12", "B12, B12", "zanzibar"]),
        ("No. 19", ["No. 29", "No. 9", "9o. 1N", "No. 1x", "No. 19 zanzibar", "zanzibar No. 19",
                    "No. 19, No. 19", "zanzibar"]),
    ],
)  # fmt: skip
def test_a_text_loses_swaps_or_changes_a_letter(answer, changed):
    assert said(texts(asked(answer))) == changed


@pytest.mark.parametrize(
    ("answer", "is_ordered", "changed"),
    [
        (
            "a, b, c",
            True,
            [
                *("b, c", "a, b", "a", "a or b or c", "a, b or c", "a, b, c, zanzibar", "a, b, c, a", "zanzibar, b, c"),
                *("not a, b, c", "c, b, a", "b, c, a"),
            ],
        ),
        ("1, 2", False, ["2", "1", "1", "1 or 2", "1 or 2", "1, 2, 912", "1, 2, 1", "912, 2", "not 1, 2"]),
        ("1, b", False, ["b", "1", "1", "1 or b", "1 or b", "1, b, zanzibar", "1, b, 1", "zanzibar, b", "not 1, b"]),
        ("a, a", True, ["a", "a", "a", "a or a", "a or a", "a, a, zanzibar", "a, a, a", "zanzibar, a", "not a, a"]),
        ("a", False, ["a, zanzibar", "a, a", "zanzibar", "not a"]),
        ("a,,b", True, []),
    ],
)
def test_a_list_loses_repeats_or_reorders_an_element(answer, is_ordered, changed):
    assert said(lists(asked(answer), Grader("list", is_ordered=is_ordered))) == changed


def test_a_box_is_moved_grown_shrunk_and_turned_inside_out():
    assert said(boxes(asked("[100, 100, 300, 250]"), Grader("box", 0.5))) == [
        *("[168.4563758, 100, 368.4563758, 250]", "[100, 48.65771812, 300, 198.6577181]", "[500, 400, 700, 550]"),
        *("[100, 100, 508.1632653, 250]", "[100, 100, 300, 173.5]", "[0, 0, 1000, 800]", "[300, 250, 100, 100]"),
        *("[300, 100, 100, 250]", "[100, 100, 300, 250] [100, 100, 300, 250]"),
        *("[[100, 100, 300, 250], [0, 0, 1, 1]]", "[100, 100, 300]", "[100, 100, 300, NaN]"),
        *("[100, 100, 300, Infinity]", "[100, 100, 300, 1e999]", "[0.1, 0.1, 0.9, 0.9]"),
    ]
    assert "[0.1, 0.1, 0.9, 0.9]" not in said(boxes(asked("[0.2, 0.2, 1, 1]"), Grader("box")))
    assert said(boxes(asked("red"), Grader("box"))) == []
    assert said(boxes(asked("[100, 100, 300, 250]"), Grader("box"))) == said(
        boxes(asked("[100, 100, 300, 250]"), Grader("box", 0.5))
    )


def test_a_box_is_spelled_with_ten_digits():
    assert spelled((1.0, 2.5, 1 / 3, 1e9)) == "[1, 2.5, 0.3333333333, 1000000000]"


def test_every_kind_is_drowned_in_a_hundred_thousand_characters():
    long = [each.text for each in phrased("red", "blue") if each.kind == "long"]
    assert LONG == 100_000
    assert [len(text) for text in long] == [100_003, 100_000, 100_005, 100_000]
    assert long[0].strip() == "red"
    assert long[1].startswith("red red red")


def test_every_kind_is_disguised():
    several = list(phrased("STOP", "GO"))
    hidden = {each.text for each in several if each.kind in ("zero-width", "direction", "surrogate")}
    assert {"S\u200bTOP", "\u202ePOTS", "STOP\ud800"} <= hidden
    assert any("GO" in each.text and "STOP" in each.text for each in several if each.kind == "hedged")


@pytest.mark.parametrize(
    ("kind", "sample", "spellings"),
    [
        ("choice", asked("A", of=("A. red", "B. green")), ["(A)", "A. red", "Option A", "a"]),
        ("choice", asked("Z", of=("A. red",)), []),
        ("list", asked("a, b"), ["- a\n- b"]), ("list", asked("a"), []), ("number", asked("12"), [r"\boxed{12}"]),
        ("maths", asked("x"), [r"\boxed{x}"]), ("box", asked("[1,2,3,4]"), ["[1, 2, 3, 4]", '{"bbox": [1, 2, 3, 4]}']),
        ("box", asked("red"), []), ("text", asked("Stop"), ["STOP", '"Stop"']), ("text", asked('a"b'), ['A"B']),
        ("text", asked("é"), ['"é"']),
    ],
)  # fmt: skip
def test_models_spell_an_answer_in_the_ways_of_its_kind(kind, sample, spellings):
    answer = sample.answer
    usual = [answer, f" {answer}\n", f"The answer is {answer}", f"**{answer}**"]
    assert list(correct_spellings(sample, Grader(kind))) == [*usual, *spellings]


def test_no_corruption_is_the_expected_answer_itself():
    sample = asked("B", of=("A. red", "B. All of them", "C. x"))
    several = {each.text.casefold() for each in corruptions(sample, Grader("choice"))}
    assert not {"b", "all of them", "b. all of them"} & several
    assert {"a", "c"} <= several
    assert "zanzibar" not in said(corruptions(asked("zanzibar"), Grader("text")))


def test_five_of_each_are_shown_and_right_ones_that_were_refused_first():
    wrong = tuple(Corruption(f"k{n}", f"w{n}") for n in range(6))
    right = tuple(f"r{n}" for n in range(6))
    shown = str(Discrimination(wrong, right, 9)).split("; ")
    assert shown == [*(f"refuses 'r{n}'" for n in range(5)), *(f"accepts 'w{n}' (k{n})" for n in range(5))]
    assert str(Discrimination((), (), 9)) == "tells its answer from 9 corrupted ones"
    assert [Discrimination(a, r, 9).holds for a, r in (((), ()), (wrong, ()), ((), right), (wrong, right))] == [
        *(True, False, False, False)
    ]
    assert str(Discrimination((), ("x" * 61,), 1)) == f"refuses {'x' * 60!r}"
