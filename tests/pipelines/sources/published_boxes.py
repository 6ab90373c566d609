"""Boxes and captions of images as their authors publish them: COCO and its kin, YOLO, Pascal VOC, LabelMe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipelines.sources.published_files import Shapes, picture, put

BOXES = Shapes()
published = BOXES.add
_URL = "https://images.example.org/train2017/"


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
        "flickr_url": "https://photos.example.org/8186/a.jpg",
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
