"""The kinds of tampering that an audit must find: each with its name and the change itself, by what it changes."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import MARKER
from darkroom.pipelines.publishing.manifest import MANIFEST
from darkroom.pipelines.records.digest import digest_bytes
from tests.image_files import encoded

Rows = list[dict[str, Any]]
OnRows = Callable[[Rows], Any]
OnFolder = Callable[[Path], Any]
ROW = 1
"""The row that is changed."""


def part(row: Any, path: str) -> tuple[Any, Any]:
    """What holds the value at ``rounds.0.code``, and its name there."""
    *before, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    for name in before:
        row = row[name]
    return row, last


def put(path: str, value: Any) -> OnRows:
    """Sets a value of the row; a function makes it of the one before."""

    def change(rows: Rows) -> None:
        holder, name = part(rows[ROW], path)
        holder[name] = value(holder[name]) if callable(value) else value

    return change


def drop(path: str) -> OnRows:
    def change(rows: Rows) -> None:
        holder, name = part(rows[ROW], path)
        del holder[name]

    return change


def check(name: str, **changes: Any) -> OnRows:
    def change(rows: Rows) -> None:
        next(each for each in rows[ROW]["checks"] if each["name"] == name).update(changes)

    return change


def more(text: str) -> Callable[[str], str]:
    return lambda before: before + text


def invented_check(rows: Rows) -> None:
    rows[ROW]["checks"].append(rows[ROW]["checks"][0] | {"name": "approved_by_people", "detail": "3 of 3 accept it"})


def invented_edit(rows: Rows) -> None:
    edits = rows[ROW]["rounds"][0]["observation"]["edits"]
    edits.append({"kind": "autopep8", "before": "", "after": "x = 1"})


def reversed_choices(rows: Rows) -> None:
    row = next(row for row in rows if row["choices"])
    row["choices"] = row["choices"][::-1]


def one_more_choice(rows: Rows) -> None:
    next(row for row in rows if row["choices"])["choices"].append("none of them")


def repeated_round(rows: Rows) -> None:
    rows[ROW]["rounds"].append(rows[ROW]["rounds"][0])


def shown(rows: Rows, change: Callable[[Image.Image], Image.Image], *, place: int = 0, refs: bool = True) -> None:
    """Changes an image's pixels, and what the row says of its bytes."""
    image = change(Image.open(io.BytesIO(rows[ROW]["images"][place]["bytes"])).convert("RGB"))
    data = encoded(image)
    rows[ROW]["images"][place]["bytes"] = data
    if refs:
        size = {"width": image.width, "height": image.height}
        rows[ROW]["image_refs"][place] |= {"sha256": digest_bytes(data), "mode": "RGB", "format": "PNG"} | size


def spotted(image: Image.Image) -> Image.Image:
    image.putpixel((0, 0), (1, 2, 3))
    return image


def swapped(name: str) -> OnRows:
    def change(rows: Rows) -> None:
        rows[0][name], rows[ROW][name] = rows[ROW][name], rows[0][name]

    return change


def swapped_images(rows: Rows) -> None:
    for name in ("images", "image_refs"):
        swapped(name)(rows)


def look_alike(text: str) -> str:
    return text.replace("S", "Ѕ").replace("X", "Х")  # Cyrillic letters


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text + " é") if "é" not in text else unicodedata.normalize("NFD", text)


def tenth_digit(rows: Rows) -> None:
    scored = next(each for each in rows[ROW]["checks"] if each["score"] is not None)
    scored["score"] += 1e-10


SFT_ROWS: dict[str, OnRows] = {
    "question reworded": put("question", more(" Answer in one word.")),
    "answer replaced": put("answer", "S9X"),
    "choices reordered": reversed_choices,
    "a choice added": one_more_choice,
    "thought reworded": put("rounds.0.thought", more(" It is small.")),
    "thought emptied": put("rounds.0.thought", ""),
    "code with a comment": put("rounds.0.code", more("\n# done")),
    "code of another crop": put("rounds.0.code", lambda code: re.sub(r"\d\d+", "11", code, count=1)),
    "observation's text": put("rounds.0.observation.text", more("seen\n")),
    "observation's status": put("rounds.0.observation.status", "error"),
    "observation's error invented": put("rounds.0.observation.error", "ValueError: no"),
    "observation shows the question's image": put("rounds.0.observation.images", [0]),
    "observation's images dropped": put("rounds.0.observation.images", []),
    "an edit invented": invented_edit,
    "a round removed": drop("rounds.0"),
    "a round repeated": repeated_round,
    "final thought reworded": put("final_thought", more(" So it is.")),
    "loss policy flipped": put("loss_policy", lambda now: {"all_rounds": "last_round"}.get(now, "all_rounds")),
    "mode changed": put("mode", "forced"),
    "family changed": put("family", "rotation"),
    "protocol changed": put("protocol", "pyvision"),
    "a check removed": drop("checks.0"),
    "a check invented": invented_check,
    "all checks removed": put("checks", []),
    "a check's score raised": check("crop_is_tight", score=0.9),
    "a check's verdict turned": check("crop_is_tight", passed=False),
    "a check's detail reworded": check("crop_is_tight", detail="as tight as can be"),
    "a check's version": check("crop_is_tight", version=99),
    "a check's votes invented": check("crop_is_tight", n_trials=9),
    "calls of the policy": put("usage.calls", 99),
    "cost lowered": put("usage.cost_usd", -1.0),
    "policy renamed": put("provenance.policy", "openai"),
    "model renamed": put("provenance.model", "people"),
    "seed changed": put("provenance.seed", lambda seed: seed + 1),
    "sandbox's digest": put("provenance.sandbox_digest", "0" * 64),
    "prompt's digest": put("provenance.prompt_digest", "0" * 64),
    "sampling changed": put("provenance.sampling", '{"temperature": 0}'),
    "code version": put("provenance.code_version", "9.9.9"),
    "licence replaced": put("license", "MIT"),
    "source renamed": put("source", "photos of ours"),
    "source's row": put("source_row", "row/99"),
    "category changed": put("category", "counting"),
    "trajectory's id": put("trajectory_id", "0" * 64),
    "sample's id": put("sample_id", "0" * 64),
    "number of the question's images": put("n_question_images", 2),
    "an image's parent removed": put("image_refs.1.parent", None),
    "an image's maker": put("image_refs.1.made_by", "people"),
    "an image's size": put("image_refs.0.width", lambda width: width + 1),
    "an image's file name": put("images.0.path", "street.jpg"),
    "a pixel of the question": lambda rows: shown(rows, spotted, refs=False),
    "a pixel of the question, digest too": lambda rows: shown(rows, spotted),
    "a pixel of an observation, digest too": lambda rows: shown(rows, spotted, place=1),
}
RL_ROWS: dict[str, OnRows] = {
    "question reworded": put("question", more(" Answer in one word.")),
    "prompt reworded": put("prompt", more(" Guess.")),
    "answer replaced": put("answer", "S9X"),
    "choices reordered": reversed_choices,
    "another answer accepted": put("accepted", ["S1Y"]),
    "grader's kind": put("grader.kind", "judged"),
    "grader's tolerance": put("grader.tolerance", 0.5),
    "grader's unit": put("grader.unit", "cm"),
    "grader's order": put("grader.is_ordered", True),
    "category changed": put("category", "counting"),
    "difficulty": put("difficulty", "easy"),
    "origin": put("origin", "annotated"),
    "pass rate": put("pass_rate", 0.123),
    "right answers": put("n_right", lambda n: n - 1),
    "pass rate and right answers": lambda rows: rows[ROW].update(n_right=0, pass_rate=0.0, never_solved=True),
    "number of answers": put("n_answers", lambda n: n + 1),
    "never solved": put("never_solved", True),
    "student renamed": put("student", "people"),
    "necessity's prior": put("necessity_prior", 0.01),
    "accuracy with the tool": put("accuracy_forced", 0.01),
    "necessity's model": put("necessity_model", "people"),
    "suitability": lambda rows: rows[-1].update(suitable=not rows[-1]["suitable"]),
    "suitability's votes": lambda rows: rows[-1].update(suitability_yes=99),
    "visual search": put("visual_search", lambda now: not now),
    "a box moved": put("boxes.0.x1", lambda x: x + 5),
    "a box removed": put("boxes", []),
    "licence replaced": put("license", "MIT"),
    "source renamed": put("source", "photos of ours"),
    "source's row": put("source_row", "row/99"),
    "sample's id": put("sample_id", "0" * 64),
    "a pixel, digest too": lambda rows: shown(rows, spotted),
}
OWN_ROWS: dict[str, OnRows] = {
    "images of two rows swapped": swapped_images,
    "answers of two rows swapped": swapped("answer"),
    "ids of two rows swapped": swapped("sample_id"),
    "a row removed": lambda rows: rows.pop(ROW),
    "a row twice": lambda rows: rows.append(rows[ROW]),
    "a row twice, under another id": lambda rows: rows.append(
        rows[ROW] | {name: "0" * 64 for name in ("sample_id", "trajectory_id") if name in rows[ROW]}
    ),
    "order of two rows": lambda rows: rows.insert(0, rows.pop(ROW)),
    "look-alike letters in the answer": put("answer", look_alike),
    "an invisible character in the answer": put("answer", more("\u200b")),
    "a blank after the question": put("question", more(" ")),
    "letters decomposed": put("question", decomposed),
    "the answer's case": put("answer", str.swapcase),
    "an image of another size, digest too": lambda rows: shown(rows, lambda image: image.resize((64, 48))),
    "an image mirrored, digest too": lambda rows: shown(rows, lambda image: image.transpose(0)),
    "licence emptied": put("license", ""),
}
OWN_SFT_ROWS: dict[str, OnRows] = {
    "a score in its tenth digit": tenth_digit,
    "a hint in the thought": put("rounds.0.thought", more(" I was told that the sign says so.")),
    "the answer in the code": put("rounds.0.code", more("\nprint('S1X')")),
    "a null for an error without words": put("rounds.0.observation.error", ""),
}


def replaced(before: str, after: str) -> Callable[[str], str]:
    """A text with the first match of a pattern replaced; the card must have it."""

    def change(text: str) -> str:
        changed, n = re.subn(before, after, text, count=1, flags=re.MULTILINE)
        assert n, f"{before!r} is not in the card"
        assert changed != text, f"{before!r} is what it becomes"
        return changed

    return change


SFT_CARD: dict[str, Callable[[str], str]] = {
    "title": replaced("^# Darkroom SFT: crop", "# Darkroom SFT: crop, by people"),
    "description": replaced("$(?s:.*?)^(?=\\d+ trajectories)", "\n\nThe best crops there are.\n\n"),
    "number of rows": replaced(r"^\d+ trajectories with", "400 trajectories with"),
    "number of images": replaced(r"with \d+ images", "with 80 images"),
    "sentence about code": replaced("All code was executed in a sandbox", "All code was read by people"),
    "sentence about checks": replaced("every row passed every check below", "every row was checked by people"),
    "writer": replaced(r"^\| written by [^|]*\|", "| written by people |"),
    "rows of a source": replaced(r"^\| source small \| \d+", "| source small | 400"),
    "rows of a category": replaced(r"^\| category OCR \| \d+", "| category OCR | 400"),
    "licence": replaced(r"^\| licence CC0-1.0", "| licence MIT"),
    "split": replaced(r"^\| split train \| \d+", "| split train | 400"),
    "near-duplicates": replaced(r"\d+ near-duplicates", "700 near-duplicates"),
    "benchmarks": replaced("^No benchmark was looked for: .*$", "Benchmarks that were looked for: HR-Bench."),
    "replay": replaced(r"Replay: \d+ of \d+ rows", "Replay: 400 of 400 rows"),
    "yield": replaced(r"^\| drafts \| (\d+)", r"| drafts | 1\1"),
    "cost": replaced(r"[\d.]+ USD per accepted row", "9.9999 USD per accepted row"),
    "a check's description": replaced(r"^(\| `crop_is_tight` \| \d+ \|)[^|]*\|", r"\1 People agree |"),
    "a check's mean score": replaced(r"^(\| `crop_is_tight` .*\|)[^|]*\|$", r"\1 0.001 |"),
    "expert review": replaced("^No expert has reviewed rows.*$", "Experts accept all rows."),
    "necessity": replaced("^Not measured: whether the questions.*$", "No question can be answered without its image."),
    "columns": replaced("`checks`, `usage`, `provenance`", "`checks`"),
    "loss policy": replaced(r"should learn from \(`\w+`\)", "should learn from (all)"),
    "example": replaced('"question": "', '"question": "Please: '),
    "licence of the front matter": replaced("^license: .*$", "license: mit"),
    "size of the front matter": replaced("n<1K", "100K<n<1M"),
    "a column of the front matter": replaced("- name: question$", "- name: query"),
}
RL_CARD: dict[str, Callable[[str], str]] = {
    "number of rows": replaced(r"^\d+ questions with", "900 questions with"),
    "who answered": replaced(r"^\| pass rate, difficulty \| [^|]*\|", "| pass rate, difficulty | people |"),
    "rows of a grader": replaced(r"^\| grader text \| \d+", "| grader text | 900"),
    "yield": replaced(r"^(\| pass_rates \| [^|]*\|) \d+ \|", r"\1 900 |"),
    "bars of pass rates": replaced("█ 9$", "█ 900"),
    "mean agreement": replaced(r"mean agreement [\d.]+", "mean agreement 0.123"),
    "necessity's mean": replaced(r"on average [\d.-]+", "on average 0.987"),
    "agreement with people": replaced("^Agreement with people: .*$", "Agreement with people: complete."),
    "columns": replaced("privileged truth in pixels", "truth in pixels"),
}
OWN_CARD: dict[str, Callable[[str], str]] = {
    "two lines swapped": replaced(r"^(- `images`.*)\n(.*)$", r"\2\n\1"),
    "a sentence added": more("\nThis dataset was approved by people.\n"),
    "lines that end with CRLF": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: f"\ufeff{text}",
    "an invisible character": replaced("trajectories|questions", "tra\u200bjectories"),
    "a comment in HTML": more("<!-- rows: 400 -->\n"),
    "a language of the front matter": replaced("^task_categories:", "language:\n- en\ntask_categories:"),
    "a configuration of the front matter": replaced(
        "^tags:", "configs:\n- config_name: default\n  data_files: https://example.org/rows.parquet\ntags:"
    ),
}


def train(folder: Path) -> Path:
    """The file of the training split, of a dataset or of an export in parquet."""
    return next(iter(folder.glob("train*.parquet")))


def write_table(path: Path, table: pa.Table, **options: Any) -> None:
    pq.write_table(table, path, **options)


def on_table(change: Callable[[pa.Table], pa.Table], **options: Any) -> OnFolder:
    return lambda folder: write_table(train(folder), change(pq.read_table(train(folder))), **options)


def retyped(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("license")
    return table.set_column(place, "license", table.column(place).cast(pa.large_binary()))


def moved_row(folder: Path) -> None:
    table = pq.read_table(train(folder))
    write_table(train(folder), table.slice(1))
    write_table(folder / "validation-00000-of-00001.parquet", table.slice(0, 1))


def truncated(path: Path, share: float = 0.5) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def edited_json(name: str, change: Callable[[Any], Any]) -> OnFolder:
    def edit(folder: Path) -> None:
        facts = json.loads((folder / name).read_text())
        change(facts)
        (folder / name).write_text(json.dumps(facts))

    return edit


def linked(folder: Path) -> None:
    shard, elsewhere = train(folder), folder.parent / "elsewhere.parquet"
    write_table(elsewhere, pq.read_table(shard).slice(1))
    shard.unlink()
    os.symlink(elsewhere, shard)


FILES: dict[str, OnFolder] = {
    "a card that is not UTF-8": lambda folder: (folder / "README.md").write_bytes(b"\xff# Darkroom\n"),
    "a file truncated": lambda folder: truncated(train(folder)),
    "a file emptied": lambda folder: train(folder).write_bytes(b""),
    "a byte of a file": lambda folder: train(folder).write_bytes(
        train(folder).read_bytes().replace(b"PAR1", b"PAR2", 1)
    ),
    "the schema's metadata": on_table(lambda table: table.replace_schema_metadata({"huggingface": "{}"})),
    "other compression": on_table(lambda table: table, compression="snappy"),
    "other row groups": on_table(lambda table: table, row_group_size=1),
    "a column added": on_table(lambda table: table.append_column("approved", [["people"] * len(table)])),
    "a column removed": on_table(lambda table: table.drop_columns(["license"])),
    "columns reordered": on_table(lambda table: table.select(table.column_names[::-1])),
    "a column of another type": on_table(retyped),
    "a row moved to another split": moved_row,
    "a split renamed": lambda folder: train(folder).rename(folder / "test-00000-of-00001.parquet"),
    "a file of rows added": lambda folder: shutil.copy(train(folder), folder / "extra-00000-of-00001.parquet"),
    "a file of rows added below": lambda folder: (
        (folder / "data").mkdir(),
        shutil.copy(train(folder), folder / "data" / "train.parquet"),
    ),
    "a shard replaced by a link": linked,
    "an empty shard added": lambda folder: write_table(
        folder / "train-00001-of-00002.parquet", pq.read_table(train(folder)).slice(0, 0)
    ),
    "a loading script added": lambda folder: (folder / f"{folder.name}.py").write_text("print('loaded')\n"),
    "a licence added": lambda folder: (folder / "LICENSE").write_text("MIT\n"),
    "the card removed": lambda folder: (folder / "README.md").unlink(),
    "all rows removed": on_table(lambda table: table.slice(0, 0)),
}
MANIFESTS: dict[str, OnFolder] = {
    "the manifest removed": lambda folder: (folder / MANIFEST).unlink(),
    "the manifest truncated": lambda folder: truncated(folder / MANIFEST),
    "a row removed from the manifest": edited_json(MANIFEST, lambda facts: facts["rows"]["train"].pop()),
    "a file removed from the manifest": edited_json(MANIFEST, lambda facts: facts["files"].pop("README.md")),
    "the card's facts": edited_json(MANIFEST, lambda facts: facts["card"].update(benchmarks=["HR-Bench"])),
    "the card's facts of no known type": edited_json(MANIFEST, lambda facts: facts["card"].update(facts=7)),
    "the manifest reformatted": edited_json(MANIFEST, lambda facts: None),
    "the marker's number of rows": edited_json(MARKER, lambda facts: facts.update(n_rows=400)),
    "the marker's manifest": edited_json(MARKER, lambda facts: facts.update(manifest="0" * 64)),
    "the marker truncated": lambda folder: truncated(folder / MARKER),
}


def lines_of(path: Path, change: Callable[[list[Any]], Any]) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    change(records)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def message(role: str, change: Callable[[dict[str, Any]], Any]) -> OnRows:
    """Changes the row's last message of a role."""

    def edit(rows: Rows) -> None:
        change([each for each in rows[ROW]["messages"] if each["role"] == role][-1])

    return edit


LINES: dict[str, OnRows] = {
    "the answer": message(
        "assistant", lambda each: each.update(content=each["content"].replace("<answer>", "<answer>9"))
    ),
    "a loss flag flipped": message("assistant", lambda each: each.update(loss=not each["loss"])),
    "a loss flag removed": message("assistant", lambda each: each.pop("loss")),
    "the question": lambda rows: rows[ROW]["messages"][-2].update(content="<image>What is it?"),
    "the system's prompt": message("system", lambda each: each.update(content=each["content"] + " Be quick.")),
    "a message removed": lambda rows: rows[ROW]["messages"].pop(),
    "a role": lambda rows: rows[ROW]["messages"][-1].update(role="user"),
    "images swapped": swapped("images"),
    "the row's id": put("trajectory_id", "0" * 64),
    "a row removed": lambda rows: rows.pop(ROW),
    "a row twice": lambda rows: rows.append(rows[ROW]),
    "order of two rows": lambda rows: rows.insert(0, rows.pop(ROW)),
    "a column added": lambda rows: rows[ROW].update(approved_by="people"),
    "order of a row's columns": lambda rows: rows.__setitem__(ROW, dict(reversed(rows[ROW].items()))),
}
PROMPT_TABLE: dict[str, OnRows] = {
    "the answer": put("answer", "S9X"),
    "grader's kind": put("grader.kind", "judged"),
    "grader's tolerance": put("grader.tolerance", 0.5),
    "another answer accepted": put("grader.accepted", ["S1Y"]),
    "the prompt's text": put("question", more(" Guess.")),
    "pass rate": put("pass_rate", 0.123),
    "licence": put("license", "MIT"),
    "a row removed": lambda rows: rows.pop(ROW),
    "a row twice": lambda rows: rows.append(rows[ROW]),
    "images swapped": swapped("images"),
}


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def any_image(folder: Path) -> Path:
    return sorted((folder / "images").iterdir())[0]


EXPORT_FILES: dict[str, OnFolder] = {
    "an image's pixel": lambda folder: any_image(folder).write_bytes(
        encoded(spotted(Image.open(io.BytesIO(any_image(folder).read_bytes())).convert("RGB")))
    ),
    "two images swapped": lambda folder: (
        (images := sorted((folder / "images").iterdir())),
        images[0].rename(folder / "kept"),
        images[1].rename(images[0]),
        (folder / "kept").rename(images[1]),
    ),
    "an image removed": lambda folder: any_image(folder).unlink(),
    "a file of rows truncated": lambda folder: truncated(folder / "train.jsonl", 0.9),
    "a line that is no row": lambda folder: append(folder / "train.jsonl", "{}\n"),
    "a name twice in a row": lambda folder: (folder / "train.jsonl").write_text(
        (folder / "train.jsonl").read_text().replace('{"trajectory_id"', '{"messages": [], "trajectory_id"', 1)
    ),
    "the README": lambda folder: append(folder / "README.md", "Approved by people.\n"),
    "the rejects": lambda folder: (folder / "rejects.jsonl").write_text('{"reason": "none"}\n'),
    "a file added": lambda folder: (folder / "more.jsonl").write_text("{}\n"),
}
EXPORT_MANIFESTS: dict[str, OnFolder] = {
    "the manifest removed": lambda folder: (folder / MANIFEST).unlink(),
    "the manifest's rows removed": edited_json(MANIFEST, lambda facts: facts.update(rows={})),
    "a digest of the manifest": edited_json(MANIFEST, lambda facts: facts["files"].update({"README.md": "0" * 64})),
}


UNSEEN: dict[str, set[str]] = {
    "SFT rows": {
        "question reworded",
        "answer replaced",
        "choices reordered",
        "thought reworded",
        "code with a comment",
        "an edit invented",
        "final thought reworded",
        "loss policy flipped",
        "mode changed",
        "family changed",
        "protocol changed",
        "a check removed",
        "a check invented",
        "a check's detail reworded",
        "a check's version",
        "calls of the policy",
        "cost lowered",
        "model renamed",
        "sandbox's digest",
        "prompt's digest",
        "sampling changed",
        "code version",
        "source's row",
        "trajectory's id",
        "sample's id",
        "number of the question's images",
        "an image's parent removed",
        "an image's maker",
        "an image's size",
        "an image's file name",
        "a pixel of the question, digest too",
    },
    "RL rows": {
        "question reworded",
        "prompt reworded",
        "answer replaced",
        "choices reordered",
        "grader's tolerance",
        "grader's unit",
        "grader's order",
        "student renamed",
        "suitability",
        "suitability's votes",
        "visual search",
        "a box moved",
        "a box removed",
        "source's row",
        "sample's id",
        "a pixel, digest too",
    },
    "rows of an export": {
        "the answer",
        "a loss flag flipped",
        "a loss flag removed",
        "the question",
        "the system's prompt",
        "the row's id",
        "a row removed",
        "a row twice",
        "order of two rows",
        "a column added",
        "order of a row's columns",
    },
    "rows of an export of prompts": {
        "the answer",
        "grader's kind",
        "grader's tolerance",
        "another answer accepted",
        "the prompt's text",
        "pass rate",
        "licence",
        "a row removed",
        "a row twice",
        "images swapped",
    },
    "files of an export": {"an image's pixel", "a name twice in a row", "the README", "the rejects"},
    "further rows": {
        "ids of two rows swapped",
        "look-alike letters in the answer",
        "an invisible character in the answer",
        "a blank after the question",
        "letters decomposed",
        "the answer's case",
        "a score in its tenth digit",
        "a null for an error without words",
    },
    "files": {
        "a byte of a file",
        "the schema's metadata",
        "other compression",
        "other row groups",
        "columns reordered",
        "a file of rows added below",
        "an empty shard added",
        "a loading script added",
        "a licence added",
    },
}
"""Kinds that no content contradicts: who rewrites the manifest, too, is found by the published digest only."""
