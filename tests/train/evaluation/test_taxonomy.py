"""Programs as models write them, tidy and ugly, and the kinds of tools that they are."""

import pytest

from darkroom.pipelines.records import ImageRef, Observation
from darkroom.train.evaluation.code_analysis import Tool, tools_of

IMAGE = Observation("ok", "/mnt/data/x.png", (ImageRef("a" * 64, 10, 10, "RGB", "PNG"),))
NUMBER = Observation("ok", "42")
NOTHING = Observation("error", "", error="NameError: name 'x' is not defined")

PROGRAMS = {
    "a crop": (
        "from PIL import Image\nim = Image.open(image_path)\nim.crop((10, 20, 80, 90)).save('c.png')\nprint('c.png')",
        IMAGE,
        {Tool.CROP},
    ),
    "a crop by slices": (
        "import cv2\nx1,y1,x2,y2=1,2,30,40;img=cv2.imread(image_path);cv2.imwrite('c.png',img[y1:y2,x1:x2])",
        IMAGE,
        {Tool.CROP},
    ),
    "the tool's crop": ("crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)", IMAGE, {Tool.CROP}),
    "a crop that is enlarged": (
        "c = image_clue_0.crop((0,0,50,50))\nc = c.resize((c.width*4, c.height*4))\nplt.imshow(c)\nplt.show()",
        IMAGE,
        {Tool.CROP},
    ),
    "a turn": (
        "img = image_clue_0.rotate(-30, expand=True)\nplt.imshow(img); plt.axis('off'); plt.show()",
        IMAGE,
        {Tool.ROTATE},
    ),
    "a quarter turn": (
        "im = Image.open(image_path).transpose(Image.Transpose.ROTATE_90)\nim.save('r.png')",
        IMAGE,
        {Tool.ROTATE},
    ),
    "axes that are swapped are no turn": (
        "import numpy as np\na = np.asarray(image_clue_0).transpose(2, 0, 1)\nprint(a.shape)",
        NUMBER,
        {Tool.OTHER},
    ),
    "more contrast": (
        "from PIL import ImageEnhance\nImageEnhance.Contrast(image_clue_0).enhance(2.5).save('e.png')",
        IMAGE,
        {Tool.CONTRAST},
    ),
    "contrast by hand": (
        "a = np.asarray(image_clue_0).astype(float)\nb = np.clip((a-90)*3, 0, 255).astype('uint8')\n"
        "plt.imshow(b);plt.show()",
        IMAGE,
        {Tool.CONTRAST},
    ),
    "a crop with more contrast": (
        "from PIL import Image, ImageOps\nim=Image.open(image_path)\n"
        "r=ImageOps.autocontrast(im.crop((1,2,3,4)))\nr.save('x.png')",
        IMAGE,
        {Tool.CROP, Tool.CONTRAST},
    ),
    "a plot": (
        "import matplotlib.pyplot as plt\nx = [1,2,3]\nplt.plot(x, [v**2 for v in x])\nplt.show()",
        IMAGE,
        {Tool.PLOT},
    ),
    "a drawing": (
        "fig, ax = plt.subplots()\nax.add_patch(plt.Circle((0,0),1,fill=False))\nax.axhline(0)\nplt.show()",
        IMAGE,
        {Tool.PLOT},
    ),
    "marks over an image": (
        "plt.imshow(image_clue_0)\nplt.scatter([10],[20],c='r')\nplt.show()",
        IMAGE,
        {Tool.MARKS},
    ),
    "a box that is drawn": (
        "from PIL import Image, ImageDraw\nim=Image.open(image_path)\nd=ImageDraw.Draw(im)\n"
        "d.rectangle([1,2,3,4],outline='red',width=3)\nim.save('m.png')",
        IMAGE,
        {Tool.MARKS},
    ),
    "a mask": (
        "import cv2\ng=cv2.imread(image_path,0)\n_,m=cv2.threshold(g,127,255,cv2.THRESH_BINARY)\n"
        "cv2.imwrite('m.png',m)",
        IMAGE,
        {Tool.SEGMENTATION},
    ),
    "things that are counted": (
        "from scipy import ndimage\nm = np.asarray(image_clue_0.convert('L')) > 128\n_, n = ndimage.label(m)\nprint(n)",
        NUMBER,
        {Tool.SEGMENTATION},
    ),
    "algebra": ("import sympy as sp\nx=sp.symbols('x')\nprint(sp.solve(x**2-4,x))", NUMBER, {Tool.COMPUTE}),
    "a sum in a loop": ("t=0\nfor i in range(10):\n    t += i*i\nprint(t)", NUMBER, {Tool.COMPUTE}),
    "colours that are measured": (
        "a = np.asarray(image_clue_0)\nprint(a[:, :, 0].mean(), a[:, :, 1].mean())",
        NUMBER,
        {Tool.COMPUTE},
    ),
    "frames": (
        "idx = np.linspace(0, len(video_clue_0)-1, 8).astype(int)\nfor i in idx:\n"
        "    plt.imshow(video_clue_0[i].asnumpy())\n    plt.show()",
        IMAGE,
        {Tool.FRAMES},
    ),
    "the image again": ("plt.imshow(image_clue_0)\nplt.axis('off')\nplt.show()", IMAGE, {Tool.NO_OP}),
    "the image saved again": (
        "from PIL import Image\nimage = Image.open(image_path)\nprocessed_path = 'p.png'\n"
        "image.save(processed_path)\nprint(processed_path)",
        IMAGE,
        {Tool.NO_OP},
    ),
    "the image's size": ("from PIL import Image\nprint(Image.open(image_path).size)", NUMBER, {Tool.OTHER}),
    "the whole, larger": ("image_clue_0.resize((4000, 3000)).save('big.png')", IMAGE, {Tool.OTHER}),
    "two images side by side": (
        "both = np.hstack([np.asarray(image_clue_0), np.asarray(image_clue_1)])\nplt.imshow(both)\nplt.show()",
        IMAGE,
        {Tool.OTHER},
    ),
    "Python's own filter": ("print(list(filter(None, [0, 1, 2])))", NUMBER, {Tool.OTHER}),
    "what does not parse": ("im = Image.open(image_path\nim.crop((1,2,3,4))", NOTHING, {Tool.OTHER}),
    "what failed is what it tried": ("print(math.sqrt(x))\nimport math", NOTHING, {Tool.COMPUTE}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_of_its_kinds(name):
    code, seen, expected = PROGRAMS[name]
    assert tools_of(code, seen) == expected


def test_a_crop_of_everything_is_no_operation():
    code = "im = Image.open(image_path)\nim.crop((0, 0, im.width, im.height)).save('c.png')"
    assert tools_of(code, IMAGE) == {Tool.CROP}
    assert tools_of(code, IMAGE, untouched=True) == {Tool.NO_OP}


def test_marks_on_an_otherwise_untouched_image_stay_marks():
    code = "plt.imshow(image_clue_0)\nplt.scatter([10],[20])\nplt.show()"
    assert tools_of(code, IMAGE, untouched=True) == {Tool.MARKS}
