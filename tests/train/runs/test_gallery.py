"""Sample rollouts as a page, and as what the asset's page shows of them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from PIL import Image

from darkroom.pipelines.inspection.pages import SHOWN_INLINE
from darkroom.train.runs import gallery

CODE = "image = Image.open(image_path)\nprint(image.size)"


def rollout(step: int, sample: str, reward: float | None, **changed: Any) -> dict[str, Any]:
    return {
        "step": step,
        "sample_id": sample,
        "question": "What does the sign say? <b>|</b>",
        "gold": "Maple Ave",
        "mode": "free",
        "protocol": "thyme",
        "reward": reward,
        "parts": {"accuracy": 1.0, "format": 0.5},
        "advantage": 0.75,
        "broken": None,
        "answer": "Maple Ave",
        "rounds": [
            {
                "thought": "I crop it.",
                "code": CODE,
                "status": "ok",
                "text": "(64, 48)",
                "error": None,
                "images": ["b.png"],
            }
        ],
        "final_thought": "It says Maple Ave.",
        "question_images": ["a.png"],
        **changed,
    }


@pytest.fixture
def output(tmp_path: Path) -> Path:
    images = tmp_path / "rollouts" / "images"
    images.mkdir(parents=True)
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (64, 48), colour).save(images / name)
    of_steps = {
        1: [
            rollout(1, "s1", 0.5),
            rollout(1, "s1", 1.5),
            rollout(1, "s2", None, broken="the sandbox failed", advantage=0.0),
        ],
        10: [
            rollout(
                10,
                "s3",
                1.0,
                answer=None,
                unanswered="it goes in circles",
                rounds=[],
                final_thought="",
                question_images=[],
                advantage=-0.5,
            )
        ],
    }
    for step, rollouts in of_steps.items():
        (tmp_path / "rollouts" / f"{step:06d}.json").write_text(json.dumps(rollouts))
    return tmp_path


def test_the_newest_step_comes_first_and_the_best_rollout_of_a_question(output: Path) -> None:
    assert [(one["step"], one["sample_id"], one["reward"]) for one in gallery.read_rollouts(output)] == [
        (10, "s3", 1.0),
        (1, "s1", 1.5),
        (1, "s1", 0.5),
        (1, "s2", None),
    ]


def articles(output: Path) -> list[tuple[dict[str, list[str]], str]]:
    page = (output / "rollouts.html").read_text()
    found = re.findall(r'<template class="entry".*? data-filters="(.*?)">(.*?)</template>', page, re.DOTALL)
    return [(json.loads(html.unescape(values)), article) for values, article in found]


def test_the_page_has_every_rollout_with_reward_advantage_and_the_images_beside_it(output: Path) -> None:
    gallery.write_page(output, title="grpo")
    page, entries = (output / "rollouts.html").read_text(), articles(output)
    assert '{"a.png":"rollouts/images/a.png","b.png":"rollouts/images/b.png"}' in page
    assert [(filters["step"], filters["kind"]) for filters, _ in entries] == [
        (["step 10"], ["no answer"]),
        (["step 1"], ["answered"]),
        (["step 1"], ["answered"]),
        (["step 1"], ["broken"]),
    ]
    article = entries[1][1]
    for text in (
        "reward 1.5",
        '<span class="tag passed">advantage +0.75',
        "format 0.5",
        "I crop it.",
        "Maple Ave",
        "Image",
    ):
        assert text in article, text
    assert re.findall(r'data-image="(.*?)"', article) == ["a.png", "b.png"]
    assert "it goes in circles" in entries[0][1]
    assert "broken: the sandbox failed" in entries[3][1]


def test_a_samples_digest_is_short_and_stands_whole_among_the_facts(tmp_path: Path) -> None:
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "000001.json").write_text(json.dumps([rollout(1, "ab" * 32, 0.0, rounds=[])]))
    gallery.write_page(tmp_path, title="grpo")
    assert f"<dt>id</dt><dd>{'ab' * 32}</dd>" in articles(tmp_path)[0][1]


def test_a_malformed_rollout_is_kept_whole_and_escaped(tmp_path: Path) -> None:
    written = "<code>" + "</script><script>x</script> " * 500 + "the end"
    malformed = rollout(1, "s1", 0.0, answer=None, unanswered="malformed_turn: '…'", written=written, rounds=[])
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "000001.json").write_text(json.dumps([malformed]))
    gallery.write_page(tmp_path, title="grpo")
    assert str(escape(written)) in articles(tmp_path)[0][1]
    page = (tmp_path / "rollouts.html").read_text()
    assert page.count("<script") == page.count("</script>") == 2
    assert "<b>" not in page


def test_the_page_asks_no_network(output: Path) -> None:
    gallery.write_page(output, title="grpo")
    page = (output / "rollouts.html").read_text()
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!rollouts/|#)', page)


def test_without_rollouts_there_is_no_page(tmp_path: Path) -> None:
    gallery.write_page(tmp_path, title="sft")
    assert list(tmp_path.iterdir()) == []


def test_examples_are_short_enough_to_be_shown_and_of_different_questions(output: Path) -> None:
    shown = gallery.rollout_examples(gallery.read_rollouts(output), output)
    assert len(shown) == 3
    assert all(len(line) < SHOWN_INLINE for line in shown)
    assert "**no answer** · reward 1" in shown[0]
    assert shown[1].startswith("![](data:image/webp;base64,")
    assert "broken: the sandbox failed" in shown[2]


def test_the_table_has_a_row_for_each_and_its_cells_hold(output: Path) -> None:
    head, rule, *rows = gallery.rollout_table(gallery.read_rollouts(output), output).splitlines()
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in (head, rule, *rows)} == {9}
    assert "accuracy 1, format 0.5" in rows[0]
