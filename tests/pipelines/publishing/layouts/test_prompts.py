"""Every layout of prompts holds every kind of row: images, the protocol's words, graders, what was measured."""

from __future__ import annotations

import copy
import io
import json
import re
from pathlib import Path

import datasets as hf
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.publishing.layouts import PROMPT_LAYOUTS, LayoutError, Unfit, Unrenderable, layout_of
from darkroom.pipelines.publishing.layouts.base import FACTS, ExportRow, prompt
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.layouts.record_writer import REJECTS, placeholders, verify, verify_written
from darkroom.pipelines.publishing.layouts.turns import unescaped
from darkroom.pipelines.records import Grader, from_row
from darkroom.pipelines.records.rl import shipped_grader
from darkroom.pipelines.storage.images import ImageStore
from tests.pipelines.publishing.layouts import rl_rows
from tests.pipelines.publishing.layouts.rl_rows import N_IMAGES
from tests.pipelines.publishing.layouts.test_text import TEXTS
from tests.pipelines.publishing.shipping import write_prompts

EVERY = pytest.mark.parametrize("name", PROMPT_LAYOUTS)
BY_ONE_TEXT = ("easyr1", "openrlhf_rl")


@pytest.fixture(scope="session")
def exported(prompts, tmp_path_factory):
    """The records of a layout by sample, as they are read back without Darkroom; made once."""
    made = {}

    def read(name, protocol="thyme", mode=None):
        if (name, protocol, mode) not in made:
            found = find_source("rl", Path(), split="train", prompts=prompts).in_protocol(protocol, mode)
            folder = export(found, PROMPT_LAYOUTS[name], tmp_path_factory.mktemp("out") / name).folder
            rows = pq.read_table(folder / "train.parquet").to_pylist()
            made[name, protocol, mode] = {key(row): row for row in rows}
        return made[name, protocol, mode]

    return read


def key(record):
    return record.get("sample_id") or record["extra_info"]["sample_id"]


def said(name, record):
    """Role and text of every message, images as ``<image>``."""
    found = record[PROMPT_LAYOUTS[name].messages]
    for message in [{"role": "user", "content": found}] if isinstance(found, str) else found:
        content = message["content"]
        if not isinstance(content, str):
            content = "".join(part["text"] if part["type"] == "text" else "<image>" for part in content)
        yield message["role"], content


def truth_of(name, record):
    """What a reward reads, wherever the layout has it."""
    if name in BY_ONE_TEXT:
        return json.loads(record["ground_truth"])
    return (
        record["extra_info"] if name == "verl_rl" else record | {"answer": record.get("answer", record.get("solution"))}
    )


@EVERY
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_prompt_shows_its_images_when_it_is_read_back(exported, name, protocol):
    made = exported(name, protocol)
    assert {sample: len(record["images"]) for sample, record in made.items()} == N_IMAGES
    for record in made.values():
        messages = record[PROMPT_LAYOUTS[name].messages]
        messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        assert placeholders(messages) == len(record["images"])


@EVERY
@pytest.mark.parametrize(
    ("protocol", "mode"), [(protocol.name, mode) for protocol in PROTOCOLS.values() for mode in protocol.modes]
)
def test_the_prompt_is_the_opening_that_a_rollout_begins_with(exported, rl, name, protocol, mode):
    rows = {row["sample_id"]: row for row in rl(protocol, mode).rows()}
    for sample, record in exported(name, protocol, mode).items():
        opening = ["".join(getattr(part, "text", "<image>") for part in turn.parts) for turn in prompt(rows[sample])]
        words = [unescaped(text) for _, text in said(name, record)]
        expected = ["\n\n".join(opening)] if name == "easyr1" else opening
        if sample != "ugly":
            assert words == expected
        assert words[0].startswith(opening[0])


@EVERY
def test_choices_stand_below_their_question(exported, name):
    words = list(said(name, exported(name)["choice"]))[-1][1]
    assert "Which colour?\nA. red\nB. blue" in words


@EVERY
def test_images_stand_at_the_places_of_the_question(exported, name):
    assert "Is <image> in <image>?" in list(said(name, exported(name)["placed"]))[-1][1]


@EVERY
def test_no_image_is_found_in_ugly_words_and_they_come_back(exported, name):
    words = list(said(name, exported(name)["ugly"]))[-1][1]
    assert "<|" not in words.replace("<| ", "")
    if name != "trl_grpo":
        assert words.count("<image>") == 1
        assert not re.search(r"<(video|audio)>", words)
    shown = words.replace("<image>", "", 1)
    read = unescaped(shown) if name != "trl_grpo" else shown.replace("<| ", "<|")
    assert re.sub(r"\s", "", rl_rows.UGLY) in re.sub(r"\s", "", read)


@EVERY
def test_answers_and_graders_of_every_kind_reach_the_reward_as_they_are(exported, rl, name):
    rows = {row["sample_id"]: row for row in rl().rows()}
    for sample, record in exported(name).items():
        found = truth_of(name, record)
        for column in ("answer", "question", "choices"):
            assert found[column] == rows[sample][column]
        assert from_row(Grader, found["grader"]) == from_row(Grader, shipped_grader(rows[sample]))
    assert {truth_of(name, record)["grader"]["kind"] for record in exported(name).values()} == {
        *("choice", "number", "text", "list", "maths", "box", "judged")
    }


@EVERY
def test_what_was_measured_goes_along_and_what_was_not_is_null(exported, rl, name):
    rows = {row["sample_id"]: row for row in rl().rows()}
    for sample, record in exported(name).items():
        found = truth_of(name, record)
        assert {fact: found[fact] for fact, _ in FACTS} == {fact: rows[sample][fact] for fact, _ in FACTS}
    measured, bare = truth_of(name, exported(name)["box"]), truth_of(name, exported(name)["bare"])
    assert (measured["pass_rate"], measured["necessity_prior"], measured["suitable"]) == (0.5, 0.5, True)
    assert measured["boxes"] == [{"label": "sign", "x1": 8, "y1": 8, "x2": 40, "y2": 40, "image": 0}]
    assert (bare["pass_rate"], bare["necessity_prior"], bare["suitable"], bare["boxes"]) == (None, None, None, [])


@EVERY
def test_nothing_that_was_measured_is_in_the_prompt(exported, name):
    words = "".join(text for _, text in said(name, exported(name)["box"]))
    assert "[8, 8, 40, 40]" not in words
    assert "pass_rate" not in words


@EVERY
def test_the_datasets_library_reads_the_folder(rl, tmp_path, name):
    made = export(rl(), PROMPT_LAYOUTS[name], tmp_path / "out")
    rows = hf.load_dataset(str(made.folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(rows) == made.n_rows == len(N_IMAGES)
    for row in rows:
        for image in row["images"]:
            if isinstance(image, str):
                assert (made.folder / image).is_file()
            elif isinstance(image, bytes | dict):
                Image.open(io.BytesIO(image if isinstance(image, bytes) else image["bytes"])).verify()
            else:
                assert image.size == (96, 64)


@EVERY
def test_the_readme_says_what_the_trainer_is_told_and_what_its_reward_needs(rl, tmp_path, name):
    made = export(rl("pyvision"), PROMPT_LAYOUTS[name], tmp_path / "out")
    text = (made.folder / "README.md").read_text()
    assert "FOLDER/train.parquet" in text
    assert "reward.py" in text
    assert "pip install darkroom-toolkit" in text
    assert "box 1, choice 1, judged 1, list 1, maths 1, number 2, text 3" in text
    assert "the protocol pyvision, mode free" in text
    assert str(tmp_path) not in text


def test_easyr1_is_told_options_that_all_its_versions_know_and_every_one_without_which_it_does_not_start(rl, tmp_path):
    text = (export(rl(), PROMPT_LAYOUTS["easyr1"], tmp_path / "out").folder / "README.md").read_text()
    command = text.partition("```\n")[2].partition("```")[0]
    options = dict(option.split("=", 1) for option in command.split())
    assert "worker.reward.reward_type" not in options  # later versions read it from reward.py and know no such option
    assert options["data.val_files"] == options["data.train_files"]
    tokens = int(options["data.max_prompt_length"]) + int(options["data.max_response_length"])
    assert int(options["worker.rollout.max_num_batched_tokens"]) >= tokens


@EVERY
def test_two_exports_have_the_same_bytes_and_another_protocol_has_others(rl, tmp_path, name):
    one, two, other = (
        export(rl(protocol), PROMPT_LAYOUTS[name], tmp_path / folder).folder
        for folder, protocol in (("one", "thyme"), ("two", "thyme"), ("other", "tool_call"))
    )
    assert (one / "train.parquet").read_bytes() == (two / "train.parquet").read_bytes()
    assert (one / "train.parquet").read_bytes() != (other / "train.parquet").read_bytes()
    assert export(rl("thyme"), PROMPT_LAYOUTS[name], one).reused
    assert not export(rl("tool_call"), PROMPT_LAYOUTS[name], one).reused


def test_verl_is_told_which_agent_and_which_tools_a_prompt_needs(exported):
    free, forbidden = exported("verl_rl", "tool_call")["text"], exported("verl_rl", "tool_call", "forbidden")["text"]
    assert free["agent_name"] == "tool_agent"
    assert free["extra_info"]["need_tools_kwargs"]
    assert not forbidden["extra_info"]["need_tools_kwargs"]
    assert exported("verl_rl")["text"]["agent_name"] == "darkroom_thyme_agent"
    assert free["reward_model"] == {"style": "rule", "ground_truth": "STOP"}
    assert set(free["extra_info"]["tools_kwargs"]) == {"crop_image_normalized", "code_interpreter"}


@EVERY
def test_a_prompt_about_a_video_is_set_aside_with_its_reason(clip, tmp_path, name):
    store = ImageStore(str(tmp_path / "store"))
    rows = [rl_rows.about_a_video(store.add_video(clip())), *rl_rows.rows_without_images()]
    write_prompts(tmp_path / "rl", rows, store=store, split="train")
    found = find_source(str(tmp_path / "rl"), tmp_path, split="train").in_protocol("pyvision", None)
    made = export(found, PROMPT_LAYOUTS[name], tmp_path / "out")
    assert made.reasons == {"videos_unsupported": 1}
    line = json.loads((made.folder / REJECTS).read_text())
    assert (line["sample_id"], line["reason"]) == ("video", "videos_unsupported")


@pytest.fixture
def row(rl):
    """The row with two images, as a plain dict that a test may damage."""
    return next(row for row in rl().rows() if row["sample_id"] == "number")


DAMAGES = {
    "no question": (Unfit.MALFORMED_ROW, lambda row: row.update(question=None)),
    "a blank question": (Unfit.EMPTY_TURN, lambda row: row.update(question=" \n")),
    "a blank answer": (Unfit.MALFORMED_ROW, lambda row: row.update(answer=" ")),
    "no choices": (Unfit.MALFORMED_ROW, lambda row: row.update(choices=None)),
    "no grader": (Unfit.MALFORMED_ROW, lambda row: row.update(grader=None)),
    "an unknown grader": (Unfit.MALFORMED_ROW, lambda row: row["grader"].update(kind="vibes")),
    "an unknown protocol": (Unfit.UNKNOWN_PROTOCOL, lambda row: row.update(protocol="morse")),
    "an unknown mode": (Unfit.MALFORMED_ROW, lambda row: row.update(mode="forced")),
    "an image without size": (Unfit.MALFORMED_ROW, lambda row: row["image_refs"][0].update(width=None)),
}


@pytest.mark.parametrize(("reason", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_row_that_cannot_be_asked_has_a_typed_reason(row, reason, damage):
    broken = copy.deepcopy(row)
    damage(broken)
    with pytest.raises(Unrenderable) as error:
        prompt(broken)
    assert error.value.reason is reason


PLAIN = {
    "sample_id": "x",
    "answer": "7",
    "grader": {"kind": "number", "tolerance": 0.0, "unit": "", "is_ordered": False},
    "video_refs": [],
    "boxes": [],
    **dict.fromkeys(fact for fact, _ in FACTS if fact != "boxes"),
}
REF = {"sha256": "0" * 64, "width": 8, "height": 8, "mode": "RGB", "format": "PNG", "parent": None, "made_by": None}


@given(
    question=TEXTS.filter(lambda text: text.strip()),
    choices=st.lists(TEXTS.map("A. {}".format), max_size=2),
    n_images=st.integers(0, 3),
    name=st.sampled_from(list(PROMPT_LAYOUTS)),
    protocol=st.sampled_from(list(PROTOCOLS)),
)
def test_there_are_as_many_placeholders_as_images_whatever_is_asked(question, choices, n_images, name, protocol):
    row = PLAIN | {
        "question": question,
        "choices": choices,
        "image_refs": [REF] * n_images,
        "protocol": protocol,
        "mode": "free",
    }
    layout = PROMPT_LAYOUTS[name]
    record = layout.render(ExportRow(row, prompt(row), ({"bytes": b"", "path": ""},) * n_images))
    verify(layout, record)
    messages = record[layout.messages]
    messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    assert placeholders(messages) == n_images


@pytest.fixture
def easyr1(rl, tmp_path):
    """The folder of an export and the table that lies there."""
    folder = export(rl(), PROMPT_LAYOUTS["easyr1"], tmp_path / "out").folder
    return folder, pq.read_table(folder / "train.parquet")


def test_a_row_that_reads_back_otherwise_is_an_error(easyr1):
    folder, table = easyr1
    rows = table.to_pylist()
    rows[0]["images"].clear()
    pq.write_table(table.from_pylist(rows, schema=table.schema), folder / "train.parquet")
    with pytest.raises(LayoutError, match="row 1, reads back otherwise"):
        verify_written(folder, PROMPT_LAYOUTS["easyr1"], {"train.parquet": len(rows)})


def test_a_row_that_is_not_there_is_an_error(easyr1):
    folder, table = easyr1
    pq.write_table(table.slice(1), folder / "train.parquet")
    with pytest.raises(LayoutError, match="holds 9 rows of the 10"):
        verify_written(folder, PROMPT_LAYOUTS["easyr1"], {"train.parquet": len(table)})


def test_a_layout_of_the_other_kind_of_rows_is_refused(rl, mixed, tmp_path):
    with pytest.raises(LayoutError, match="one of trl_grpo, verl_rl, ms_swift_grpo, easyr1, openrlhf_rl for prompts"):
        layout_of("trl_turns", "prompts")
    with pytest.raises(LayoutError, match="holds trajectories"):
        export(mixed, PROMPT_LAYOUTS["verl_rl"], tmp_path / "out")


def test_a_protocol_is_for_prompts_and_must_be_one(rl, mixed):
    with pytest.raises(LayoutError, match="each in its own protocol"):
        mixed.in_protocol("thyme", None)
    with pytest.raises(LayoutError, match="--protocol is one of"):
        rl("morse")
    with pytest.raises(LayoutError, match="--mode of thyme is one of free"):
        rl("thyme", "forced")


@pytest.mark.parametrize(("command", "status"), [("gallery", 1), ("replay", 2)])
def test_what_takes_trajectories_says_so_of_prompts(prompts: Path, command: str, status: int) -> None:
    result = CliRunner().invoke(app, [command, str(prompts)])
    assert (result.exit_code, result.stderr.count("\n")) == (status, 1)
    assert "holds prompts, no trajectories. For these: darkroom audit" in result.stderr


@pytest.mark.parametrize("command", ["gallery", "audit", "export --layout trl_turns"])
def test_a_dataset_of_a_kind_that_is_no_more_gets_one_line(tmp_path: Path, command: str) -> None:
    pq.write_table(pa.table({"pivot_id": ["1"], "goal": ["target"]}), tmp_path / "train-00000-of-00001.parquet")
    name, *options = command.split()
    result = CliRunner().invoke(app, [name, str(tmp_path), *options])
    assert result.exit_code in (1, 2)
    assert result.stderr.count("\n") == 1
    assert "holds pivots, a kind of dataset of earlier versions" in result.stderr
