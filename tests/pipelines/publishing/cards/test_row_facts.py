"""What a card says of who compared labels: found by 64 bits of an id, of several shards the last one's word."""

from __future__ import annotations

from dataclasses import replace

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.cards.row_facts import RlFacts, RowFacts, intake_choices
from darkroom.pipelines.publishing.judge_stats import origins_of
from darkroom.pipelines.publishing.parquet_shards import trajectory_row
from darkroom.pipelines.records import (
    Check,
    CheckedLabel,
    Grader,
    ImageRef,
    PassRate,
    Provenance,
    RLRow,
    Sample,
    Trajectory,
    Truth,
    Usage,
    VideoRef,
    Votes,
)
from darkroom.pipelines.rl import labels
from darkroom.pipelines.sources.answers import MOST_FREQUENT
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace


def test_who_compared_a_label_is_the_last_shards_word(workspace: Workspace) -> None:
    partitions = ["streets-0000", "streets-0001"]
    by_model, by_person = (CheckedLabel("a", Votes("model", (True,), 1), who) for who in ("", "ann"))
    others = [CheckedLabel(f"id{n}", Votes("model", (True,), 1)) for n in range(300)]
    for partition, rows in zip(partitions, ([*others, by_model], [by_person]), strict=True):
        key = TableKey((labels.ASSET,), partition)
        workspace.tables.write(key, CheckedLabel, rows, [], inputs="", facts={"n_in": len(rows)})
    facts = RlFacts(workspace=workspace, partitions=partitions, annotators="people", from_drafts=frozenset())
    for sample_id in ("a", "id7", "unknown"):
        sample = Sample(sample_id, "streets", "1", "CC0", (), "Which?", (), "This", Truth(), "OCR")
        facts.add(RLRow(sample, Grader("text"), "public", "unknown", None, None, None), sample)
    of_labels = {who: n for what, who, n in facts.origins if what == "label compared with answers of"}
    assert of_labels == {"a person": 1, "model": 1, "not measured": 1}


def test_a_card_names_the_frame_of_boxes_the_choice_of_labels_and_what_intake_derived(workspace: Workspace) -> None:
    frame = {"column": "boxes", "frame": "corners", "is_stated": True, "doubts": ["every value is at most 1000"]}
    for partition, notes in {
        "streets-0000": {"boxes": frame, "lines": [[7, MOST_FREQUENT, "q:1"], [9, "column id not read", "q:1"]]},
        "streets-0001": {"boxes": frame, "lines": [[5, MOST_FREQUENT, "q:2"]]},
        "demo-0000": {},
    }.items():
        facts = {"n_in": 0, "notes": notes}
        workspace.tables.write(TableKey(SAMPLES, partition), Sample, [], [], inputs="", facts=facts)
    choices = intake_choices(workspace.tables, ["streets-0000", "streets-0001", "demo-0000", "missing-0000"])
    facts = RowFacts(choices=choices)
    for steps in ("mode P;flattened on white;format GIF", "mode I;16;scaled from 12 bits", "exif_orientation"):
        image = ImageRef("ab" * 32, 9, 9, "RGB", "PNG", "cd" * 32, f"ingest: {steps}")
        facts.add(None, Sample(steps, "streets", "1", "CC0", (image, image), "Which?", (), "This", Truth(), ""))
    part = VideoRef("ab" * 32, "mp4", 9, 9, 9, 8.0, "cd" * 32, "ingest: cut from a longer one;4 to 7 s of it")
    facts.add(None, Sample("part", "films", "1", "CC0", (), "Which?", (), "This", Truth(), "", videos=(part,)))
    assert facts.intake == [
        "streets: rows with boxes, read as corners (stated); every value is at most 1000",
        "streets: 12 rows labelled with the most frequent of several answers",
        "1 rows with a video cut from a longer one",
        "1 rows with an image flattened on white",
        "1 rows with an image scaled from 12 bits",
    ]


ORACLE = Provenance("oracle", "oracle", "", "{}", "0" * 64, "1" * 64, 7, "0.1.0")
ROW = Trajectory("t", "s", "crop", "thyme", (), (), "", "", "last_round", (), Usage(), ORACLE)


def test_a_card_counts_first_looks_and_who_wrote(workspace: Workspace) -> None:
    facts, sample = RowFacts(), Sample("s", "streets", "1", "CC0", (), "Which?", (), "This", Truth(), "OCR")
    for score in (0.75, -0.25, -0.25, None):
        row = replace(ROW, checks=(Check("place_could_be_known", True, score),))
        facts.count(trajectory_row(sample, row, workspace.images), "train")
    assert (facts.first_looks.n, facts.first_looks.n_hits, facts.first_looks.by_chance) == (3, 1, 0.75)
    assert dict(facts.columns["writer"]) == {"the embedded oracle (a script that knows the truth; no model)": 4}


def test_who_wrote_and_who_judged_is_said_in_words(workspace: Workspace) -> None:
    shipped, verdicts = TableKey(("sft_dataset",), "crop"), TableKey(("crop", "verdicts"), "streets-0000")
    assert origins_of(workspace.tables, shipped, ["streets-0000"]) == {}
    model = replace(ORACLE, policy="openai", model="qwen")
    rows = [replace(ROW, trajectory_id=f"t{n}", provenance=model if n else ORACLE) for n in range(3)]
    workspace.tables.write(shipped, Trajectory, rows, [], inputs="", facts={"n_in": 3})
    notes = {"judges": [{"judge": "embedded"}, {"judge": "llava"}]}
    workspace.tables.write(verdicts, Trajectory, rows, [], inputs="", facts={"n_in": 3, "notes": notes})
    assert origins_of(workspace.tables, shipped, ["streets-0000", "missing-0000"]) == {
        "written_by": "openai (qwen), the embedded oracle (a script that knows the truth; no model)",
        "judged_by": "an embedded rule (measured; no model), llava",
    }


def test_who_annotated_is_said_of_sources_of_annotations_alone(workspace: Workspace) -> None:
    shipped, facts = TableKey(("sft_dataset",), "crop"), {"n_in": 1, "notes": {"annotators": "simulated people"}}
    workspace.tables.write(TableKey(("accepted_annotations",), "all"), Sample, [], [], inputs="", facts=facts)
    workspace.tables.write(shipped, Trajectory, [ROW], [], inputs="", facts={"n_in": 1})
    origins = origins_of(workspace.tables, shipped, ["streets-0000", "accepted_annotations-0000"])
    assert origins["annotated_by"] == "simulated people"
    assert "annotated_by" not in origins_of(workspace.tables, shipped, ["streets-0000"])


def test_rl_rows_say_who_wrote_measured_and_annotated_them(workspace: Workspace) -> None:
    sample = Sample("s", "streets", "1", "CC0", (), "Which?", (), "This", Truth(), "OCR")
    about = {"workspace": workspace, "partitions": [], "annotators": "simulated people", "from_drafts": {"s"}}
    facts = RlFacts(**about)
    assert facts.origins_in_words == {"written_by": "", "judged_by": "", "annotated_by": ""}
    solved = PassRate("s", Votes("qwen", (True,), 1), False)
    for origin, rate in (("public", solved), ("annotated", None)):
        facts.add(RLRow(sample, Grader("text"), origin, "unknown", rate, None, None), sample)
        facts.columns["origin"][origin] += 1  # as ``count`` does
    assert facts.origins_in_words == {
        "written_by": "simulated people, from a model's draft, streets",
        "judged_by": "label compared with answers of: simulated people, in a second round; "
        "pass rate, difficulty: measured on qwen",
        "annotated_by": "simulated people",
    }
