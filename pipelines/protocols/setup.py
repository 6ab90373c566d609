"""The program that gives a session the tool ``crop_image_normalized`` of the protocol ``tool_call``.

Images are counted from 1: the question's, then all that was shown since by crops, ``plt.show()``, ``display(…)`` and
``image.show()``, in that order. Not counted: image files that a program saved. A box becomes the pixels that it touches
(as ``pipelines.geometry.box_from_fractions`` has it); nothing is padded, and a box that is none is an error.
"""

CROP_SETUP = '''\
def _crop_tool():
    from math import ceil, floor
    import matplotlib.pyplot as plt
    import numpy as np
    from PIL import Image

    here = globals()
    counted = []
    while f"image_path_{len(counted)}" in here:
        counted.append(Image.open(here[f"image_path_{len(counted)}"]))
    plain_display, plain_show = here["display"], plt.show

    def display(*things, **options):
        counted.extend(thing for thing in things if isinstance(thing, Image.Image))
        counted.extend(drawn(thing) for thing in things if isinstance(thing, plt.Figure))
        plain_display(*things, **options)

    def show(*arguments, **options):
        counted.extend(drawn(plt.figure(number)) for number in plt.get_fignums())
        plain_show(*arguments, **options)

    def drawn(figure):
        figure.canvas.draw()
        return Image.fromarray(np.array(figure.canvas.buffer_rgba())[..., :3])

    def crop_image_normalized(bbox_2d, target_image):
        """Shows a part of an image: left, top, right, bottom from 0 to 1; images are counted from 1."""
        if target_image not in range(1, len(counted) + 1):
            have = f"there are images 1 to {len(counted)}" if counted else "there is no image"
            raise ValueError(f"target_image {target_image}: {have}")
        image = counted[int(target_image) - 1]
        left, top, right, bottom = bbox_2d
        if not all(0 <= side <= 1 for side in bbox_2d):
            raise ValueError(f"bbox_2d {bbox_2d}: every side lies between 0 and 1, as a fraction of the image")
        if left >= right or top >= bottom:
            raise ValueError(f"bbox_2d {bbox_2d}: left must be less than right, and top less than bottom")
        x1, y1 = floor(left * image.width + 1e-9), floor(top * image.height + 1e-9)
        x2, y2 = ceil(right * image.width - 1e-9), ceil(bottom * image.height - 1e-9)
        if x1 >= x2 or y1 >= y2:
            raise ValueError(f"bbox_2d {bbox_2d}: it covers no pixel of an image of {image.width}x{image.height}")
        crop = image.crop((x1, y1, x2, y2))
        display(crop)
        print(f"image {len(counted)}: {crop.width}x{crop.height} pixels")

    plt.show, here["display"], here["crop_image_normalized"] = show, display, crop_image_normalized
    Image.Image.show = lambda image, title=None: display(image)
    plt.Figure.show = lambda figure, warn=True: display(figure)


_crop_tool()
del _crop_tool
'''
