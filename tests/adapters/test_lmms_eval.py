"""lmms-eval, unchanged, evaluates a model with its tools through `darkroom agent serve`: the rows of
`darkroom.train.evaluate`.

Its own task for V* is run on a file of this machine with V*'s columns; only where the file lies is changed.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features, Image, Value

from tests.adapters.coloured_signs import N_QUESTIONS, WRONG, questions, vstar_text, write_vstar
from tests.adapters.conftest import Evaluate, Install

VERSION = "0.7.3"


def write_parquet(file: Path) -> Path:
    """The questions in V*'s columns."""
    rows = [
        {
            "image": {"bytes": question.file, "path": None},
            "text": vstar_text(question),
            "label": question.label,
            "category": "direct_attributes",
            "question_id": str(number),
        }
        for number, question in enumerate(questions())
    ]
    texts = ("text", "label", "category", "question_id")
    schema = Features({"image": Image(), **dict.fromkeys(texts, Value("string"))}).arrow_schema
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    return file


def their_task(python: Path, parquet: Path, folder: Path) -> Path:
    """lmms-eval's own task for V*, on our file."""
    find = "import lmms_eval, pathlib; print(pathlib.Path(lmms_eval.__file__).parent)"
    found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.split()[-1]
    theirs = Path(found) / "tasks" / "vstar_bench"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_text((theirs / "utils.py").read_text())
    text = (theirs / "_default_template_yaml").read_text()
    text = re.sub(
        "dataset_path: .*", f"dataset_path: parquet\ndataset_kwargs: {{data_files: {{test: {parquet}}}}}", text
    )
    metric = "metric_list:\n  - metric: vstar_overall_acc\n    aggregation: !function utils.vstar_aggregate_results\n"
    task = f"{re.sub('task: .*', 'task: vstar_here', text)}\n{metric}    higher_is_better: true\n"
    (folder / "vstar_here.yaml").write_text(task)
    return folder


def test_the_rows_are_those_of_our_evaluation(
    install: Install, agent: str, evaluated: Evaluate, tmp_path: Path
) -> None:
    # its code imports a private module of filelock, which newer versions do not have
    left_out = ("torchvision", "decord", "yt-dlp", "wandb")
    python = install(f"lmms-eval-{VERSION}", f"lmms-eval=={VERSION}", "filelock<3.20", left_out=left_out)
    tasks = their_task(python, write_parquet(tmp_path / "vstar.parquet"), tmp_path / "tasks" / "vstar_here")
    arguments = f"base_url={agent},api_key=none,model_version=colours,timeout=300"
    command = [python, "-m", "lmms_eval", "--model", "openai", "--model_args", arguments, "--tasks", "vstar_here"]
    options = ["--include_path", tasks.parent, "--batch_size", "1", "--log_samples", "--output_path", tmp_path / "out"]
    offline = {"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([*command, *options], env=offline, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (samples,) = (tmp_path / "out").rglob("*samples*.jsonl")
    theirs = sorted(map(json.loads, samples.read_text().splitlines()), key=lambda sample: sample["doc_id"])
    scored = [sample["vstar_overall_acc"] for sample in theirs]
    ours = evaluated("vstar_bench", write_vstar(tmp_path / "vstar"))
    assert [(one["prediction"], one["score"] == 1.0) for one in scored] == ours
    assert [right for _, right in ours] == [number != WRONG for number in range(N_QUESTIONS)]
