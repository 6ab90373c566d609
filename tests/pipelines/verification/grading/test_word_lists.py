"""Word lists: parts are filled in, and every file that a module reads can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.pipelines.verification.grading.word_lists import any_of, read_words


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
