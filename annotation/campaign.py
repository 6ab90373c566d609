"""What a campaign asks of people: ``<home>/annotation/campaign.yaml``.

    name: streets                # projects on the server are named after it
    images:                      # what people look at: files, folders (all below), or patterns
      - path: photographs/*.jpg
        source: our-cameras
        license: CC-BY-4.0
    min_side: 2048               # the longer side has more pixels than this (Thyme 4.1)
    max_share: 0.05              # of the image's area, for every box (Thyme appendix D)
    n_images: 30000              # seeded choice; without it: all that are fit

Paths are relative to the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml

from annotation.faults import AnnotationFault

FILE = "campaign.yaml"


class ImageFolder(pydantic.BaseModel, extra="forbid", frozen=True):
    """Images from one place, under one licence."""

    path: str
    source: str
    license: str


class Campaign(pydantic.BaseModel, extra="forbid", frozen=True):
    """The campaign's rules; every default is the paper's, where it has one."""

    name: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,30}$")] = "annotation"
    images: tuple[ImageFolder, ...] = ()
    min_side: Annotated[int, pydantic.Field(ge=0)] = 2048
    max_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.05
    n_images: Annotated[int | None, pydantic.Field(ge=1)] = None
    max_rework: Annotated[int, pydantic.Field(ge=0)] = 2
    """How often a rejected record goes back (issue: at most twice)."""
    gold_share: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.05
    """Share of the cross-checks that are repeated with a planted error."""
    pre_annotate: Literal["no", "pixels", "thousandths"] = "no"
    """Whether a policy writes records for people to correct, and the frame in which it gives boxes: pixels of the image
    as it sees it (Qwen2.5-VL), or thousandths of its sides (Qwen3-VL)."""
    seed: int = 0

    @classmethod
    def load(cls, folder: Path) -> Campaign:
        """The campaign of a workspace; defaults without a file. Raises ``AnnotationFault``, naming line or field."""
        path = folder / FILE
        if not path.exists():
            return cls()
        try:
            campaign = cls.model_validate(yaml.safe_load(path.read_text()) or {})
        except yaml.YAMLError as fault:
            raise AnnotationFault(f"{path} is not YAML: {fault}") from fault
        except pydantic.ValidationError as fault:
            said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in fault.errors())
            raise AnnotationFault(f"{path}: {said}. See `darkroom annotate init` for an example") from fault
        return campaign
