"""Rows of published annotation files: COCO and LVIS, YOLO, Pascal VOC, LabelMe, WebDataset.

Each reader turns one file into plain rows for the ordinary mapping:

    {"image": "a.jpg", "boxes": [{"bbox": [1200, 900, 50, 40], "label": "square"}], "category": "square",
     "question": "What is in the box {box}?", "answer": "square", "question_template": "what"}

Boxes without questions are asked about by a template, which the row names; ``{box}`` is filled after the conversion to
pixels. Not read: masks, keypoints, points and lines.
"""

import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from xml.etree import ElementTree

import yaml

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.jsonl import Row, opened, parsed_json, parsed_value
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.sources.splits import of_split

_READ = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif", ".jp2", ".ppm", ".mpo")
IMAGE_SUFFIXES = frozenset((*_READ, ".heic", ".heif", ".jxl", ".svg", ".psd"))
_DESCRIBE = "Describe the image in one sentence."
_YOLO_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "classes.txt", "obj.names")
_Row = Mapping[str, Any]


class PublishedKind(NamedTuple):
    """Files of a kind below a source's folder, and the rows of one of them."""

    files: str
    rows: Callable[[Path, SourceConfig], Iterator[_Row]]


def published_files(name: str, config: SourceConfig) -> list[Path]:
    """The annotation files of a source in its split. Raises ``SourceError`` where there are none."""
    folder = Path(config.path)
    patterns = (config.questions,) if isinstance(config.questions, str) else config.questions
    files = {
        file
        for pattern in patterns or (PUBLISHED[config.kind].files,)
        for file in ([Path(pattern)] if Path(pattern).is_absolute() else folder.glob(pattern))
        if file.is_file() and file.name not in _YOLO_NAMES
    }
    if not files:
        raise SourceError(f"source {name!r}: there are no files of the kind {config.kind} in {folder}")
    return of_split(sorted(files), folder, config.split)


def rows_of(path: Path, config: SourceConfig) -> Iterator[Row]:
    """The rows of one annotation file; a file that is not what its kind holds is one row with a problem."""
    number = 0
    try:
        for number, row in enumerate(PUBLISHED[config.kind].rows(path, config), 1):
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
    by_image: dict[Any, list[_Row]] = defaultdict(list)
    for annotation in content["annotations"]:
        by_image[annotation.get("image_id")].append(annotation)
    for image in content["images"]:
        name = image.get("file_name") or PurePosixPath(str(image.get("coco_url", ""))).name
        annotations = by_image.pop(image["id"], [])
        if captions := [one["caption"] for one in annotations if "caption" in one]:
            yield {"image": name, "question": _DESCRIBE, "answer": captions, "question_template": "caption"}
        uncounted = set(image.get("not_exhaustive_category_ids", ()))
        boxed = [
            {
                "bbox": one["bbox"],
                "label": labels.get(one.get("category_id"), ""),
                "text": one.get("utf8_string", ""),
                "skip": bool(one.get("iscrowd")),
                "uncounted": one.get("category_id") in uncounted,
            }
            for one in annotations
            if "bbox" in one
        ]
        yield from _asked(name, boxed, config)
    for image_id, annotations in by_image.items():
        yield from ({"image": None, "image_id": image_id} for _ in annotations)


def _asked(image: Any, objects: Sequence[_Row], config: SourceConfig) -> Iterator[_Row]:
    """Questions about the labelled boxes of one image."""
    by_label: dict[str, list[_Row]] = defaultdict(list)
    for one in objects:
        by_label[one["label"]].append(one)
        if "what" in config.ask:
            is_text = bool(one.get("text"))
            yield {
                "image": image,
                "boxes": [one],
                "category": "text" if is_text else one["label"],
                "question": "What does the text in the box {box} say?" if is_text else "What is in the box {box}?",
                "answer": one["text"] if is_text else one["label"],
                "question_template": "says" if is_text else "what",
                "skip": one.get("skip", False),
            }
    for label, same in by_label.items() if "how_many" in config.ask else ():
        yield {
            "image": image,
            "boxes": same,
            "category": label,
            "question": f"How many objects of the kind {label!r} are in the image?",
            "answer": len(same),
            "question_template": "how_many",
            "skip": any(one.get("skip") or one.get("uncounted") for one in same),
        }


def _yolo(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """One image's lines ``class cx cy w h``, or ``class x1 y1 x2 y2 x3 y3 …`` around a polygon, in fractions."""
    names, has_points = _yolo_classes(Path(config.path))
    objects = []
    for line in _text(path).splitlines():
        if not line.strip():
            continue
        number, *values = line.split()
        if not number.isdecimal() or int(number) not in names:
            raise ValueError(f"{line[:80]!r} begins with no class; there are {len(names)}")
        sides, label = [float(value) for value in values], names[int(number)]
        if len(sides) == 4 or has_points:
            x, y, width, height = sides[:4]
            box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        elif len(sides) >= 6 and len(sides) % 2 == 0:
            box = [min(sides[::2]), min(sides[1::2]), max(sides[::2]), max(sides[1::2])]
        else:
            raise ValueError(f"{line[:80]!r}: expected a class and four numbers, or a polygon")
        objects.append({"box": box, "label": label})
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
        for file in sorted(image.parent.glob(f"{_escaped(image.stem)}.*")):
            if file.suffix.lower() in IMAGE_SUFFIXES:
                return file.relative_to(folder).as_posix()
    return annotation.with_suffix(".jpg").name


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _voc(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """One image's objects; their pixels count from 1 and are inclusive."""
    text = path.read_bytes()
    if b"<!ENTITY" in text or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError("XML with entities or in UTF-16 is not read")
    annotation = ElementTree.fromstring(text)
    if annotation.tag != "annotation":
        return
    objects = []
    for one in annotation.iter("object"):
        x1, y1, x2, y2 = (float(one.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax"))
        skip = one.findtext("difficult", "0").strip() == "1"
        box = [max(0, x1 - 1), max(0, y1 - 1), x2, y2]
        objects.append({"box": box, "label": one.findtext("name", "").strip(), "skip": skip})
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
        kind, points = shape.get("shape_type", "polygon"), shape.get("points", ())
        if kind not in ("rectangle", "polygon", "circle", "rotation"):
            continue
        if kind == "circle":
            (x, y), (on_x, on_y) = points
            radius = ((on_x - x) ** 2 + (on_y - y) ** 2) ** 0.5
            points = [(x - radius, y - radius), (x + radius, y + radius)]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        objects.append({"box": [min(xs), min(ys), max(xs), max(ys)], "label": str(shape.get("label", ""))})
    yield from _asked(image, objects, config)


def _webdataset(path: Path, config: SourceConfig) -> Iterator[_Row]:
    """Consecutive members of one name: ``{"key": "000", "jpg": b"…", "json": {…}, "txt": "…"}``, in whatever order."""
    key: tuple[PurePosixPath, str] | None = None
    row: dict[str, Any] = {}
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            stem, _, field = name.name.partition(".")
            if not member.isfile() or not stem or not field:
                continue
            if key is not None and key != (name.parent, stem):
                yield row
                row = {}
            key = (name.parent, stem)
            content = archive.extractfile(member)
            row = {
                "key": str(name.parent / stem),
                **row,
                field.lower(): _member(field.lower(), content.read() if content else b""),
            }
    if row:
        yield row


def _member(field: str, data: bytes) -> Any:
    if field.endswith("json"):
        return parsed_value(data)[0]
    return data.decode("utf-8", "replace").strip() if field.endswith(("txt", "text", "cls", "caption")) else data


PUBLISHED = {
    "coco": PublishedKind("**/*.json", _coco),
    "yolo": PublishedKind("**/*.txt", _yolo),
    "voc": PublishedKind("**/*.xml", _voc),
    "labelme": PublishedKind("**/*.json", _labelme),
    "webdataset": PublishedKind("**/*.tar*", _webdataset),
}
