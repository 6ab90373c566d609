"""What is trained, token by token: every model type, way to split text, layout, protocol and loss policy."""

import io
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from darkroom.pipelines.records import ImageRef, to_row
from darkroom.train.examples.encoding import IGNORED, RowReader
from darkroom.train.examples.loss_mask import mask_of, page, print_mask
from darkroom.train.models.loading import load_processor, template
from darkroom.train.tiny import ARCHITECTURES, LINE_SPLIT, build
from tests.matrices import first_quickly
from tests.train.scripted import segments

PAD = "<|image_pad|>"
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2.5 splits text before merging: words, single digits, punctuation with the newlines that follow it."""
OBSERVATION = {
    "thyme": r"<sandbox_output>.*?</sandbox_output>\n?",
    "pyvision": r"<interpreter>.*?</interpreter>\n?",
    "tool_call": r"<tool_response>.*?</tool_response>\n?",
}
END = {
    "thyme": "Done.</think>\n<answer>7</answer>",
    "pyvision": "Done.\n<answer>\n\\boxed{7}\n</answer>",
    "tool_call": "Done.\n\\boxed{7}",
}
CALL = {"thyme": "<code>", "pyvision": "<code>", "tool_call": "<tool_call>"}


def row_of(protocol, n_rounds, loss_policy, n_question_images):
    """A row with pixels; its second and third round show an image, its first prints."""
    shown = [[], [n_question_images], [n_question_images + 1]][:n_rounds]
    n_images = n_question_images + max(0, n_rounds - 1)
    return {
        "trajectory_id": f"{protocol}{n_rounds}",
        "family": "crop",
        "protocol": protocol,
        "mode": "free",
        "question": "What is 3 + 4?",
        "choices": [],
        "images": [Image.new("RGB", (64 + 32 * n, 64), (9, 9, 9)) for n in range(n_images)],
        "image_refs": [to_row(ImageRef(str(n), 64 + 32 * n, 64, "RGB", "PNG")) for n in range(n_images)],
        "video_refs": [],
        "n_question_images": n_question_images,
        "rounds": [
            {
                "thought": f"I look {n}.",
                "code": f"print({n})",
                "observation": {"status": "ok", "text": f"seen: {n}", "images": images, "error": None},
            }
            for n, images in enumerate(shown)
        ],
        "final_thought": "Done.",
        "answer": "7",
        "loss_policy": loss_policy,
    }


@pytest.fixture(scope="module")
def processors(tmp_path_factory):
    """By model type and way to split text: by lines, or as Qwen does."""
    found = {}
    for arch in ARCHITECTURES:
        for name, split in {"lines": LINE_SPLIT, "words": QWEN_SPLIT}.items():
            folder = tmp_path_factory.mktemp("reader") / name
            build(folder, texts=["What is 3 + 4? I look 0. seen: 1 Done."], split=split, arch=arch)
            found[arch, name] = load_processor(folder)
    return found


def segments_of(row, reader):
    batch = reader.read([row])
    return segments(reader.processor.tokenizer, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def expected_characters(text, row, layout):
    """For each character of a rendered row whether it is trained, from nothing but the text."""
    turns = list(re.finditer(r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)", text, re.DOTALL))
    own = [False] * len(text)
    for turn in turns:
        own[turn.start(1) : turn.end(1)] = [True] * len(turn[1])
    for seen in re.finditer(OBSERVATION[row["protocol"]], text, re.DOTALL):
        if seen.start() > turns[0].start():  # the prompt may describe the markers
            own[seen.start() : seen.end()] = [False] * len(seen[0])
            last_seen = seen.end()
    if row["loss_policy"] == "last_round" and len(row["rounds"]) >= 2:
        own[:last_seen] = [False] * last_seen
    return own


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("split", first_quickly(["lines", "words"]))
@pytest.mark.parametrize("layout", ["turns", "inline"])
@pytest.mark.parametrize("protocol", ["thyme", "pyvision", "tool_call"])
def test_every_token_is_trained_or_not_as_the_text_alone_says(processors, arch, split, layout, protocol):
    reader = RowReader(processors[arch, split], template("sft", arch), layout)
    decode = reader.processor.tokenizer.decode
    for n_rounds in range(4):
        for loss_policy in ("last_round", "all_rounds"):
            for n_question_images in (0, 1):
                row = row_of(protocol, n_rounds, loss_policy, n_question_images)
                batch = reader.read([row])
                ids, labels = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
                own = iter(expected_characters(decode(ids), row, layout))
                for token, label in zip(ids, labels, strict=True):
                    characters = {next(own) for _ in decode([token])}
                    assert characters == {label != IGNORED}, (row["trajectory_id"], decode([token]))
                    assert label in (token, IGNORED)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("layout", ["turns", "inline"])
@pytest.mark.parametrize("protocol", ["thyme", "pyvision", "tool_call"])
def test_a_batch_is_read_as_its_rows_are(processors, arch, layout, protocol):
    reader = RowReader(processors[arch, "lines"], template("sft", arch), layout)
    rows = [row_of(protocol, n_rounds, "last_round", n_rounds % 2) for n_rounds in range(4)]
    batch = reader.read(rows)
    for ids, labels, row in zip(batch["input_ids"], batch["labels"], rows, strict=True):
        alone = reader.read([row])
        n_tokens = alone["input_ids"].shape[1]
        assert ids[:n_tokens].equal(alone["input_ids"][0])
        assert labels[:n_tokens].equal(alone["labels"][0])
        assert labels[n_tokens:].eq(IGNORED).all()


@pytest.mark.parametrize("layout", ["turns", "inline"])
@pytest.mark.parametrize("protocol", ["thyme", "pyvision", "tool_call"])
def test_with_observations_trained_all_after_the_question_is_but_images(processors, layout, protocol):
    reader = RowReader(processors["qwen3_vl", "words"], template("sft", "qwen3_vl"), layout, train_observations=True)
    for loss_policy in ("last_round", "all_rounds"):
        before, *after = segments_of(row_of(protocol, 3, loss_policy, 1), reader)
        assert before.text.endswith("<|im_start|>assistant\n")
        assert not before.trained
        assert [s.text for s in after if not s.trained] == [f"<|vision_start|>{PAD}×{n}<|vision_end|>" for n in (6, 8)]
        trained = "".join(s.text for s in after if s.trained)
        assert trained.count("seen: ") == trained.count(CALL[protocol]) == 3
        assert trained.endswith(f"{END[protocol]}<|im_end|>\n")


@pytest.mark.parametrize("loss_policy", ["last_round", "all_rounds"])
def test_another_loss_policy_trains_as_rows_that_have_it(processors, loss_policy):
    plain = RowReader(processors["qwen3_vl", "words"], template("sft", "qwen3_vl"))
    other = replace(plain, loss_policy=loss_policy)
    rows = [row_of("thyme", 2, policy, 1) for policy in ("last_round", "all_rounds")]
    assert segments_of(rows[0], other) == segments_of(rows[1], other)
    assert segments_of(rows[0], other) == segments_of(row_of("thyme", 2, loss_policy, 1), plain)
    assert mask_of(rows[0], other, Path("tiny")).row["loss_policy"] == loss_policy


def test_every_token_is_in_one_piece_that_is_text(processors):
    reader = RowReader(processors["qwen2_5_vl", "words"], template("sft", "qwen2_5_vl"))
    row = row_of("thyme", 1, "all_rounds", 1) | {"final_thought": "Größe 数 🦊."}
    mask = mask_of(row, reader, Path("tiny"))
    pieces = [piece for run in mask.runs for piece in run.pieces]
    assert [token for piece in pieces for token in piece.ids] == list(mask.ids)
    assert "\ufffd" not in "".join(piece.text for piece in pieces)
    assert any(len(piece.ids) > 1 for piece in pieces)
    assert sum(len(piece.ids) for piece in pieces if piece.kind == "trained") == mask.n_trained
    assert sum(piece.kind == "image" for piece in pieces) == mask.n_of_images


def test_a_page_shows_every_token_and_the_images_where_their_tokens_are(processors):
    reader = RowReader(processors["qwen3_vl", "words"], template("sft", "qwen3_vl"), "inline")
    row = row_of("pyvision", 3, "last_round", 1) | {"question": "Is 3 < 4 & 5 > 4?"}
    mask = mask_of(row, reader, Path("tiny"))
    html = page(mask)
    assert "<b>" not in html
    assert html.count("data:image/png;base64,") == len(row["images"]) == 3
    assert html.count("<span title=") == sum(len(run.pieces) for run in mask.runs) - mask.n_of_images
    shown = unescape(re.sub(r"<[^>]*>", "", html.partition("<pre>")[2]))
    assert "Is 3 < 4 & 5 > 4?" in shown
    assert re.findall(r"×\d+", shown) == ["×4", "×6", "×8"]


def test_where_there_are_no_colours_trained_words_stand_in_brackets(processors):
    reader = RowReader(processors["qwen2_5_vl", "lines"], template("sft", "qwen2_5_vl"))
    mask = mask_of(row_of("thyme", 2, "last_round", 1), reader, Path("tiny"))
    plain, coloured = io.StringIO(), io.StringIO()
    print_mask(mask, Console(file=plain))
    print_mask(mask, Console(file=coloured, force_terminal=True, no_color=False, color_system="truecolor"))
    assert f"{len(mask.ids)} tokens: ⟦{mask.n_trained} trained" in plain.getvalue()
    assert "⟦Done.</think>\n<answer>7</answer><|im_end|>⟧" in plain.getvalue()
    assert "⟦" not in coloured.getvalue()
    assert "\x1b[1;32mDone.</think>" in coloured.getvalue()


PROGRAMS = {"t0": 1, "t1": 1, "t2": 0, "t3": 2, "t4": 0, "t5": 0, "t6": 1, "t7": 1}
"""How many programs of each row are trained: all of them, unless two or more with the policy last_round."""


@pytest.fixture(params=["turns", "inline"])
def reader(request, model, tinies):
    return RowReader(load_processor(model), template("sft", model.name), request.param)


def trained(row, reader):
    return "".join(s.text for s in segments_of(row, reader) if s.trained)


def test_the_loss_policy_decides_how_many_programs_of_a_shipped_row_are_trained(rows, reader):
    assert {row["trajectory_id"]: trained(row, reader).count("<code>") for row in rows} == PROGRAMS


def test_every_image_is_one_run_of_image_tokens(rows, reader):
    for row in rows:
        text = "".join(s.text for s in segments_of(row, reader))
        assert text.count(f"{PAD}×") == len(row["images"])


def test_special_tokens_in_a_question_are_read_as_text(rows, reader):
    text = "".join(s.text for s in segments_of(rows[6], reader))
    assert "How wide is <image> or <image> <| image_pad|> in pixels?<| im_end|>" in text
