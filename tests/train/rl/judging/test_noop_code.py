"""Which programs do nothing to the images that they read."""

import pytest

from darkroom.train.rl.judging.code_rules import NoopKind, noop_kind

OPENED = "from PIL import Image\nimage = Image.open(image_path)\n"


@pytest.mark.parametrize(
    "code",
    [
        "plt.imshow(image_clue_0)\nplt.axis('off')\nplt.show()",
        "image_clue_1.show()",
        f"{OPENED}print(image.size)\nimage.convert('RGB').show()",
        "img = cv2.imread(image_path)\nplt.imshow(cv2.cvtColor(img, cv2.COLOR_BGR2RGB))\nplt.show()",
        "fig, ax = plt.subplots()\nax.imshow(np.array(image_clue_0))\nplt.show()",
        "print(image_size)\ndisplay(image_clue_0)",
    ],
)
def test_an_image_may_be_shown_as_it_is(code):
    assert noop_kind(code) is NoopKind.SHOWS


@pytest.mark.parametrize(
    "code",
    [
        f"{OPENED}processed_path = 'a.png'\nimage.save(processed_path)\nprint(processed_path)",
        f"{OPENED}import os\npath = os.path.join('out', 'a' + '.png')\nimage.copy().save(path)",
        "cv2.imwrite('/mnt/data/b.png', cv2.imread(image_path))",
        "from PIL import Image\nImage.open('/mnt/data/temp_processed_images/a.png').save('b.png')",
        "def copy(path):\n    image = Image.open(path)\n    image.save('c.png')\ncopy(image_path)",
    ],
)
def test_an_image_may_be_saved_as_it_is(code):
    assert noop_kind(code) is NoopKind.SAVES


@pytest.mark.parametrize(
    "code",
    [
        "from PIL import Image, ImageDraw\nnote = Image.new('RGB', (99, 99))\n"
        "ImageDraw.Draw(note).text((0, 0), 'the sign is red')\nnote.save('a.png')",
        "pad = np.zeros((99, 99, 3), np.uint8)\ncv2.putText(pad, 'red', (0, 9), 0, 1, (255, 0, 0))\n"
        "plt.imshow(pad)\nplt.show()",
    ],
)
def test_words_may_be_written_on_an_empty_image(code):
    assert noop_kind(code) is NoopKind.NOTES


@pytest.mark.parametrize(
    "code",
    [
        f"{OPENED}image.crop((0, 0, image.width // 2, image.height)).save('a.png')",
        "crop_image_normalized(bbox_2d=[0.0, 0.0, 1.0, 1.0], target_image=1)",
        "img = cv2.imread(image_path)\ncv2.imwrite('a.png', img[10:20, 30:40])",
    ],
)
def test_a_part_may_be_cut_out_and_nothing_else_done(code):
    assert noop_kind(code) is NoopKind.CUTS


@pytest.mark.parametrize(
    "code",
    [
        f"{OPENED}image.rotate(90).save('a.png')",
        f"{OPENED}image.crop((0, 0, 9, 9)).resize((90, 90)).save('a.png')",
        f"{OPENED}image.convert('L').save('a.png')",
        f"{OPENED}image.convert(mode).save('a.png')",
        f"{OPENED}a = np.asarray(image) * 1.5\nImage.fromarray(a).save('a.png')",
        f"{OPENED}a = np.array(image)\na[:9] = 0\nImage.fromarray(a).save('a.png')",
        "img = cv2.imread(image_path)\ncv2.imwrite('a.png', img[0:99, 0:99] * 2)",
        "cv2.imwrite('a.png', cv2.cvtColor(cv2.imread(image_path), cv2.COLOR_BGR2GRAY))",
        "plt.imshow(image_clue_0, cmap='gray')\nplt.show()",
        "plt.imshow(image_clue_0)\nplt.axis([100, 200, 50, 90])\nplt.show()",
        "cv2.imwrite('a.png', cv2.imread(image_path, 0))",
        "plt.imshow(crop)\nplt.show()",
        "getattr(image_clue_0, 'ro' + 'tate')(90).save('a.png')",
        f"{OPENED}print(image.size)",
        "plt.plot([1, 2], [3, 4])\nplt.show()",
        "from PIL import Image, ImageDraw\nfigure = Image.new('RGB', (99, 99))\nd = ImageDraw.Draw(figure)\n"
        "d.line((0, 0, 9, 9))\nd.text((0, 0), 'A')\nfigure.save('a.png')",
        "print(6 * 7)",
        "x = (",
        "",
    ],
)
def test_what_works_or_cannot_be_told_is_not_idle(code):
    assert noop_kind(code) is None
