"""The tools of a session: what a client sends, and the program that the sandbox runs for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.services import ServiceError
from darkroom.sandbox import Limits

Size = tuple[int, int]
"""Width and height, pixels."""
_Pixels = Annotated[float, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class SandboxTool(BaseModel, ABC):
    """Arguments of a tool; the docstring of a subclass is what a model reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
    tool: ClassVar[str]

    @abstractmethod
    def program(self, sizes: Sequence[Size]) -> str:
        """The Python to run; ``sizes`` of all images so far. Raises ``ServiceError`` for one that there is not."""


class RunCode(SandboxTool):
    """Run Python. `image_path` is the first image's file, `image_path_1` the second's; `video_clue_0` reads the first
    video. What is printed comes back as text, images that are shown or saved come back as images. State is kept."""

    tool: ClassVar[str] = "run_code"
    code: str
    """The program."""

    def program(self, sizes: Sequence[Size]) -> str:
        return self.code


_WHICH = "Which image, counted from 1: the task's, then those that were shown."


class CropImage(SandboxTool):
    """Show a part of an image in its own resolution."""

    tool: ClassVar[str] = "crop_image"
    bbox_2d: tuple[_Share, _Share, _Share, _Share]
    """Left, top, right, bottom, each from 0 to 1, as fractions of the image."""
    target_image: int = Field(default=1, description=_WHICH)

    def program(self, sizes: Sequence[Size]) -> str:
        return crop_line(list(self.bbox_2d), self.target_image)


class ImageZoomIn(SandboxTool):
    """Show a part of an image in its own resolution; the box is in pixels."""

    tool: ClassVar[str] = "image_zoom_in"
    bbox_2d: tuple[_Pixels, _Pixels, _Pixels, _Pixels]
    """Left, top, right, bottom in pixels of the image; what is outside of it is left out."""
    target_image: int = Field(default=1, description=_WHICH)

    def program(self, sizes: Sequence[Size]) -> str:
        if not 1 <= self.target_image <= len(sizes):
            raise ServiceError("invalid_request", f"target_image {self.target_image}: there are {len(sizes)} images")
        size = sizes[self.target_image - 1]
        sides = [min(value, side) / side for value, side in zip(self.bbox_2d, size * 2, strict=True)]
        return crop_line(sides, self.target_image)


class SelectFrames(SandboxTool):
    """Show frames of a video."""

    tool: ClassVar[str] = "select_frames"
    target_frames: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=Limits.max_images)
    """Which frames, counted from 0."""
    target_video: int = Field(default=1, ge=1, le=64)
    """Which video, counted from 1."""

    def program(self, sizes: Sequence[Size]) -> str:
        video = f"video_clue_{self.target_video - 1}"
        return f"for _frame in {self.target_frames}:\n    display(Image.fromarray({video}[_frame].asnumpy()))"


TOOLS: tuple[type[SandboxTool], ...] = (RunCode, CropImage, ImageZoomIn, SelectFrames)


def tools_for(protocol: str, *, n_images: int, n_videos: int) -> tuple[type[SandboxTool], ...]:
    """The tools that a protocol offers for a task. The crops are ``tool_call``'s, whose setup counts images."""
    crops = (CropImage, ImageZoomIn) if protocol == "tool_call" and n_images else ()
    return (RunCode, *crops, *((SelectFrames,) if n_videos else ()))


def no_tool(name: str, offered: Iterable[str]) -> ServiceError:
    """Error for a name that no tool of ``offered`` has."""
    return ServiceError("unknown_tool", f"no tool {name[:80]!r} here; there are {', '.join(offered)}")


def description(tool: type[SandboxTool]) -> str:
    """The docstring as one paragraph."""
    return " ".join((tool.__doc__ or "").split())
