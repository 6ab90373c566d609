"""Rows as pages: a trajectory for experts, with each thought, its program and what came out; a problem alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pipelines.records import ImageRef, Round, Sample, Trajectory

STYLE = (
    "<style>.tr{font:15px/1.5 sans-serif;max-width:900px}.tr h3{margin:18px 0 4px;font-size:15px}"
    ".tr pre{background:#f4f5f7;padding:10px;border-radius:6px;overflow-x:auto;white-space:pre-wrap}"
    ".tr pre{font-family:monospace;font-size:13px}"
    ".tr img{max-width:100%;max-height:520px;border:1px solid #d0d4da;border-radius:4px;margin:4px 8px 4px 0}"
    ".tr .out{border-left:4px solid #9db4d0;padding-left:10px}.tr .q{font-size:17px;font-weight:600}</style>"
)


def problem_page(sample: Sample) -> str:
    """A problem without its answer: question, choices, images."""
    shown = [f'<p class="q">{_text(sample.question)}</p>', *(f"<p>{_text(choice)}</p>" for choice in sample.choices)]
    return "".join([STYLE, '<div class="tr">', *shown, _images(sample.images), "</div>"])


def trajectory_page(sample: Sample, trajectory: Trajectory) -> str:
    """HTML for Label Studio's ``HyperText``; every word of the row is escaped."""
    parts = [
        STYLE,
        '<div class="tr">',
        f'<p class="q">{_text(sample.question)}</p>',
        *(f"<p>{_text(choice)}</p>" for choice in sample.choices),
        _images(trajectory.images),
    ]
    for number, turn in enumerate(trajectory.rounds, 1):
        parts += [f"<h3>Round {number}</h3>", *_round(turn)]
    parts += ["<h3>Conclusion</h3>", f"<p>{_text(trajectory.final_thought)}</p>"]
    parts += [f"<p><b>Answer: {_text(trajectory.answer)}</b> (expected: {_text(sample.answer)})</p>", "</div>"]
    return "".join(parts)


def _round(turn: Round) -> list[str]:
    seen = turn.observation
    said = f"<pre>{escape(seen.text)}</pre>" if seen.text else ""
    error = f"<pre>{escape(seen.error)}</pre>" if seen.error else ""
    return [
        f"<p>{_text(turn.thought)}</p>",
        f"<pre>{escape(turn.code)}</pre>",
        f'<div class="out"><p>{escape(seen.status)}</p>{said}{error}{_images(seen.images)}</div>',
    ]


def _images(images: Sequence[ImageRef]) -> str:
    return "".join(f'<img src="/darkroom/images/{image.sha256}" alt="image {n}">' for n, image in enumerate(images))


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
