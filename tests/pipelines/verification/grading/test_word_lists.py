"""Word lists: parts are filled in, and every file that a module reads can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.pipelines.verification.grading.word_lists import (
    Patterns,
    WordModel,
    any_of,
    parts_of,
    plain_quotes,
    read_words,
    rewrites,
    rewritten,
)


def written(folder: Path, text: str) -> str:
    module = folder / "phrases.py"
    module.with_suffix(".toml").write_text(text, encoding="utf-8")
    return str(module)


def test_a_part_is_filled_in_wherever_it_is_named(tmp_path: Path):
    module = written(
        tmp_path,
        """
        plain = 'no part'
        [by_kind]
        said = ['the @who@ says', '@who@s']
        [parts]
        person = ['judge', 'grader']
        who = 'fair @person@'
        """,
    )

    words = read_words(module)

    who = "fair (?:judge|grader)"
    assert words == {"plain": "no part", "by_kind": {"said": [f"the {who} says", f"{who}s"]}}


def test_a_part_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(KeyError, match="who"):
        read_words(written(tmp_path, "said = 'the @who@ says'"))


def test_any_of_several_patterns_prefers_the_first():
    assert any_of(["metre", "met"]) == "(?:metre|met)"


CLASSES = """
giver = "user told_by *ster"
box = "region bound* the_target_box"
seven = "one_two_three_four_five_six_seven"
eight = "one_two_three_four_five_six_seven_eight"
[values]
number = '[0-9]'
"""
WEIGHTS = {
    "anywhere": {"": -1, "giver": 0.6, "box": 0.5, "giver>box": 0.2, "=quux": 1.0},
    "before": {"": 0, "giver": 0.0},
    "after": {"": -0.5, "giver": 0.5},
}


@pytest.fixture
def model(tmp_path: Path) -> WordModel:
    (tmp_path / "words_classes.toml").write_text(CLASSES)
    (tmp_path / "words_weights.json").write_text(json.dumps(WEIGHTS))
    return WordModel(str(tmp_path / "module.py"), "words")


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("User", {"giver"}), ("12", {"number"}), ("red", set()), ("", set()),
        # an entry with a star matches by its end or its start
        ("master", {"giver"}), ("sters", set()), ("bounds", {"box"}), ("bound", {"box"}), ("unbound", set()),
        ("boun", set()),
        # words of an entry follow one another, seven at most
        ("told by", {"giver"}), ("told x by", set()), ("the target box", {"box"}), ("the target", set()),
        ("by told", set()),
        ("one two three four five six seven", {"seven"}), ("one two three four five six seven eight", {"seven"}),
        # pairs in their order, near within four tokens
        ("user region", {"giver", "box", "giver>box", "giver~box"}),
        ("region user", {"giver", "box", "box>giver", "box~giver"}),
        ("user a b c d region", {"giver", "box", "giver>box", "giver~box"}),
        ("user a b c d e region", {"giver", "box", "giver>box"}),
        ("user user", {"giver"}), ("told by the target box", {"giver", "box", "giver>box", "giver~box"}),
    ],
)  # fmt: skip
def test_features_are_classes_alone_and_in_pairs(model: WordModel, text: str, features: set[str]):
    assert {feature for feature in model.features(text) if not feature.startswith("=")} == features


def test_each_token_is_a_feature_in_lower_case(model: WordModel):
    assert model.features("Red 1,200!") == {"=red", "=1,200", "number"}


@pytest.mark.parametrize(("n_before", "is_read"), [(159, True), (160, False)])
def test_no_more_than_160_tokens_of_a_part_are_read(model: WordModel, n_before: int, is_read: bool):
    assert ("giver" in model.features("x " * n_before + "user")) is is_read


@pytest.mark.parametrize(
    ("text", "kind", "evidence"),
    [
        ("A user.", "anywhere", None), ("quux", "anywhere", None),
        ("quux user", "anywhere", "quux user (=quux, giver)"),
        ("A user. The region.", "anywhere", "A user. The region. (giver, box, giver>box)"),
        ("No. A user region quux. And so on.", "anywhere", "A user region quux. (=quux, giver, box)"),
        ("user", "before", None), ("user", "after", None), ("", "anywhere", None),
    ],
)  # fmt: skip
def test_the_first_part_above_zero_is_evidence_with_what_weighs_most(model: WordModel, text, kind, evidence):
    assert model.evidence(text, kind) == evidence


def test_a_text_is_read_in_sentences_and_in_pairs_of_them():
    assert parts_of("One. Two!\nThree; four") == [
        *("One.", "Two!", "Three;", "four", "One. Two!", "Two! Three;", "Three; four"),
    ]
    assert parts_of("你好。再见") == ["你好。", "再见", "你好。 再见"]
    assert (parts_of(""), parts_of(" \n "), parts_of("one")) == ([], [], ["one"])


@pytest.mark.parametrize(("n_chars", "lengths"), [(480, [480]), (481, [480, 1, 482])])
def test_a_long_sentence_is_read_in_pieces_of_480_characters(n_chars: int, lengths: list[int]):
    assert [len(part) for part in parts_of("x" * n_chars)] == lengths


def test_single_quotes_open_like_double_ones_and_apostrophes_stay():
    assert plain_quotes("don’t say 'x' or ‘y'") == "don't say \"x' or \"y'"


def test_a_pattern_that_is_not_there_is_named():
    patterns = Patterns({"one": "a+", "several": ["b"]})
    assert patterns.one.match("aa")
    with pytest.raises(AttributeError, match="no pattern 'several'"):
        _ = patterns.several


def test_rewrites_are_made_one_after_the_other():
    assert rewritten("aac", rewrites([["a", "b"], ["bb", "d"]])) == "dc"
