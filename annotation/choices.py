"""What people choose from, in one place: the forms show the titles, submissions hold the names."""

from __future__ import annotations

from typing import NamedTuple


class Choice(NamedTuple):
    """One thing to choose: its name in records, its title and hint on the page."""

    name: str
    title: str
    hint: str = ""


CATEGORIES = (
    Choice("ocr", "OCR", "Read a text at a place"),
    Choice("attribute", "Attribute", "Colour, shape or material of one object"),
    Choice("location", "Location", "Where an object is"),
    Choice("quantity", "Quantity", "How many objects of one kind; box all of them"),
    Choice("object", "Object recognition", "What the object at a place is"),
    Choice("chart", "Chart understanding", "A value, an extreme or a trend in a chart"),
)
"""Thyme, appendix D."""
VERDICTS = (
    Choice("accept", "Accept", "Everything is right"),
    Choice("fix", "Fix", "Correct boxes or fields below"),
    Choice("reject", "Reject", "Goes back to be written anew"),
)
REASONS = (
    Choice("wrong_answer", "Wrong answer"),
    Choice("ambiguous", "Ambiguous question"),
    Choice("too_large", "Object too large"),
    Choice("bad_box", "Box misses the object"),
    Choice("wrong_category", "Wrong category"),
    Choice("too_easy", "Answerable without looking closer"),
    Choice("bad_image", "Unsuitable image"),
)
REVIEW_REASONS = (
    Choice("wrong_answer", "Wrong answer"),
    Choice("wrong_reasoning", "Reasoning does not hold"),
    Choice("useless_operation", "Image operation does not help"),
    Choice("code_and_text_differ", "Text and code disagree"),
    Choice("leaks", "Knows what it cannot have seen"),
    Choice("bad_question", "Question or image unsuitable"),
)
"""Why an expert rejects a trajectory."""
MATCHES = (
    Choice("match", "They match", "The image answers the question, and the answer is right"),
    Choice("mismatch", "They do not match", "Another image, a wrong answer, or nothing to see of it"),
    Choice("unsure", "Cannot tell", "Needs knowledge that is not in the image"),
)
"""Whether question and image of a public row belong together."""
SUITABILITIES = (
    Choice("yes", "A drawing helps", "Drawing the situation shows what the words hide"),
    Choice("no", "No use for one", "Calculating or looking up is all there is to it"),
    Choice("unsure", "Cannot tell"),
)
"""Whether a drawing would help to solve a maths problem."""


def names(choices: tuple[Choice, ...]) -> tuple[str, ...]:
    """The names alone."""
    return tuple(choice.name for choice in choices)
