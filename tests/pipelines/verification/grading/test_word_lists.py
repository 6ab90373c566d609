"""Word lists: parts are filled in, and every file that a module reads can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.pipelines.verification.grading.word_lists import NEAR, WordModel, any_of, read_words


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


@pytest.mark.parametrize(("first", "name"), [("7", "number"), ("oak", "tree")])
def test_words_are_near_up_to_so_many_between_them(tmp_path: Path, first: str, name: str):
    module = tmp_path / "words.py"
    module.with_name("near_classes.toml").write_text("tree = 'oak'\nsign = 'sign'\n[values]\nnumber = '\\d+'\n")
    module.with_name("near_weights.json").write_text("{}")
    model = WordModel(str(module), "near")
    near, far = (f"{first} {'and ' * n}sign" for n in (NEAR, NEAR + 1))
    pairs = {f"{name}>sign", f"{name}~sign"}
    assert model.features(near) & pairs == pairs
    assert model.features(far) & pairs == {f"{name}>sign"}
