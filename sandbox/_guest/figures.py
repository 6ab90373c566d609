"""What `plt.show()`, `display(...)` and `image.show()` do here: the pixels become part of the observation."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from sandbox._guest.gallery import Gallery


class Figures:
    """Puts what one call shows into the gallery."""

    def __init__(self, gallery: Gallery, *, max_pixels: int) -> None:
        self._gallery, self._max_pixels = gallery, max_pixels

    def install(self) -> None:
        plt.show, display = self._show_all, self.display

        def show(self: Image.Image, title: str | None = None) -> None:
            display(self)

        def show_figure(self: Figure, warn: bool = True) -> None:
            display(self)

        setattr(Image.Image, "show", show)  # noqa: B010  # assigning a method is not typed
        setattr(Figure, "show", show_figure)  # noqa: B010

    def display(self, *things: Any, **_options: Any) -> None:
        """IPython's: an image or a figure is shown, anything else printed."""
        for thing in things:
            if isinstance(thing, Image.Image):
                self._keep("display", thing.size, lambda image=thing: to_rgb(image).tobytes())
            elif isinstance(thing, Figure):
                self._draw(thing)
            else:
                print(repr(thing))

    def _show_all(self, *_args: Any, **_options: Any) -> None:
        for number in plt.get_fignums():
            self._draw(plt.figure(number))
        plt.close("all")

    def _draw(self, figure: Any) -> None:
        def pixels() -> bytes:
            figure.canvas.draw()
            return np.asarray(figure.canvas.buffer_rgba())[..., :3].tobytes()

        self._keep("figure", figure.canvas.get_width_height(), pixels)

    def _keep(self, kind: str, size: tuple[int, int], pixels: Any) -> None:
        width, height = size
        if width * height > self._max_pixels:
            raise ValueError(f"{kind} of {width}x{height} pixels is too large: at most {self._max_pixels} pixels")
        self._gallery.show(kind, width, height, pixels)


def to_rgb(image: Image.Image) -> Image.Image:
    """RGB as a viewer shows it: transparency on white, 16 bits scaled to 8."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")
