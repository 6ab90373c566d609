"""Rows of published annotation files: COCO and LVIS, YOLO, Pascal VOC, LabelMe, WebDataset.

Each reader turns one file into plain rows for the ordinary mapping:

    {"image": "a.jpg", "boxes": [{"bbox": [1200, 900, 50, 40], "label": "square"}], "category": "square",
     "question": "What is in the box {box}?", "answer": "square", "question_template": "what"}

Boxes without questions are asked about by a template, which the row names; ``{box}`` is filled after the conversion to
pixels. Not read: masks, keypoints; rows of crowds, difficult objects, points and lines have ``skip``.
"""

import glob
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

import yaml

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.columns import alternatives
from darkroom.pipelines.sources.jsonl import Row, opened, parsed_json, parsed_value
from darkroom.pipelines.sources.source_config import SourceConfig, of_split
from darkroom.pipelines.storage.row_files import by_key

_READ = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif", ".jp2", ".ppm", ".mpo")
IMAGE_SUFFIXES = frozenset((*_READ, ".heic", ".heif", ".jxl", ".svg", ".psd"))
_QUESTIONS = {
    "what": "What is in the box {box}?",
    "says": "What does the text in the box {box} say?",
    "how_many": "How many objects of the kind {label} are in the image?",
    "caption": "Describe the image in one sentence.",
}
_YOLO_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "classes.txt", "obj.names")
_Row = Mapping[str, Any]


def published_files(name: str, config: SourceConfig) -> list[Path]:
    """The annotation files of a source in its split. Raises ``SourceError`` where there are none."""
    folder = Path(config.path)
    files = {
        file
        for pattern in alternatives(config.questions) or (f"**/*{PUBLISHED[config.kind][0]}",)
        for file in ([Path(pattern)] if Path(pattern).is_absolute() else folder.glob(pattern))
        if file.is_file() and file.name not in _YOLO_NAMES
    }
    if not files:
        raise SourceError(f"source {name!r}: there are no files of the kind {config.kind} in {folder}")
    return of_split(sorted(files), folder, config.split, by_folder=config.kind in ("yolo", "voc", "labelme"))


def rows_of(path: Path, config: SourceConfig) -> Iterator[Row]:
    """The rows of one annotation file; a file that is not what its kind holds is one row with a problem."""
    number = 0
    try:
        for number, row in enumerate(PUBLISHED[config.kind][1](path, config), 1):
            yield number, row, ""
    except tarfile.TarError as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError) as error:  # XML's is a SyntaxError
        problem = f"not as the kind {config.kind} has it: {type(error).__name__} {error}"
        if config.kind == "coco":
            raise SourceError(f"{path}: {problem}") from error
        yield number + 1, path.name, problem


def _text(path: Path) -> str:
    with opened(path) as file:
        return file.read().decode("utf-8-sig", "replace")


def _coco(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """Instances, captions, or text (COCO-Text's ``utf8_string``); LVIS' images have a URL, no name."""
    content = parsed_json(path)
    if not isinstance(content, Mapping) or not {"images", "annotations"} <= set(content):
        raise SourceError(f"{path}: expected an object with `images` and `annotations`, as COCO has")
    labels = {category["id"]: str(category["name"]) for category in content.get("categories", ())}
    by_image = by_key((annotation.get("image_id"), annotation) for annotation in content["annotations"])
    for image in content["images"]:
        name = image.get("file_name") or PurePosixPath(str(image.get("coco_url", ""))).name
        annotations = by_image.pop(image["id"], [])
        if captions := [annotation["caption"] for annotation in annotations if "caption" in annotation]:
            yield {"image": name, "question": _QUESTIONS["caption"], "answer": captions, "question_template": "caption"}
        boxed = [
            {
                "bbox": annotation["bbox"],
                "label": labels.get(annotation.get("category_id"), ""),
                "text": annotation.get("utf8_string", ""),
                "skip": bool(annotation.get("iscrowd")),
                "uncounted": annotation.get("category_id") in image.get("not_exhaustive_category_ids", ()),
            }
            for annotation in annotations
            if "bbox" in annotation
        ]
        yield from _asked(name, boxed, config)
    for annotations in by_image.values():  # of images that are not listed: their rows have no image
        yield from (_row(None, [], "what", "unknown", "", skip=False) for _ in annotations)


def _asked(image: Any, objects: Sequence[_Row], config: SourceConfig) -> Iterator[_Row]:
    """Questions about the labelled boxes of one image."""
    for box in objects:
        text, label = box.get("text"), box["label"]
        if "what" in config.ask:
            fields = ("says", text, "text") if text else ("what", label, label)
            yield _row(image, [box], *fields, skip=box.get("skip", False))
    by_label = by_key((box["label"], box) for box in objects) if "how_many" in config.ask else {}
    for label, same in by_label.items():
        skip = any(box.get("skip") or box.get("uncounted") for box in same)
        yield _row(image, same, "how_many", len(same), label, skip=skip)


def _row(image: Any, boxes: Sequence[_Row], template: str, answer: Any, category: str, *, skip: bool) -> _Row:
    question = _QUESTIONS[template].replace("{label}", repr(category))
    fields = {"question": question, "answer": answer, "category": category, "question_template": template}
    return {"image": image, "boxes": boxes, **fields, "skip": skip}


def _yolo(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """One image's lines ``class cx cy w h``, or ``class x1 y1 x2 y2 x3 y3 …`` around a polygon, in fractions."""
    names, has_points = _yolo_classes(Path(config.path))
    objects = []
    for line in filter(str.strip, _text(path).splitlines()):
        number, *values = line.split()
        if not number.isdecimal() or int(number) not in names:
            raise ValueError(f"{line[:80]!r} begins with no class; there are {len(names)}")
        sides, label = [float(value) for value in values], names[int(number)]
        if len(sides) == 4 or has_points:
            box: _Row = dict(zip(("cx", "cy", "w", "h"), sides[:4], strict=True))
        elif len(sides) >= 6 and len(sides) % 2 == 0:
            box = {"points": [*zip(sides[::2], sides[1::2], strict=True)]}
        else:
            raise ValueError(f"{line[:80]!r}: expected a class and four numbers, or a polygon")
        objects.append({**box, "label": label})
    yield from _asked(_image_of(path, Path(config.path)), objects, config)


@lru_cache(maxsize=4)
def _yolo_classes(folder: Path) -> tuple[Mapping[int, str], bool]:
    """The classes' names by number, and whether lines go on with keypoints."""
    for file in (path for name in _YOLO_NAMES for path in sorted(folder.rglob(name))):
        if file.suffix not in (".yaml", ".yml"):
            return dict(enumerate(line.strip() for line in _text(file).splitlines() if line.strip())), False
        content = yaml.safe_load(_text(file)) or {}
        if names := content.get("names"):
            numbered = names.items() if isinstance(names, Mapping) else enumerate(names)
            return {int(number): str(label) for number, label in numbered}, "kpt_shape" in content
    raise SourceError(f"{folder}: YOLO's labels are numbers; their names belong in data.yaml (`names`) or classes.txt")


def _image_of(annotation: Path, folder: Path) -> str:
    """Path, relative to the folder, of an annotation's image: beside it, or below ``images`` for one in ``labels``."""
    parts = list(annotation.relative_to(folder).parts)
    labels = [number for number, part in enumerate(parts) if part == "labels"]
    images = [folder.joinpath(*parts[:number], "images", *parts[number + 1 :]) for number in labels]
    for image in (*reversed(images), annotation):
        for file in sorted(image.parent.glob(f"{glob.escape(image.stem)}.*")):
            if file.suffix.lower() in IMAGE_SUFFIXES:
                return file.relative_to(folder).as_posix()
    return annotation.with_suffix(".jpg").name


def _voc(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """One image's objects; their pixels count from 1 and are inclusive."""
    text = path.read_bytes()
    if b"<!ENTITY" in text or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("XML with entities or in UTF-16 is not read")
    annotation = ElementTree.fromstring(text)
    if annotation.tag != "annotation":
        return
    objects = []
    for thing in annotation.iter("object"):
        x1, y1, x2, y2 = (float(thing.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax"))
        skip = thing.findtext("difficult", "0").strip() == "1"
        box = {"xmin": max(0, x1 - 1), "ymin": max(0, y1 - 1), "xmax": x2, "ymax": y2}
        objects.append({**box, "label": thing.findtext("name", "").strip(), "skip": skip})
    yield from _asked(annotation.findtext("filename", "").strip() or f"{path.stem}.jpg", objects, config)


def _labelme(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """One image's shapes; of a polygon or circle the box around it. The image may be in the file."""
    content = parsed_json(path)
    if not isinstance(content, Mapping) or "shapes" not in content:
        return
    beside = (path.parent / str(content.get("imagePath", "")).replace("\\", "/")).resolve()
    folder = Path(config.path).resolve()
    is_there = beside.is_file() and beside.is_relative_to(folder)
    image = beside.relative_to(folder).as_posix() if is_there else content.get("imageData") or content.get("imagePath")
    objects = []
    for shape in content["shapes"]:
        kind, points = shape.get("shape_type", "polygon"), shape["points"]
        if kind == "circle":
            (x, y), (on_x, on_y) = points
            radius = ((on_x - x) ** 2 + (on_y - y) ** 2) ** 0.5
            points = [(x - radius, y - radius), (x + radius, y + radius)]
        skip = kind not in ("rectangle", "polygon", "circle", "rotation")
        objects.append({"points": points, "label": str(shape["label"]), "skip": skip})
    yield from _asked(image, objects, config)


def _webdataset(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """Consecutive members of one name: ``{"key": "000", "jpg": b"…", "json": {…}, "txt": "…"}``, in whatever order."""
    row: dict[str, Any] = {}
    with tarfile.open(path, "r:*") as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            name = PurePosixPath(member.name)
            stem, _, field = name.name.partition(".")
            key = str(name.parent / stem)
            if row and row["key"] != key:
                yield row
                row = {}
            if (content := archive.extractfile(member)) and field and stem:
                row |= {"key": key, field.lower(): _member(field.lower(), content.read())}
    if row:
        yield row


def _member(field: str, data: bytes) -> Any:
    if field.endswith("json"):
        return parsed_value(data)[0]
    return data.decode("utf-8", "replace").strip() if field.endswith(("txt", "text", "cls", "caption")) else data


PUBLISHED: Mapping[str, tuple[str, Callable[[Path, SourceConfig], Iterator[_Row]]]] = {
    "coco": (".json", _coco),
    "yolo": (".txt", _yolo),
    "voc": (".xml", _voc),
    "labelme": (".json", _labelme),
    "webdataset": (".tar*", _webdataset),
}
"""Each kind's files, and the rows of one of them."""
