from __future__ import annotations

from darkroom.pipelines.records.samples import numbered_marks, own_question, with_context

TURNS = ["What is this?", "A map.", "Of which town?", "Of Bern.", "How old is it?"]


def test_a_question_stands_after_the_turns_before_it() -> None:
    asked = with_context(TURNS)
    assert asked.startswith("Earlier turns:\nUser: What is this?\nAssistant: A map.\nUser: Of which town?\n")
    assert asked.endswith("\n\nThe question:\nHow old is it?")
    assert own_question(asked) == "How old is it?"
    assert with_context(TURNS[:1]) == own_question("What is this?") == "What is this?"


def test_a_question_that_quotes_the_words_of_a_context_is_whole() -> None:
    quoting = "Read on.\n\nThe question:\nWho?"
    assert own_question(quoting) == quoting


def test_marks_are_numbered_over_all_texts() -> None:
    assert numbered_marks(["<image> or <image>?", "<image>"]) == ["[image 1] or [image 2]?", "[image 3]"]
