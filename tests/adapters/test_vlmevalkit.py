"""VLMEvalKit, unchanged, evaluates a model with its tools through `darkroom agent serve`: the rows of
`darkroom.train.evaluate`.

Its classes for V* and HR-Bench are run on files of this machine with the benchmarks' columns. The package `ms-vlmeval`
is OpenCompass' program as ModelScope publishes it on PyPI.
"""

from __future__ import annotations

import base64
import csv
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.adapters.coloured_signs import LETTERS, N_QUESTIONS, WRONG, questions, write_vstar
from tests.adapters.conftest import Evaluate, Install

VERSION = "0.0.20"
PROGRAM = Path(__file__).with_name("vlmevalkit_program.py")
CLASSES = {"vstar_here": "ImageMCQDataset", "hr_bench_here": "HRBenchDataset"}


def hr_bench_rows() -> Iterator[dict[str, Any]]:
    """HR-Bench's columns: every question four times, its options moved on by one."""
    for number, question in enumerate(questions()):
        right = question.options[LETTERS.index(question.label)]
        for cycle in range(len(LETTERS)):
            options = [*question.options[cycle:], *question.options[:cycle]]
            yield {
                "index": number * len(LETTERS) + cycle,
                "question": "What colour is the sign?",
                "answer": LETTERS[options.index(right)],
                "category": ("single", "cross")[number % 2],
                **dict(zip(LETTERS, options, strict=True)),
                "cycle_category": str(cycle),
                "image": base64.b64encode(question.file).decode(),
            }


def vstar_rows() -> Iterator[dict[str, Any]]:
    """V* as VLMEvalKit has it: the options in columns."""
    for number, question in enumerate(questions()):
        yield {
            "index": number,
            "question": "What colour is the sign?",
            **dict(zip(LETTERS, question.options, strict=True)),
            "answer": question.label,
            "category": "direct_attributes",
            "image": base64.b64encode(question.file).decode(),
        }


def write_table(file: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    first, *others = rows
    with file.open("w", newline="") as opened:
        table = csv.DictWriter(opened, first.keys(), delimiter="\t")
        table.writeheader()
        table.writerows([first, *others])


def judged(file: Path) -> list[tuple[str, bool]]:
    """Predictions and verdicts that VLMEvalKit wrote, in the order of its questions."""
    with file.open(newline="") as opened:
        rows = sorted(csv.DictReader(opened, delimiter="\t"), key=lambda row: int(row["index"]))
    return [(row["prediction"], row["hit"] == "1") for row in rows]


def test_the_rows_are_those_of_our_evaluation(
    install: Install, agent: str, evaluated: Evaluate, tmp_path: Path
) -> None:
    torchvision = "torchvision==0.28.0"  # of the locked torch
    python = install(f"ms-vlmeval-{VERSION}", f"ms-vlmeval=={VERSION}", torchvision)
    tables = tmp_path / "tables"
    tables.mkdir()
    write_table(tables / "vstar_here.tsv", vstar_rows())
    write_table(tables / "hr_bench_here.tsv", hr_bench_rows())
    model = {"class": "LMDeployAPI", "model": "colours", "api_base": f"{agent}/chat/completions", "key": "none"}
    classes = {name: {"class": kind, "dataset": name} for name, kind in CLASSES.items()}
    (tmp_path / "config.json").write_text(json.dumps({"model": {"agent": model}, "data": classes}))
    command = [python, PROGRAM, "--config", "config.json", "--judge", "exact_matching", "--work-dir", "out"]
    own = {"LMUData": str(tables), "PRED_FORMAT": "tsv", "HF_HUB_OFFLINE": "1"}
    environment = {**own, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    theirs = {name: judged(*(tmp_path / "out").rglob(f"*{name}_exact_matching_result.tsv")) for name in CLASSES}

    assert theirs["vstar_here"] == evaluated("vstar_bench", write_vstar(tmp_path / "vstar"))
    assert [right for _, right in theirs["vstar_here"]] == [number != WRONG for number in range(N_QUESTIONS)]
    (tmp_path / "hr_bench").mkdir()
    pq.write_table(pa.Table.from_pylist(list(hr_bench_rows())), tmp_path / "hr_bench/hr_bench_4k.parquet")
    assert theirs["hr_bench_here"] == evaluated("hr_bench_4k", tmp_path / "hr_bench")
    assert sum(right for _, right in theirs["hr_bench_here"]) == len(LETTERS) * (N_QUESTIONS - 1)
