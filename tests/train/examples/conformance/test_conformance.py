"""The gate catches planted errors, by the row and with the reason; a sound dataset passes it for every model type."""

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.pipelines.inspection.audit import audit
from darkroom.pipelines.publishing.dataset_reader import read_files
from darkroom.train.examples.conformance import (
    ConformanceGate,
    Misfit,
    encoding_report,
    examine,
    explanation,
    summary,
    without_pixels,
)
from darkroom.train.examples.conformance.report import copy_report
from darkroom.train.examples.conformance.rows import IndexedRow, judge
from darkroom.train.examples.datasets import dataset_files
from darkroom.train.examples.encoding import open_reader
from darkroom.train.runs import TrainError
from tests.image_files import encoded

SHOWN = "<|vision_start|><|image_pad|><|vision_end|>"


@pytest.fixture(params=["turns", "inline"])
def reader(request, model):
    return open_reader(model, layout=request.param)


@pytest.fixture
def stored(dataset):
    """Rows as they are stored, which a test may damage."""
    return list(read_files(dataset_files(dataset), without=("videos",)))


def verdict(row, reader, *, max_tokens=8192):
    return judge([IndexedRow(0, row)], without_pixels(reader), max_tokens=max_tokens)[0]


def test_every_row_of_a_sound_dataset_conforms(dataset, rows, reader, model, tmp_path):
    told = []
    gate = ConformanceGate([dataset], model, reader, 8192)
    found = examine(gate, tmp_path, progress=lambda done, of: told.append((done, of)))
    assert (found.n_rows, found.n_refused) == (len(rows), 0)
    assert 0 < found.n_trained < found.n_tokens
    assert told == [(8, 8)]
    assert found.conforming() == list(range(8))
    assert summary(found).startswith("8 rows, all conform; ")


def test_the_report_counts_what_a_reader_reads(dataset, rows, reader, model, tmp_path):
    found = examine(ConformanceGate([dataset], model, reader, 8192), tmp_path)
    for record, row in zip(pq.read_table(found.report).to_pylist(), rows, strict=True):
        batch = reader.read([row])
        assert record["trajectory_id"] == row["trajectory_id"]
        assert record["n_tokens"] == batch["input_ids"].shape[1]
        assert record["n_trained"] == int((batch["labels"] != -100).sum())
        assert record["n_images"] == len(row["images"])
        assert record["n_image_tokens"] == int((batch["input_ids"] == reader.processor.image_token_id).sum())
        assert (record["verdict"], record["reason"]) == ("conforms", None)


def test_trl_collates_the_same_tensors(rows, reader):
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    theirs = DataCollatorForVisionLanguageModeling(
        reader.processor, max_length=None, assistant_only_loss=True, chat_template=reader.template
    )
    for chosen in ([rows[0], rows[4], rows[7]], [rows[7]]):
        ours = reader.read(chosen)
        expected = theirs([reader.present(row) for row in chosen])
        assert set(ours) == set(expected)
        assert all(ours[name].equal(expected[name]) for name in expected)


def test_a_template_that_drops_images_is_caught(stored, reader):
    broken = replace(reader, template=reader.template.replace(SHOWN, ""))
    found = verdict(stored[2], broken)
    assert found.reason == Misfit.IMAGE_TOKENS_DIFFER
    assert "2 images" in found.found


def test_the_stock_template_of_qwen3_vl_is_caught_where_it_drops_images(stored, tinies):
    from trl.chat_template_utils import qwen3_vl_training_chat_template

    for layout, expected in (("inline", Misfit.IMAGE_TOKENS_DIFFER), ("turns", Misfit.OBSERVATION_TRAINED)):
        reader = replace(open_reader(tinies["qwen3_vl"], layout=layout), template=qwen3_vl_training_chat_template)
        assert verdict(stored[0], reader).reason == expected


def test_an_observation_that_would_be_trained_is_caught(stored, tinies):
    from trl.chat_template_utils import qwen2_5_vl_training_chat_template

    reader = open_reader(tinies["qwen2_5_vl"], layout="inline")
    found = verdict(stored[2], replace(reader, template=qwen2_5_vl_training_chat_template))
    assert found.reason == Misfit.OBSERVATION_TRAINED
    assert "the loss mask trains '" in found.found


def test_an_observation_with_a_loss_flag_is_caught_though_the_template_obeys(stored, reader, monkeypatch):
    present = type(reader).present

    def flagged(self, row):
        shown = present(self, row)
        for message in shown["messages"][2:]:
            message["content"] = [{**part, "train": True} for part in message["content"]]
        return shown

    monkeypatch.setattr(type(reader), "present", flagged)
    if reader.layout == "inline":
        assert verdict(stored[0], reader).reason == Misfit.OBSERVATION_TRAINED
    else:  # a flag on a user turn is no flag at all; the first rounds of last_round would be trained
        assert verdict(stored[0], reader).reason is None
        assert verdict(stored[2], reader).reason == Misfit.OBSERVATION_TRAINED


def test_words_that_the_template_leaves_out_of_the_loss_are_caught(stored, reader):
    untrained = reader.template.replace("{%- generation -%}{{- '<|im_end|>' -}}{%- endgeneration -%}", "<|im_end|>")
    assert verdict(stored[0], replace(reader, template=untrained)).reason == Misfit.OWN_WORDS_UNTRAINED
    mute = reader.template.replace("{%- generation -%}", "{%- if true -%}").replace("endgeneration", "endif")
    nothing = verdict(stored[0], replace(reader, template=mute))
    assert nothing.reason == Misfit.NOTHING_TRAINED


def test_a_row_longer_than_what_is_read_is_caught(stored, reader):
    found = verdict(stored[2], reader, max_tokens=50)
    assert found.reason == Misfit.TRUNCATED
    assert found.n_tokens > 50
    assert "lower --max-pixels" in str(found)


def test_a_row_that_breaks_off_is_caught(stored, reader, monkeypatch):
    collate = type(reader).collate

    def cut(self, examples):
        batch = collate(self, examples)
        return {name: value[:, :-1] if value.ndim == 2 else value for name, value in batch.items()}

    monkeypatch.setattr(type(reader), "collate", cut)
    assert verdict(stored[0], reader).reason == Misfit.TRUNCATED


def test_a_placeholder_too_many_is_caught(stored, reader, monkeypatch):
    present = type(reader).present

    def one_more(self, row):
        shown = present(self, row)
        shown["messages"][1]["content"].append({"type": "image"})
        return shown

    monkeypatch.setattr(type(reader), "present", one_more)
    found = verdict(stored[0], reader)
    assert found.reason == Misfit.IMAGE_TOKENS_DIFFER


def test_a_placeholder_too_many_in_one_row_and_too_few_in_the_next_is_caught_in_both(stored, reader, monkeypatch):
    present = type(reader).present

    def moved(self, row):
        shown = present(self, row)
        parts = shown["messages"][1]["content"]
        if row["trajectory_id"] == "t0":
            parts.append({"type": "image"})
        if row["trajectory_id"] == "t1":
            parts[:] = [part for part in parts if part["type"] != "image"]
        return shown

    monkeypatch.setattr(type(reader), "present", moved)
    batch = [IndexedRow(place, row) for place, row in enumerate(stored[:3])]
    found = judge(batch, without_pixels(reader), max_tokens=8192)
    assert [one.reason for one in found] == [Misfit.IMAGE_TOKENS_DIFFER] * 2 + [None]


@pytest.mark.parametrize("change", [lambda images: images[:-1], lambda images: [*images, images[0]]])
def test_too_few_and_too_many_images_are_caught(stored, reader, change):
    row = stored[2] | {"images": change(stored[2]["images"])}
    found = verdict(row, reader)
    assert found.reason == Misfit.IMAGES_DIFFER
    assert found.found == f"it holds {len(row['images'])} images and shows 2"


def test_images_out_of_order_are_caught(stored, reader):
    rounds = [{**turn, "observation": {**turn["observation"], "images": [0]}} for turn in stored[2]["rounds"][-1:]]
    found = verdict(stored[2] | {"rounds": rounds}, reader)
    assert found.reason == Misfit.IMAGES_DIFFER
    assert "its turns show the images [0, 0]; the row has 2" in found.found


def test_a_row_that_contradicts_its_protocol_is_caught(stored, reader):
    found = verdict(stored[0] | {"protocol": "morse"}, reader)
    assert found.reason == Misfit.UNRENDERABLE
    assert "unknown protocol 'morse'" in found.found


def png(size, colour="red"):
    return encoded(Image.new("RGB", size, colour))


@pytest.mark.parametrize("content", [b"", b"no picture", png((140, 112))[:-9], png((30, 30))])
def test_an_image_that_is_not_the_one_described_is_caught(stored, reader, content):
    images = [{**stored[0]["images"][0], "bytes": content}, *stored[0]["images"][1:]]
    assert verdict(stored[0] | {"images": images}, reader).reason == Misfit.IMAGE_DAMAGED


def test_an_image_that_no_processor_scales_is_an_error_of_its_row_alone(stored, reader):
    import hashlib

    content = png((2, 700))
    ref = stored[5]["image_refs"][0] | {"sha256": hashlib.sha256(content).hexdigest(), "width": 2, "height": 700}
    thin = stored[5] | {"images": [{"bytes": content, "path": None}], "image_refs": [ref]}
    batch = [IndexedRow(place, row) for place, row in enumerate([stored[0], thin, stored[1]])]
    found = judge(batch, without_pixels(reader), max_tokens=8192)
    assert [one.reason for one in found] == [None, Misfit.IMAGE_TOKENS_DIFFER, None]
    assert "aspect ratio" in found[1].found


@pytest.fixture
def spoiled(dataset, tmp_path):
    """The dataset, in which two rows lack their last image."""
    folder = tmp_path / "spoiled"
    shutil.copytree(dataset, folder)
    path = next(folder.glob("*.parquet"))
    table = pq.read_table(path)
    images = table["images"].to_pylist()
    for place in (1, 3):
        images[place] = images[place][:-1]
    at = table.schema.get_field_index("images")
    column = pa.array(images, type=table.schema.field("images").type)
    pq.write_table(table.set_column(at, table.schema.field(at), column), path)
    return folder


def test_a_refusal_names_the_reasons_the_first_rows_and_the_report(spoiled, model, tmp_path):
    found = examine(ConformanceGate([spoiled], model, open_reader(model), 8192), tmp_path / "reports")
    assert (found.n_rows, found.n_refused, found.reasons) == (8, 2, {"images_differ": 2})
    assert found.conforming() == [0, 2, 4, 5, 6, 7]
    said = explanation(found)
    assert said.startswith("2 of 8 rows cannot be trained on")
    assert "row t1 (crop, images_differ): it holds 1 images and shows 2" in said
    assert "export the dataset again" in said
    assert said.endswith(str(found.report))


def test_an_audit_has_the_refused_rows_as_findings(spoiled, tiny, tmp_path):
    def encode(folders, progress):
        gate = ConformanceGate(folders, tiny, open_reader(tiny), 8192)
        return encoding_report(examine(gate, tmp_path / "reports", progress=progress))

    report = audit([spoiled], parts=["encoding"], encode=encode)
    assert (report.n_rows, report.checked, report.kinds) == (8, {"encoding": 8}, {"encoding: images_differ": 2})
    assert report.notes[0].startswith("8 rows, 2 do not conform; ")
    with pytest.raises(ValueError, match="needs `encode`"):
        audit([spoiled], parts=["encoding"])


def test_rows_are_checked_once_for_the_same_dataset_model_and_settings(spoiled, tiny, tmp_path, monkeypatch):
    import darkroom.train.examples.conformance as module

    n_judged = []

    def counted(rows, *args, **kwargs):
        n_judged.append(len(rows))
        return judge(rows, *args, **kwargs)

    monkeypatch.setattr(module, "judge", counted)
    gate = ConformanceGate([spoiled], tiny, open_reader(tiny), 8192)
    first, again = examine(gate, tmp_path / "reports"), examine(gate, tmp_path / "reports", writes=False)
    assert first == again
    assert n_judged == [8]
    others = [
        replace(gate, max_tokens=90),
        replace(gate, reader=open_reader(tiny, layout="inline")),
        replace(gate, reader=open_reader(tiny, max_pixels=4 * 28 * 28)),
        replace(gate, reader=open_reader(tiny, train_observations=True)),
        replace(gate, folders=[spoiled, spoiled]),
    ]
    assert len({gate.key, *(other.key for other in others)}) == 6
    examine(others[0], tmp_path / "reports")
    assert n_judged == [8, 8]


@pytest.mark.e2e
def test_many_rows_are_shared_among_processes_with_the_same_verdicts(spoiled, tiny, tmp_path, monkeypatch):
    import darkroom.train.examples.conformance as module

    gate = ConformanceGate([spoiled], tiny, open_reader(tiny), 8192)
    alone = examine(gate, tmp_path / "alone")
    monkeypatch.setattr(module, "WORTH_A_PROCESS", 4)
    monkeypatch.setattr(module, "BATCH", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    shared = examine(gate, tmp_path / "shared")
    assert pq.read_table(shared.report).equals(pq.read_table(alone.report))


def test_a_gate_that_reads_otherwise_than_the_trainer_stops(dataset, tiny, tmp_path, monkeypatch):
    reader = open_reader(tiny)
    images = type(reader.processor.image_processor)
    wrong = images.get_number_of_image_patches
    monkeypatch.setattr(images, "get_number_of_image_patches", lambda self, *size: wrong(self, *size) + 4)
    with pytest.raises(TrainError, match="row t0 is read otherwise with its pixels"):
        examine(ConformanceGate([dataset], tiny, reader, 8192), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_copy_of_the_report_is_json_lines_or_parquet(dataset, tiny, tmp_path):
    import json

    found = examine(ConformanceGate([dataset], tiny, open_reader(tiny), 8192), tmp_path / "reports")
    copy_report(found, tmp_path / "a" / "report.jsonl")
    copy_report(found, tmp_path / "report.parquet")
    lines = [json.loads(line) for line in (tmp_path / "a" / "report.jsonl").read_text().splitlines()]
    assert lines == pq.read_table(tmp_path / "report.parquet").to_pylist()
