"""A processor's files as the model's own publisher would have written them, also where torchvision is absent.

Without torchvision the processor in memory has no videos (``image_only.py``). vLLM and other trainers read a
checkpoint with the stock class all the same, and that class wants its video processor's settings.
"""

import json
from pathlib import Path
from typing import Any

STOCK = {
    "qwen2_vl": ("Qwen2VLProcessor", "Qwen2VLVideoProcessor"),
    "qwen2_5_vl": ("Qwen2_5_VLProcessor", "Qwen2VLVideoProcessor"),
    "qwen3_vl": ("Qwen3VLProcessor", "Qwen3VLVideoProcessor"),
}
"""By model type: the classes of its processor and of its video processor."""
_NAMES = ("auto_map", "processor_class", "image_processor_type", "video_processor_type")


def save_processor(processor: Any, folder: Path, *, model_type: str, base: Path | None = None) -> None:
    """Writes ``processor``; the settings of its videos are those of ``base``, the model that it began as.

    transformers 5 reads ``processor_config.json``, version 4 the two files beside it. ``auto_map`` stays: transformers
    without torchvision loads the image-only class with ``trust_remote_code=True``.
    """
    processor.save_pretrained(folder)
    path = folder / "processor_config.json"
    stated = _read(path)
    if "auto_map" not in stated:
        return  # the stock class
    kind, video_kind = STOCK[model_type]
    images = {name: value for name, value in stated["image_processor"].items() if name != "auto_map"}
    settings = (base and _video_settings(base)) or images
    videos = {name: value for name, value in settings.items() if name not in _NAMES}
    videos["video_processor_type"] = video_kind
    whole = {**stated, "processor_class": kind, "image_processor": images, "video_processor": videos}
    _write(path, whole)
    _write(folder / "preprocessor_config.json", {**images, "processor_class": kind})
    _write(folder / "video_preprocessor_config.json", {**videos, "processor_class": kind})


def _video_settings(model: Path) -> dict[str, Any] | None:
    """As transformers finds them: in a file of their own, in the processor's, or those of images."""
    own, images = (_read(model / f"{name}_config.json") for name in ("video_preprocessor", "preprocessor"))
    nested: dict[str, Any] = _read(model / "processor_config.json").get("video_processor", {})
    return own or nested or images or None


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
