"""The rules of a campaign: ``<home>/annotation/campaign.yaml``, as in ``example_campaign.yaml`` beside this file."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.forms import GUIDES
from darkroom.pipelines.storage.stage import code_digest

FILE = "campaign.yaml"
Rule = Literal["majority", "unanimity"]
EXAMPLE, TRIAL = (Path(__file__).with_name(name) for name in ("example_campaign.yaml", "trial_campaign.yaml"))


def field_errors(error: pydantic.ValidationError, most: int | None = None) -> str:
    """The errors by field, on one line; at most ``most`` of them."""
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:most])


class ImageFolder(pydantic.BaseModel, extra="forbid", frozen=True):
    """Images from one place, under one licence."""

    path: str
    """A file, a folder (recursive) or a pattern, relative to the campaign's file."""
    source: str
    license: str


class Campaign(pydantic.BaseModel, extra="forbid", frozen=True):
    """The rules; defaults are the paper's, where it has one."""

    name: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,30}$")] = "annotation"
    """Projects on the server are named after it."""
    images: tuple[ImageFolder, ...] = ()
    min_side: Annotated[int, pydantic.Field(ge=0)] = 2048
    """The longer side of an image has more pixels than this (Thyme 4.1)."""
    max_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.05
    """Of the image's area, for every box (Thyme appendix D)."""
    n_images: Annotated[int | None, pydantic.Field(ge=1)] = None
    """Size of a seeded sample; None: every suitable image."""
    max_rework: Annotated[int, pydantic.Field(ge=0)] = 2
    """How often a rejected record is sent back."""
    experts_per_record: Annotated[int, pydantic.Field(ge=1, le=15)] = 1
    """Experts who judge a record, each on their own (Thyme 4.1: 3)."""
    expert_rule: Rule = "majority"
    """How many of them must name the same version of the record, so that it is accepted: more than half, or all."""
    checked_twice: Annotated[float, pydantic.Field(ge=0, le=1)] = 0
    """Share of records that two people check, each on their own; unless both name the same version, it is sent back."""
    annotators_check: bool = True
    """Whether annotators check each other's records; False: only accounts with the role checker do."""
    gold_share: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.05
    """Share of cross-checks that are repeated with a planted error."""
    pre_annotate: Literal["no", "pixels", "thousandths"] = "no"
    """Whether a policy writes records for people to correct, and the unit of its boxes: pixels of the image it receives
    (Qwen2.5-VL), or thousandths of its sides (Qwen3-VL)."""
    language: str = "en"
    """Of the guide that people see; those of ``annotation/label_studio/GUIDE*.md``."""
    seed: int = 0
    """Which records people check twice or with a planted error. `init` draws one. With 0, as in campaigns of earlier
    versions, whoever has this program can compute the choice."""

    @pydantic.field_validator("language")
    @classmethod
    def _is_known(cls, language: str) -> str:
        if language not in GUIDES:
            raise ValueError(f"there is no guide in {language!r}; choose from {', '.join(GUIDES)}")
        return language

    @staticmethod
    def write(template: Path, path: Path) -> None:
        """Writes a campaign's file, with a seed of its own."""
        secret = "which records are checked twice or with a planted error; keep it secret"
        path.write_text(f"{template.read_text()}seed: {secrets.randbelow(2**53)}   # {secret}\n")

    @classmethod
    def load(cls, folder: Path) -> Campaign:
        """The campaign of a workspace; defaults without a file. Raises ``AnnotationError`` with the line or field."""
        path = folder / FILE
        if not path.exists():
            return cls()
        try:
            return cls.model_validate(yaml.safe_load(path.read_text()) or {})
        except yaml.YAMLError as error:
            raise AnnotationError(f"{path} is not YAML: {error}") from error
        except pydantic.ValidationError as error:
            raise AnnotationError(
                f"{path}: {field_errors(error)}. See `darkroom annotate init` for an example"
            ) from error


ANNOTATION_CODE = (
    "darkroom.annotation._plugin.darkroom_studio.content",
    "darkroom.annotation.label_studio",
    "darkroom.annotation.rounds",
    "darkroom.pipelines.records",
    "darkroom.pipelines.storage",
)
"""The code that decides the tasks, and how submissions become rows."""


def annotation_digest(*names: str) -> str:
    """Digest of ``ANNOTATION_CODE`` and of further ``names``."""
    return code_digest(*ANNOTATION_CODE, *names)
