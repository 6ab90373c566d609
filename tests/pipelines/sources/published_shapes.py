"""Datasets as their authors publish them: names, columns and folders are real, the two images and the words are not."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pillow, ImageDraw

_TEXT = Value("string")
_URL = "http://images.cocodataset.org/train2017/"


class Published(NamedTuple):
    """What writes a shape into a folder, and what it is in samples: question, answer, number of images."""

    write: Callable[[Path], Path | None]
    samples: list[tuple[str, str, int]]
    split: str | None


PUBLISHED: dict[str, Published] = {}


def published(
    name: str, *samples: tuple[str, str, int], split: str | None = None
) -> Callable[[Callable[[Path], Path | None]], None]:
    def add(write: Callable[[Path], Path | None]) -> None:
        PUBLISHED[name] = Published(write, list(samples), split)

    return add


def picture(seed: int = 0) -> bytes:
    image = Pillow.new("RGB", (160, 120), (40 * seed % 250, 120, 200))
    ImageDraw.Draw(image).rectangle((120, 90, 124, 93), fill=(250, 10, seed % 250))
    data = io.BytesIO()
    image.save(data, "JPEG", quality=95)
    return data.getvalue()


def put(folder: Path, files: dict[str, Any]) -> None:
    """Bytes, text, or what JSON holds."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)


def table(path: Path, rows: list[dict[str, Any]], **features: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {"image": Image(), **features}
    columns = {name: known.get(name, _TEXT) for name in rows[0]}
    Dataset.from_list(rows, features=Features(columns)).to_parquet(path)


def lines(*rows: Any) -> str:
    return "\n".join(map(json.dumps, rows))


def struct(seed: int = 0) -> dict[str, Any]:
    return {"bytes": picture(seed), "path": f"{seed}.jpg"}


def instances(images: list[dict[str, Any]], annotations: list[dict[str, Any]]) -> dict[str, Any]:
    categories = [
        {"supercategory": "shape", "id": 3, "name": "square"},
        {"supercategory": "shape", "id": 9, "name": "dot"},
    ]
    return {
        "info": {"year": 2017},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": categories,
    }


# --- boxes


@published(
    "COCO instances",
    ("What is in the box (120, 90, 125, 94)?", "square", 1),
    ("What is in the box (10, 20, 30, 50)?", "dot", 1),
    split="train",
)
def _(folder: Path) -> None:
    image = {
        "license": 4,
        "file_name": "000000391895.jpg",
        "coco_url": f"{_URL}000000391895.jpg",
        "height": 120,
        "width": 160,
    }
    image |= {
        "date_captured": "2013-11-14 11:18:45",
        "flickr_url": "http://farm9.staticflickr.com/8186/a.jpg",
        "id": 391895,
    }
    common = {"image_id": 391895, "iscrowd": 0, "segmentation": [[120, 90, 125, 94]], "area": 20.0}
    annotations = [
        {**common, "bbox": [120.0, 90.0, 5.0, 4.0], "category_id": 3, "id": 156},
        {**common, "bbox": [10.0, 20.0, 20.0, 30.0], "category_id": 9, "id": 157},
    ]
    for split in ("train", "val"):
        put(
            folder,
            {
                f"annotations/instances_{split}2017.json": instances([image], annotations),
                f"{split}2017/000000391895.jpg": picture(),
            },
        )


@published("COCO captions", ("Describe the image in one sentence.", "A red square.", 1))
def _(folder: Path) -> Path:
    content = {
        "info": {"year": 2014},
        "licenses": [],
        "images": [
            {"license": 5, "file_name": "COCO_train2014_000000057870.jpg", "height": 120, "width": 160, "id": 57870}
        ],
        "annotations": [
            {"image_id": 57870, "id": 787980, "caption": "A red square."},
            {"image_id": 57870, "id": 789366, "caption": "A small square on blue."},
        ],
    }
    put(folder, {"annotations/captions_train2014.json": content})
    put(folder, {"train2014/COCO_train2014_000000057870.jpg": picture()})
    return folder / "annotations" / "captions_train2014.json"


@published("LVIS", ("What is in the box (120, 90, 125, 94)?", "square", 1))
def _(folder: Path) -> None:
    image = {"id": 391895, "license": 3, "coco_url": f"{_URL}000000391895.jpg", "height": 120, "width": 160}
    image |= {"neg_category_ids": [9], "not_exhaustive_category_ids": [], "flickr_url": "", "date_captured": ""}
    annotation = {"area": 20.0, "id": 1, "image_id": 391895, "bbox": [120.0, 90.0, 5.0, 4.0], "category_id": 3}
    content = instances([image], [{**annotation, "segmentation": [[120.0, 90.0, 125.0, 94.0]]}])
    for category in content["categories"]:
        category |= {
            "frequency": "c",
            "synset": f"{category['name']}.n.01",
            "synonyms": [],
            "def": "",
            "image_count": 1,
        }
    put(folder, {"lvis_v1_train.json": content, "train2017/000000391895.jpg": picture()})


@published("Roboflow's COCO", ("What is in the box (120, 90, 125, 94)?", "square", 1), split="valid")
def _(folder: Path) -> None:
    annotation = {
        "id": 0,
        "image_id": 0,
        "category_id": 3,
        "bbox": [120, 90, 5, 4],
        "area": 20,
        "segmentation": [],
        "iscrowd": 0,
    }
    for split in ("train", "valid", "test"):
        content = instances(
            [{"id": 0, "license": 1, "file_name": "a_jpg.rf.0.jpg", "height": 120, "width": 160}], [annotation]
        )
        put(folder, {f"{split}/_annotations.coco.json": content, f"{split}/a_jpg.rf.0.jpg": picture()})


@published(
    "YOLO",
    ("What is in the box (120, 90, 125, 105)?", "square", 1),
    ("What is in the box (40, 30, 120, 90)?", "dot", 1),
    split="train",
)
def _(folder: Path) -> None:
    put(
        folder,
        {"data.yaml": "path: ../datasets/shapes\ntrain: images/train\nval: images/val\nnc: 2\nnames: [square, dot]\n"},
    )
    labels = {
        "train": "0 0.765625 0.8125 0.03125 0.125\n1 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n",
        "val": "1 0.5 0.5 0.1 0.1\n",
    }
    for split, text in labels.items():
        put(folder, {f"labels/{split}/a.txt": text, f"images/{split}/a.jpg": picture()})


@published("Pascal VOC", ("What is in the box (120, 90, 125, 94)?", "square", 1))
def _(folder: Path) -> None:
    box = "<bndbox><xmin>121</xmin><ymin>91</ymin><xmax>125</xmax><ymax>94</ymax></bndbox>"
    thing = (
        f"<object><name>square</name><pose>Left</pose><truncated>0</truncated><difficult>0</difficult>{box}</object>"
    )
    size = "<size><width>160</width><height>120</height><depth>3</depth></size>"
    head = "<folder>VOC2007</folder><filename>000005.jpg</filename>"
    put(
        folder,
        {
            "Annotations/000005.xml": f"<annotation>{head}{size}{thing}</annotation>",
            "ImageSets/Main/trainval.txt": "000005\n",
            "JPEGImages/000005.jpg": picture(),
        },
    )


@published(
    "LabelMe", ("What is in the box (120, 90, 125, 94)?", "square", 1), ("What is in the box (1, 2, 30, 40)?", "dot", 1)
)
def _(folder: Path) -> None:
    shape = {"group_id": None, "flags": {}, "description": ""}
    shapes = [
        {"label": "square", "points": [[125.0, 94.0], [120.0, 90.0]], "shape_type": "rectangle", **shape},
        {"label": "dot", "points": [[1.0, 2.0], [30.0, 3.0], [4.0, 40.0]], "shape_type": "polygon", **shape},
    ]
    content = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": "..\\img\\a.jpg", "imageData": None}
    put(folder, {"ann/a.json": {**content, "imageHeight": 120, "imageWidth": 160}, "img/a.jpg": picture()})


@published("COCO-Text", ("What does the text in the box (120, 90, 125, 94) say?", "EXIT", 1))
def _(folder: Path) -> None:
    images = [{"id": 1, "file_name": "COCO_train2014_000000000001.jpg", "width": 160, "height": 120, "set": "train"}]
    annotation = {
        "id": 7,
        "image_id": 1,
        "bbox": [120.0, 90.0, 5.0, 4.0],
        "utf8_string": "EXIT",
        "legibility": "legible",
    }
    put(folder, {"cocotext.v2.json": {"images": images, "annotations": [annotation], "categories": [], "info": {}}})
    put(folder, {"train2014/COCO_train2014_000000000001.jpg": picture()})


# --- questions with an object at the top, and in two files


@published("VQA v2", ("What color is the square?", "red", 1), ("How many squares?", "1", 1))
def _(folder: Path) -> None:
    head = {"info": {"version": "2.0"}, "data_type": "mscoco", "data_subtype": "train2014", "license": {"name": "CC"}}
    questions = [
        {"image_id": 458752, "question": "What color is the square?", "question_id": 458752000},
        {"image_id": 458752, "question": "How many squares?", "question_id": 458752001},
    ]
    annotations = [
        {
            "question_type": "what color is the",
            "multiple_choice_answer": answer,
            "answers": [{"answer": answer, "answer_confidence": "yes", "answer_id": n + 1} for n in range(10)],
            "image_id": 458752,
            "answer_type": "other",
            "question_id": question["question_id"],
        }
        for question, answer in zip(questions, ("red", "1"), strict=True)
    ]
    task = {"task_type": "Open-Ended", "questions": questions}
    put(folder, {"v2_OpenEnded_mscoco_train2014_questions.json": {**head, **task}})
    put(folder, {"v2_mscoco_train2014_annotations.json": {**head, "annotations": annotations}})
    put(folder, {"train2014/COCO_train2014_000000458752.jpg": picture()})


@published("TextVQA", ("what is the brand?", "nokia", 1))
def _(folder: Path) -> None:
    row = {
        "question": "what is the brand?",
        "image_id": "0054c91397f2fe05",
        "image_classes": ["Mobile phone"],
        "flickr_original_url": "https://farm6.staticflickr.com/2891/a_o.jpg",
        "flickr_300k_url": "https://c4.staticflickr.com/3/2891/a_z.jpg",
        "image_width": 160,
        "image_height": 120,
        "answers": ["nokia"] * 10,
        "question_tokens": ["what", "is", "the", "brand"],
        "question_id": 0,
        "set_name": "train",
    }
    content = {"dataset_type": "train", "dataset_name": "textvqa", "dataset_version": "0.5.1", "data": [row]}
    put(folder, {"TextVQA_0.5.1_train.json": content, "train_images/0054c91397f2fe05.jpg": picture()})


@published("DocVQA", ("what is the date mentioned?", "1/8/93", 1))
def _(folder: Path) -> None:
    row = {
        "questionId": 337,
        "question": "what is the date mentioned?",
        "question_types": ["handwritten", "form"],
        "image": "documents/xnbl0037_1.png",
        "docId": 279,
        "ucsf_document_id": "xnbl0037",
        "ucsf_document_page_no": "1",
        "answers": ["1/8/93"],
        "data_split": "train",
    }
    content = {"dataset_name": "SP-DocVQA", "dataset_version": "1.0", "dataset_split": "train", "data": [row]}
    put(folder, {"train_v1.0_withQT.json": content, "documents/xnbl0037_1.png": picture()})


@published("GQA", ("Is it overcast?", "no", 1))
def _(folder: Path) -> None:
    row = {
        "semantic": [{"operation": "select", "dependencies": [], "argument": "scene"}],
        "entailed": ["02930160"],
        "equivalent": ["02930152"],
        "question": "Is it overcast?",
        "imageId": "2405722",
        "isBalanced": True,
        "groups": {"global": None, "local": "13-weather_overcast"},
        "answer": "no",
        "semanticStr": "select: scene->verify weather: overcast [0]",
        "annotations": {"answer": {}, "question": {}, "fullAnswer": {}},
        "types": {"detailed": "weatherVerify", "semantic": "global", "structural": "verify"},
        "fullAnswer": "No, it is clear.",
    }
    put(folder, {"questions1.2/train_balanced_questions.json": {"02930152": row}, "images/2405722.jpg": picture()})


@published("MathVista", ("What fraction?", "1/2", 1), ("Which one?", "B", 1))
def _(folder: Path) -> None:
    common = {
        "unit": None,
        "precision": 1.0,
        "metadata": {"category": "general-vqa", "split": "testmini"},
        "query": "Hint: …",
    }
    rows = {
        "1": {**common, "question": "What fraction?", "image": "images/1.jpg", "choices": None, "answer": "1/2"},
        "2": {**common, "question": "Which one?", "image": "images/1.jpg", "choices": ["No", "Yes"], "answer": "Yes"},
    }
    for pid, row in rows.items():
        row |= {"pid": pid, "question_type": "free_form", "answer_type": "text"}
    put(folder, {"testmini.json": rows, "images/1.jpg": picture()})


@published("Visual Genome", ("What color is it?", "Red.", 1))
def _(folder: Path) -> None:
    pair = {
        "a_objects": [],
        "question": "What color is it?",
        "image_id": 1,
        "qa_id": 986769,
        "answer": "Red.",
        "q_objects": [],
    }
    put(folder, {"question_answers.json": [{"id": 1, "qas": [pair]}], "VG_100K/1.jpg": picture()})


@published("A-OKVQA", ("What is it?", "B", 1))
def _(folder: Path) -> None:
    row = {
        "split": "train",
        "image_id": 299207,
        "question_id": "22MexNkBPpdZGX6sxbxVBH",
        "question": "What is it?",
        "choices": ["dot", "square", "line", "ring"],
        "correct_choice_idx": 1,
        "direct_answers": ["square"] * 10,
        "difficult_direct_answer": False,
        "rationales": ["It has four sides."],
    }
    put(folder, {"aokvqa_v1p0_train.json": [row], "train2017/000000299207.jpg": picture()})


# --- conversations


@published("LLaVA, with rows of text alone", ("What colour?", "Red", 1), ("Say hello.", "Hello", 0))
def _(folder: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nWhat colour?"}, {"from": "gpt", "value": "Red"}]
    words = [{"from": "human", "value": "Say hello."}, {"from": "gpt", "value": "Hello"}]
    rows = [{"id": "1", "image": "coco/train2017/1.jpg", "conversations": turns}, {"id": "2", "conversations": words}]
    put(folder, {"llava_v1_5_mix665k.json": rows, "coco/train2017/1.jpg": picture()})


@published("OpenAI's messages", ("What colour?", "Red", 1))
def _(folder: Path) -> Path:
    url = f"data:image/jpeg;base64,{base64.b64encode(picture()).decode()}"
    parts = [
        {"type": "text", "text": "What colour?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    put(
        folder,
        {
            "train.jsonl": lines(
                {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "Red"}]}
            )
        },
    )
    return folder / "train.jsonl"


@published("Qwen's messages", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    parts = [{"type": "image", "image": "images/b.jpg"}, {"type": "text", "text": "What colour?"}]
    reply = {"role": "assistant", "content": [{"type": "text", "text": "Red"}]}
    put(
        folder,
        {"train.jsonl": lines({"messages": [{"role": "user", "content": parts}, reply]}), "images/b.jpg": picture()},
    )


@published("ms-swift", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    messages = [{"role": "user", "content": "<image>What colour?"}, {"role": "assistant", "content": "Red"}]
    put(folder, {"train.jsonl": lines({"messages": messages, "images": ["b.jpg"]}), "b.jpg": picture()})


@published("LLaVA-OneVision", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nWhat colour?"}, {"from": "gpt", "value": "Red"}]
    row = {"id": "1", "image": struct(), "conversations": turns, "data_source": "sroie"}
    table(folder / "sroie" / "train-00000-of-00001.parquet", [row], conversations=[{"from": _TEXT, "value": _TEXT}])


# --- tables


@published("ChartQA", ("How many bars?", "14", 1), split="train")
def _(folder: Path) -> None:
    for split in ("train", "val", "test"):
        row = {"image": struct(), "query": "How many bars?", "label": ["14"], "human_or_machine": 0}
        path = folder / "data" / f"{split}-00000-of-00001.parquet"
        table(path, [row], label=[_TEXT], human_or_machine=Value("int64"))


@published("ScienceQA", ("Which one?", "B", 1), ("Which word?", "A", 0), split="test")
def _(folder: Path) -> None:
    rest = {"hint": "", "task": "closed choice", "grade": "grade2", "subject": "natural science", "topic": "biology"}
    rest |= {"category": "Plants", "skill": "Identify", "lecture": "", "solution": "It is the second."}
    rows = [
        {"image": struct(), "question": "Which one?", "choices": ["dot", "square"], "answer": 1, **rest},
        {"image": None, "question": "Which word?", "choices": ["a", "b"], "answer": 0, **rest},
    ]
    for split in ("train", "test"):
        table(folder / "data" / f"{split}-00000-of-00001-0.parquet", rows, choices=[_TEXT], answer=Value("int8"))


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
    return Dataset.from_list(rows, features=Features({"image": Image(), "question": _TEXT, "answer": _TEXT}))


@published("save_to_disk", ("What colour?", "red", 1))
def _(folder: Path) -> None:
    _saved().save_to_disk(folder)


@published("save_to_disk of several splits", ("What colour?", "red", 1), split="seen")
def _(folder: Path) -> None:
    DatasetDict({"seen": _saved(), "unseen": _saved()}).save_to_disk(folder)


# --- spellings


@published("UTF-16 and gzip", ("What colour?", "red", 1))
def _(folder: Path) -> None:
    import gzip

    text = '{"image": "a.jpg", "question": "What colour?", "answer": "red"}\r\n'
    put(folder, {"questions.jsonl.gz": gzip.compress(text.encode("utf-16")), "a.jpg": picture()})


@published("a printed list named .jsonl", ("What colour?", "red", 1), ("Which?", "blue", 1))
def _(folder: Path) -> None:
    rows = [
        {"image": "a.jpg", "question": "What colour?", "answer": "red"},
        {"image": "a.jpg", "question": "Which?", "answer": "blue"},
    ]
    put(folder, {"questions.jsonl": json.dumps(rows, indent=2), "a.jpg": picture()})
