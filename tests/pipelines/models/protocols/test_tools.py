"""The crop tool of ``tool_call`` in the real sandbox, and how rollouts set it up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from darkroom.pipelines.generation.rollout import Rollout, parse_turn, rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.policies import Completion, CompletionRequest
from darkroom.pipelines.models.protocols import PROTOCOLS, ToolCall
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Observation, Sample, Truth
from darkroom.pipelines.records.geometry import box_from_fractions
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.sandbox import SandboxPool, Session

TOOL_CALL = ToolCall()


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool() as pool:
        yield pool


@pytest.fixture
def images(make_image):
    return [make_image(1, 200, 120), make_image(2, 90, 70)]


@pytest.fixture
def session(pool, images) -> Iterator[Session]:
    with pool.group(images=images) as group, group.session(seed=1) as session:
        assert session.run(TOOL_CALL.setup).ok
        yield session


def crop(session, *bbox, target=1):
    return session.run(f"crop_image_normalized(bbox_2d={list(bbox)!r}, target_image={target!r})")


@pytest.mark.parametrize("bbox", [(0.1, 0.25, 0.3, 0.55), (0.101, 0.2, 0.1011, 0.9), (0.7, 0, 1, 0.1), (0, 0, 1, 1)])
def test_a_crop_shows_the_pixels_that_its_box_touches(session, images, bbox):
    seen = crop(session, *bbox)
    box = box_from_fractions(bbox, 200, 120)
    assert seen.status == "ok"
    assert np.array_equal(np.asarray(seen.images[0].pixels), np.asarray(images[0].crop(box)))
    assert seen.text == f"image 3: {box.width}x{box.height} pixels\n"
    assert seen.edits == ()


def test_images_are_counted_on_as_they_are_shown(session, images):
    first = crop(session, 0, 0, 0.5, 0.5, target=2).images[0].pixels
    second = crop(session, 0.2, 0.2, 0.8, 0.8, target=3).images[0].pixels
    assert np.array_equal(np.asarray(first), np.asarray(images[1].crop((0, 0, 45, 35))))
    assert np.array_equal(np.asarray(second), np.asarray(first.crop(box_from_fractions((0.2, 0.2, 0.8, 0.8), 45, 35))))


def test_figures_are_counted_too(session):
    figure = session.run("plt.figure(figsize=(2, 1), dpi=100); plt.plot([1, 2]); plt.show()").images[0].pixels
    shown = session.run("display(Image.new('RGB', (8, 6), 'red')); Image.new('L', (4, 2)).show()")
    assert [image.pixels.size for image in shown.images] == [(8, 6), (4, 2)]
    again = crop(session, 0, 0, 1, 1, target=3)
    assert np.array_equal(np.asarray(again.images[0].pixels), np.asarray(figure))
    assert crop(session, 0, 0, 1, 1, target=5).text == "image 7: 4x2 pixels\n"


@pytest.mark.parametrize(
    ("bbox", "target", "said"),
    [
        ((0.5, 0.1, 0.2, 0.4), 1, "bbox_2d [0.5, 0.1, 0.2, 0.4]: left must be less than right"),
        ((0.1, 0.4, 0.2, 0.4), 1, "top less than bottom"),
        ((0.1, 0.1, 1.2, 0.4), 1, "bbox_2d [0.1, 0.1, 1.2, 0.4]: every side lies between 0 and 1"),
        ((-0.1, 0.1, 0.2, 0.4), 1, "every side lies between 0 and 1"),
        ((10, 20, 30, 40), 1, "every side lies between 0 and 1"),
        ((0.5, 0.1, 0.5 + 1e-12, 0.4), 1, "covers no pixel of an image of 200x120"),
        ((0, 0, 1, 1), 0, "target_image 0: there are images 1 to 2"),
        ((0, 0, 1, 1), 3, "target_image 3: there are images 1 to 2"),
    ],
)
def test_a_box_that_is_none_is_an_error_that_names_it(session, bbox, target, said):
    seen = crop(session, *bbox, target=target)
    assert (seen.status, seen.images) == ("error", ())
    assert said in seen.error
    assert crop(session, 0, 0, 0.5, 0.5).text == "image 3: 100x60 pixels\n"


def test_without_images_there_is_nothing_to_crop(pool):
    with pool.group(images=[]) as group, group.session(seed=1) as session:
        assert session.run(TOOL_CALL.setup).ok
        assert "target_image 1: there is no image" in crop(session, 0, 0, 1, 1).error
        assert session.run("print(6 * 7)").text == "42\n"


def test_the_setup_leaves_one_name_behind(session):
    names = session.run("print([name for name in globals() if 'crop' in name])").text
    assert names == "['crop_image_normalized']\n"


def made_by(script: list[str], store: ImageStore, folder: Path, picture) -> tuple[Rollout, list[dict]]:
    """The rollout of a policy that writes the script, and the programs that the ledger knows."""

    class Scripted:
        async def write(self, turn: CompletionRequest) -> Completion:
            return Completion(script[len(turn.rounds)])

    image = store.add_pixels(picture(1, 200, 120))
    sample = Sample("s", "signs", "1", "CC0-1.0", (image,), "What?", (), "42", Truth(), "OCR")
    task = Task("t", "zoom", sample, (image,), {}, TOOL_CALL.opening("What?", (image,)), 7)

    async def run() -> Rollout:
        with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
            async with Sandboxes(store, ledger).session((image,), seed=7) as session:
                programs.append(session)
                return await rollout(task, policy=Scripted(), protocol=TOOL_CALL, session=session, max_rounds=4)

    programs: list = []
    return asyncio.run(run()), programs[0]._programs


CALLS = [
    TOOL_CALL.write_round(
        "I zoom in.", f"crop_image_normalized(bbox_2d=[0, 0, 0.5, 1], target_image={target})", first=True
    )
    for target in (1, 2)
]


def test_a_rollout_sets_up_its_session_once_and_off_the_record(store, tmp_path, make_image):
    made, programs = made_by([*CALLS, "So \\boxed{42}"], store, tmp_path, make_image)
    assert (made.error, made.answer) == (None, "42")
    sizes = [(image.width, image.height) for seen in made.rounds for image in seen.observation.images]
    assert sizes == [(100, 120), (50, 120)]
    assert programs == [TOOL_CALL.setup, *(seen.code for seen in made.rounds)]


def test_a_rollout_without_a_call_runs_nothing(store, tmp_path, make_image):
    made, programs = made_by(["So \\boxed{42}"], store, tmp_path, make_image)
    assert (made.answer, programs) == ("42", [])


def test_a_malformed_turn_ends_its_rollout_with_the_evidence(store, tmp_path, make_image):
    unread = "<tool_call>\nlook closer\n</tool_call>"
    made, _ = made_by([CALLS[0], unread], store, tmp_path, make_image)
    assert len(made.rounds) == 1
    assert made.error.reason is Reason.MALFORMED_TURN
    assert "not JSON" in made.error.evidence


def test_a_call_in_another_spelling_runs_and_stands_among_the_edits(store, tmp_path, make_image):
    written = CALLS[0].replace('"arguments"', '"parameters"')
    made, _ = made_by([written, "So \\boxed{42}"], store, tmp_path, make_image)
    plain, _ = made_by([CALLS[0], "So \\boxed{42}"], store, tmp_path, make_image)
    assert made.rounds[0].code == plain.rounds[0].code
    (edit,) = made.rounds[0].observation.edits
    assert (edit.kind, edit.before in written) == ("tool call: parameters", True)
    assert [turn.observation.text for turn in made.rounds] == [turn.observation.text for turn in plain.rounds]


class Broken:
    """A session that runs out of memory."""

    async def run(self, code: str) -> Observation:
        return Observation("memory", "", error="MemoryError")


def test_a_setup_that_fails_is_the_sandboxs_error():
    task = Task("t", "zoom", Sample("s", "signs", "1", "", (), "What?", (), "42", Truth(), ""), (), {}, (), 7)
    draft = Completion(CALLS[0])
    made = asyncio.run(rollout(task, policy=None, protocol=TOOL_CALL, session=Broken(), max_rounds=4, opening=draft))
    assert made.error.reason is Reason.SANDBOX_FAILED
    assert made.error.evidence == "tool_call's setup: memory: MemoryError"


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_code_that_the_token_limit_cut_off_is_not_run(protocol):
    text = protocol.write_round("I look.", "print(1)", first=True)
    cut = text[: text.rindex("</")]
    assert parse_turn(Completion(cut), protocol).code == "print(1)"  # a stop string did it
    with pytest.raises(RowError, match="its code has no end") as caught:
        parse_turn(Completion(cut, finished=False), protocol)
    assert caught.value.reason is Reason.TRUNCATED_TURN
