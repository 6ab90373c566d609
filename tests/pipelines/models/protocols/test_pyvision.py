"""PyVision's protocol: what a policy wrote is taken apart as it was meant, or refused."""

from __future__ import annotations

import pytest

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Malformed, ParsedTurn, PyVision
from darkroom.pipelines.records import ImageRef, Observation, VideoRef
from darkroom.pipelines.records.digest import digest

PYVISION = PyVision()
IMAGE = ImageRef("a" * 64, 2400, 1600, "RGB", "PNG")
VIDEO = VideoRef("b" * 64, "mp4", 1280, 720, 300, 29.97)
ROUND = "Too small.\n<code>\nprint(1)\n</code>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither <code> nor <answer>"),
        ("I wonder", "neither <code> nor <answer>"),
        ("So \\boxed{42}", "neither <code> nor <answer>"),
        ("<answer>\n\\boxed{42}\n", "neither <code> nor <answer>"),
        ("<answer>1</answer><answer>2</answer>", "2 <answer> blocks"),
        ("<answer> \n</answer>", "<answer> is empty"),
        ("<answer>\\boxed{ }</answer>", "answer is empty"),
        ("<answer>\\boxed{1} or \\boxed{2}</answer>", "2 different boxed answers"),
        ("<answer>\\boxed{1</answer>", "is never closed"),
        (f"<answer>42</answer>{ROUND}", "answers before its code"),
        (f"<answer>42{ROUND}", "<answer> without its partner"),
        (f"a</CODE>{ROUND}", "</CODE> without its partner"),
        ("a<interpreter>7</interpreter>b<answer>7</answer>", "marker of its own"),
        ("a</Interpreter>" + ROUND, "marker of its own"),
        ("a<code></code>", "code is empty"),
        ("a<code>\n```python\n\n```\n</code>", "code is empty"),
        ("a<code>\n```bash\nls\n```\n</code>", "a fence that is not one ```python block"),
        ("a<code>\n```python\nprint(1)\n</code>", "a fence that is not one ```python block"),
    ],
)
def test_a_turn_that_is_neither_code_nor_answer_is_malformed(text, said):
    parsed = PYVISION.parse(text)
    assert isinstance(parsed, Malformed)
    assert said in parsed.evidence


@pytest.mark.parametrize(
    "text",
    [
        ROUND,
        ROUND.removesuffix("</code>"),  # a stop string that was cut off
        ROUND.removesuffix("\n</code>"),
        ROUND.replace("code", "Code"),
        ROUND.replace("\n", "\r\n"),
        "Too small.<code>print(1)</code>",
        "Too small.\n<code>\n```python\nprint(1)\n```\n</code>",
        "Too small.\n<code>```py\nprint(1)```</code>",
        "Too small.\n<code>\n```Python3\nprint(1)\n```\n",
        "Too small.\n<code>\n```\n```python\nprint(1)\n```\n```\n</code>",
        f"{ROUND}\n<interpreter>\n1\n</interpreter>\nIt is 1.\n<answer>\n\\boxed{{1}}\n</answer>",
        f"{ROUND}\n{ROUND}",
    ],
)
def test_code_counts_up_to_its_first_end(text):
    assert PYVISION.parse(text) == ParsedTurn("Too small.", code="print(1)")


@pytest.mark.parametrize(
    "text",
    [
        "It says 42.\n<answer>\n\\boxed{42}\n</answer>",
        "It says 42.<answer>\\boxed{42}</answer>",
        "It says 42.\r\n<ANSWER>\r\n\\boxed{42}\r\n</ANSWER>\r\n",
        "It says 42.\n<answer>\n42\n</answer>",
        "It says 42.\n<answer>\nThe answer is \\boxed {42}.\n</answer>",
        "It says 42.\n<answer>\\boxed{42} \\boxed{42}</answer>",
        "It says 42.\n<answer>42</answer>\nI hope so.",
    ],
)
def test_an_answer_ends_the_rollout(text):
    assert PYVISION.parse(text) == ParsedTurn("It says 42.", answer="42")


def test_what_is_written_is_what_the_paper_shows():
    assert PYVISION.write_round("Too small.", "print(1)", first=True) == ROUND
    assert PYVISION.write_answer("", "42", first=False) == "<answer>\n\\boxed{42}\n</answer>"


@pytest.mark.parametrize("answer", [":}", "{", "\\"])
def test_an_answer_that_no_box_can_hold_is_written_without_one(answer):
    text = PYVISION.write_answer("So.", answer, first=True)
    assert text == f"So.\n<answer>\n{answer}\n</answer>"


def test_an_observation_numbers_its_figures():
    wrapped = PYVISION.wrap(Observation("error", "7\n", images=(IMAGE, IMAGE), error="NameError: x (line 2)"))
    assert wrapped == (
        Text("<interpreter>\n7\nNameError: x (line 2)\nfigure 1:\n"),
        ImagePart(IMAGE),
        Text("\nfigure 2:\n"),
        ImagePart(IMAGE),
        Text("\n</interpreter>"),
    )


def test_an_observation_of_nothing_is_its_markers():
    assert PYVISION.wrap(Observation("ok", " \n")) == (Text("<interpreter>\n</interpreter>"),)


def test_the_opening_names_every_image_by_its_variable():
    system, user = PYVISION.opening("What does it say?", (IMAGE, IMAGE))
    assert (system.role, user.role) == ("system", "user")
    assert user.parts == (
        Text("image_clue_0, 2400x1600 pixels:\n"),
        ImagePart(IMAGE),
        Text("\nimage_clue_1, 2400x1600 pixels:\n"),
        ImagePart(IMAGE),
        Text("\nWhat does it say?"),
    )


def test_a_video_is_described_and_not_shown():
    system, user = PYVISION.opening("Who wins?", (), (VIDEO,))
    described = "video_clue_0: 300 frames, 29.97 frames per second, 10.0 seconds, 1280x720 pixels"
    assert user.parts == (Text(f"Videos:\n{described}\n\nWho wins?"),)
    assert "video_clue_0.get_batch" in system.parts[0].text
    assert "image_clue_0" not in system.parts[0].text


def test_a_video_of_unknown_rate_has_no_length():
    (text,) = PYVISION.opening("Who wins?", (), (VideoRef("b" * 64, "gif", 64, 48, 9, 0.0),))[1].parts
    assert "9 frames, 64x48 pixels" in text.text


def test_a_mode_that_it_lacks_is_named():
    with pytest.raises(ValueError, match="pyvision has the modes free, no_libraries, forbidden; found 'forced'"):
        PYVISION.opening("Who wins?", (), mode="forced")


def test_the_rule_against_libraries_is_a_prompt_of_its_own():
    systems = {mode: str(PYVISION.opening("Q?", (IMAGE,), (VIDEO,), mode=mode)[0].parts) for mode in PYVISION.modes}
    assert "Do not use libraries for image processing such as cv2 or PIL" in systems["no_libraries"]
    assert not any("cv2" in systems[mode] for mode in ("free", "forbidden"))
    assert "<code>" not in systems["forbidden"]
    assert "You cannot see the videos." in systems["free"]


def test_an_image_is_a_frame_only_of_a_video_that_is_there():
    frame = ImageRef("c" * 64, 1280, 720, "RGB", "PNG", parent=VIDEO.sha256, made_by="frame 30")
    texts = [part.text for part in PYVISION.opening("Q?", (frame, IMAGE), (VIDEO,))[1].parts if isinstance(part, Text)]
    assert texts[0] == "image_clue_0, frame 30 of video_clue_0, 1.0 seconds, 1280x720 pixels:\n"
    assert "image_clue_1, 2400x1600 pixels:" in texts[1]
    assert "but for the frames that are shown" in str(PYVISION.opening("Q?", (frame,), (VIDEO,))[0].parts)
    assert PYVISION.opening("Q?", (frame,), ())[1].parts[0].text.startswith("image_clue_0, 1280x720")


@pytest.mark.parametrize(
    ("has_images", "videos", "expected"),
    [
        (True, "", "4123cf9a6d7a284233b1ec47d300eab8204b0f75e4e2ed851d81386e42af87e0"),
        (False, "one, 10 s", "ee66dfd46a3af458d49ee88d41055348aa98e08ec3653ad275cd6057fd09e227"),
        (True, "one, 10 s", "de9ef03d1bc5f869c18d486513c05f027c7315c5e1c8f4a3d09f0f5225360419"),
    ],
)
def test_the_free_prompt_is_the_one_that_checkpoints_were_trained_with(has_images, videos, expected):
    """Version 1 has gained slots for other modes since; without them it reads as it did, to the byte."""
    slots = {"question": "What?", "has_images": has_images, "videos": videos, "has_frames": False, "mode": "free"}
    assert digest(list(bundled_prompt("pyvision").render(**slots))) == expected
