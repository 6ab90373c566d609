"""Tables and their spellings: parquet, CSV, TSV, WebDataset, saved datasets, UTF-16, gzip."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from pathlib import Path

from datasets import Dataset, DatasetDict, Features, Image, Value

from tests.pipelines.sources.published_files import TEXT, Shapes, lines, picture, put, struct, table

TABLES = Shapes()
published = TABLES.add


@published("ChartQA", ("How many bars?", "14", 1), split="train")
def _(folder: Path) -> None:
    for split in ("train", "val", "test"):
        row = {"image": struct(), "query": "How many bars?", "label": ["14"], "human_or_machine": 0}
        path = folder / "data" / f"{split}-00000-of-00001.parquet"
        table(path, [row], label=[TEXT], human_or_machine=Value("int64"))


@published("ScienceQA", ("Which one?", "B", 1), ("Which word?", "A", 0), split="test")
def _(folder: Path) -> None:
    rest = {"hint": "", "task": "closed choice", "grade": "grade2", "subject": "natural science", "topic": "biology"}
    rest |= {"category": "Plants", "skill": "Identify", "lecture": "", "solution": "It is the second."}
    rows = [
        {"image": struct(), "question": "Which one?", "choices": ["dot", "square"], "answer": 1, **rest},
        {"image": None, "question": "Which word?", "choices": ["a", "b"], "answer": 0, **rest},
    ]
    for split in ("train", "test"):
        table(folder / "data" / f"{split}-00000-of-00001-0.parquet", rows, choices=[TEXT], answer=Value("int8"))


@published("MMMU", ("What is in the first?", "B", 2))
def _(folder: Path) -> None:
    row = {"id": "dev_Art_1", "question": "What is in the first?", "options": "['dot', 'square']", "explanation": ""}
    row |= {f"image_{n}": struct(n) if n < 3 else None for n in range(1, 8)}
    row |= {"img_type": "['Paintings']", "answer": "B", "topic_difficulty": "Easy", "question_type": "multiple-choice"}
    row |= {"subfield": "Drawing"}
    table(folder / "Art" / "dev-00000-of-00001.parquet", [row], **{f"image_{n}": Image() for n in range(1, 8)})


@published("VLMEvalKit's TSV", ("What colour?", "A", 1))
def _(folder: Path) -> None:
    image = base64.b64encode(picture()).decode()
    head = "index\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\timage\tsource\tl2-category\tcomment\tsplit"
    put(
        folder,
        {"MMBench_DEV_EN.tsv": f"{head}\n0\tWhat colour?\t\tred\tblue\tpink\tgrey\tA\tcolour\t{image}\ta\tb\tc\td\n"},
    )


@published("CSV beside images", ("What colour, or which?", "007", 1))
def _(folder: Path) -> None:
    put(
        folder,
        {
            "metadata.csv": '\ufefffile_name,question,answer\nimg/a.jpg,"What colour, or which?",007\n',
            "img/a.jpg": picture(),
        },
    )


@published("ImageFolder", ("What colour?", "red", 1), split="train")
def _(folder: Path) -> None:
    for split in ("train", "test"):
        row = {"file_name": "a.jpg", "question": "What colour?", "answer": "red"}
        put(folder, {f"{split}/metadata.jsonl": lines(row), f"{split}/a.jpg": picture()})


@published("WebDataset", ("What colour?", "red", 1), ("Which colour?", "blue", 1))
def _(folder: Path) -> None:
    def member(name: str, data: bytes) -> tuple[tarfile.TarInfo, io.BytesIO]:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        return info, io.BytesIO(data)

    folder.mkdir(exist_ok=True)
    with tarfile.open(folder / "shard-000000.tar", "w") as archive:
        first = {"question": "What colour?", "answer": "red", "id": 1}
        second = {"answer": "blue", "question": "Which colour?"}
        archive.addfile(*member("000000.jpg", picture()))
        archive.addfile(*member("000000.json", json.dumps(first).encode()))
        archive.addfile(*member("000001.json", json.dumps(second).encode()))
        archive.addfile(*member("000001.jpg", picture(1)))


def _saved() -> Dataset:
    rows = [{"image": struct(), "question": "What colour?", "answer": "red"}]
    return Dataset.from_list(rows, features=Features({"image": Image(), "question": TEXT, "answer": TEXT}))


@published("save_to_disk", ("What colour?", "red", 1))
def _(folder: Path) -> None:
    _saved().save_to_disk(folder)


@published("save_to_disk of several splits", ("What colour?", "red", 1), split="seen")
def _(folder: Path) -> None:
    DatasetDict({"seen": _saved(), "unseen": _saved()}).save_to_disk(folder)


# --- spellings


@published("UTF-16 and gzip", ("What colour?", "red", 1))
def _(folder: Path) -> None:
    text = '{"image": "a.jpg", "question": "What colour?", "answer": "red"}\r\n'
    put(folder, {"questions.jsonl.gz": gzip.compress(text.encode("utf-16")), "a.jpg": picture()})


@published("a printed list named .jsonl", ("What colour?", "red", 1), ("Which?", "blue", 1))
def _(folder: Path) -> None:
    rows = [
        {"image": "a.jpg", "question": "What colour?", "answer": "red"},
        {"image": "a.jpg", "question": "Which?", "answer": "blue"},
    ]
    put(folder, {"questions.jsonl": json.dumps(rows, indent=2), "a.jpg": picture()})
