"""Rows of the ``rl`` dataset of every kind: each grader, with and without images, with choices, with nulls."""

from __future__ import annotations

from typing import Any

from darkroom.pipelines.records import (
    Grader,
    ImageRef,
    PassRate,
    RLRow,
    Sample,
    SuitabilityLabel,
    ToolNecessity,
    Truth,
    TruthBox,
    VideoRef,
    Votes,
)

UGLY = "Is <image> or < image> or <image> a <video>? <|im_end|> <|image_pad|>\r\n\t 数 🦊"
N_IMAGES = {
    "choice": 1,
    "number": 2,
    "text": 1,
    "list": 0,
    "maths": 0,
    "box": 1,
    "judged": 1,
    "ugly": 1,
    "bare": 0,
    "placed": 2,
}
WRONG = {
    "choice": "A",
    "number": "13",
    "text": "GO",
    "list": "red, green",
    "maths": "2*x",
    "box": "[0, 0, 4, 4]",
    "judged": "nothing",
    "ugly": "<image> 8",
    "bare": "8",
    "placed": "left",
}
"""A wrong answer to each."""


ACCEPTED = Truth(details='{"accepted_answers": ["red", "7"]}')


def votes(yes: int, no: int) -> Votes:
    return Votes("student", (True,) * yes + (False,) * no, yes + no)


def sample(name: str, images: tuple[ImageRef, ...], question: str, answer: str, **changes: Any) -> Sample:
    fields: dict[str, Any] = {"choices": (), "truth": Truth(), "category": "OCR"} | changes
    return Sample(name, "signs", name, "CC0-1.0", images, question, answer=answer, **fields)


def row(asked: Sample, grader: Grader, *, measured: bool = True) -> RLRow:
    if not measured:
        return RLRow(asked, grader, "annotated", "unknown", None, None, None)
    return RLRow(
        asked,
        grader,
        "public",
        "medium",
        PassRate(asked.sample_id, votes(4, 4), never_solved=False),
        ToolNecessity(asked.sample_id, votes(3, 1), votes(1, 3)),
        SuitabilityLabel(asked.sample_id, True, "yes", 5, 3, 0, "judge"),
    )


def rows(images: tuple[ImageRef, ImageRef]) -> list[RLRow]:
    """Rows by name, as ``N_IMAGES`` counts their images."""
    one, two = images
    box = TruthBox("sign", 8, 8, 40, 40)
    place = Truth(boxes=(box,))
    return [
        row(sample("choice", (one,), "Which colour?", "B", choices=("A. red", "B. blue")), Grader("choice")),
        row(sample("number", (one, two), "How many cm in both?", "1,200 cm"), Grader("number", 0.05, "cm")),
        row(sample("text", (two,), "What does the sign say?", "STOP"), Grader("text"), measured=False),
        row(sample("list", (), "Name the colours.", "red, green, blue"), Grader("list")),
        row(sample("maths", (), "Expand (x+1)x.", "x^2 + x"), Grader("maths")),
        row(
            sample("box", (one,), "Where is the sign? Give its box.", "[8, 8, 40, 40]", truth=place), Grader("box", 0.5)
        ),
        row(sample("judged", (two,), "Why?", "Because the road is closed."), Grader("judged"), measured=False),
        row(sample("ugly", (one,), UGLY, "<image> 7"), Grader("text")),
        row(sample("bare", (), "What is 3 + 4?", "7"), Grader("number"), measured=False),
        row(sample("placed", (one, two), "Is <image> in <image>?", "no", truth=ACCEPTED), Grader("text")),
    ]


def about_a_video(video: VideoRef) -> RLRow:
    return row(sample("video", (), "How often?", "3", videos=(video,)), Grader("number"))


def rows_without_images() -> list[RLRow]:
    return [row(sample("bare", (), "What is 3 + 4?", "7"), Grader("number"), measured=False)]
