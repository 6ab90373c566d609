"""lmms-eval, unchanged, evaluates a model with its tools through `darkroom agent serve`: the rows of `train.evaluate`.

Its own task for V* is run on a file of this machine with V*'s columns; only where the file lies is changed.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Features, Image, Value
from PIL import Image as Pillow
from PIL import ImageDraw

from pipelines.models.protocols import Thyme
from tests.adapters.conftest import Install
from tests.json_endpoint import JsonHandler, endpoint
from tests.served import served
from tests.train.evaluation.conftest import TARGET, desert
from tests.train.evaluation.test_endpoint import COLOURS
from train.evaluate import evaluate
from train.evaluation.settings import EvaluationSettings

VERSION = "0.7.3"
WRONG = 5
"""The question whose label is not the sign's colour."""
LOOK = Thyme().write_round(
    "I look.", f"Image.open(image_path).crop({TARGET}).save('c.png')\nprint('c.png')", first=True
)


class Model(JsonHandler):
    """Crops the sign, and says the letter of its colour."""

    def answer(self, body: dict[str, Any]) -> Any:
        user = [part for message in body["messages"] if message["role"] == "user" for part in message["content"]]
        images = [part["image_url"]["url"] for part in user if part["type"] == "image_url"]
        text = "".join(part.get("text", "") for part in user)
        said = LOOK if len(images) == 1 else letter_of(images[-1], text)
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage}


def letter_of(url: str, text: str) -> str:
    crop = Pillow.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    mean = np.asarray(crop, float).mean(axis=(0, 1))
    colour = min(COLOURS, key=lambda name: np.abs(mean - COLOURS[name]).sum())
    letter = re.search(rf"\(?([A-C])[.)] ?{colour}", text)
    return f"It is {colour}.</think>\n<answer>{letter[1] if letter else colour}</answer>"


@pytest.fixture
def url() -> Iterator[str]:
    with endpoint(Model) as url:
        yield url


@pytest.fixture
def agent(url: str, tmp_path: Path) -> Iterator[str]:
    home = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}
    with served("agent", "serve", "--url", url, "--model", "colours", env=home) as (_, address):
        yield address


@pytest.fixture
def questions(tmp_path: Path) -> tuple[Path, Path]:
    """V*'s columns as a parquet file, and V*'s files as its authors' program reads them."""
    shuffled, rows, lines = random.Random(0), [], []
    folder = tmp_path / "vstar"
    (folder / "direct_attributes").mkdir(parents=True)
    for number in range(12):
        colour, order, image, file = list(COLOURS)[number % 3], list(COLOURS), desert(number), io.BytesIO()
        ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[colour])
        image.save(file, "PNG")
        shuffled.shuffle(order)
        right = order.index(colour)
        label = "ABC"[(right + 1) % 3 if number == WRONG else right]
        options = " ".join(f"({letter}) {name}" for letter, name in zip("ABC", order, strict=True))
        about = {"text": f"What colour is the sign? {options}", "label": label, "category": "direct_attributes"}
        rows.append({"image": {"bytes": file.getvalue(), "path": None}, **about, "question_id": str(number)})
        name = f"direct_attributes/{number}.png"
        (folder / name).write_bytes(file.getvalue())
        (folder / name).with_suffix(".json").write_text(json.dumps({"bbox": [[*TARGET[:2], 60, 30]]}))
        lines.append(json.dumps({"image": name, **about, "question_id": str(number)}))
    (folder / "test_questions.jsonl").write_text("\n".join(lines))
    texts = ("text", "label", "category", "question_id")
    schema = Features({"image": Image(), **dict.fromkeys(texts, Value("string"))}).arrow_schema
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "vstar.parquet")
    return tmp_path / "vstar.parquet", folder


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
    install: Install, agent: str, url: str, questions: tuple[Path, Path], tmp_path: Path
) -> None:
    parquet, folder = questions
    # its code imports a private module of filelock, which newer versions do not have
    left_out = ("torchvision", "decord", "yt-dlp", "wandb")
    python = install(f"lmms-eval-{VERSION}", f"lmms-eval=={VERSION}", "filelock<3.20", left_out=left_out)
    tasks = their_task(python, parquet, tmp_path / "tasks" / "vstar_here")
    arguments = f"base_url={agent},api_key=none,model_version=colours,timeout=300"
    command = [python, "-m", "lmms_eval", "--model", "openai", "--model_args", arguments, "--tasks", "vstar_here"]
    options = ["--include_path", tasks.parent, "--batch_size", "1", "--log_samples", "--output_path", tmp_path / "out"]
    offline = {"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([*command, *options], env=offline, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (samples,) = (tmp_path / "out").rglob("*samples*.jsonl")
    theirs = sorted(map(json.loads, samples.read_text().splitlines()), key=lambda sample: sample["doc_id"])
    scored = [sample["vstar_overall_acc"] for sample in theirs]

    settings = EvaluationSettings(
        output=tmp_path / "report",
        url=url,
        model="colours",
        benchmarks=(("vstar_bench", folder),),
        home=tmp_path / "home_of_ours",
    )
    report = evaluate(settings)
    ours = pq.read_table(report.folder / "rollouts.parquet", columns=["answer", "right"]).to_pylist()
    assert [(one["prediction"], one["score"] == 1.0) for one in scored] == [
        (row["answer"], row["right"]) for row in ours
    ]
    assert [row["right"] for row in ours] == [number != WRONG for number in range(12)]
