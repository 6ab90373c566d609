"""Code that was written for other machines finds what it means, or a message that lists what there is."""

import pytest

from darkroom.sandbox import Group, SandboxPool, Session


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print(img.size)", "note: img is not defined: here it is the task's image\n(2000, 1500)\n"),
        (
            "print(images[0].size)",
            "note: images is not defined: here it is the task's images\n(2000, 1500)\n",
        ),
        ("img = 7\nprint(img)", "7\n"),
        ("def f(image): return image\nprint(f(1))", "1\n"),
        (
            "print(Image.open('input_image.png').size)",
            "note: there is no input_image.png: the task's image is opened\n",
        ),
        ("print(np.int(2.5))", "note: numpy.int is now int\n2\n"),
        ("from PIL.Image import ANTIALIAS", "note: PIL.Image.ANTIALIAS is now PIL.Image.Resampling.LANCZOS\n"),
        ("print(hasattr(np, 'no_such_name'))", "False\n"),
        ("import matplotlib\nmatplotlib.use('TkAgg'); cv2.waitKey(0); cv2.destroyAllWindows();", ""),
        ("print(cv2.imwrite('/no/x.png', np.zeros((2, 2))))", "note: cv2.imwrite could not write /no/x.png"),
        ("import importlib.metadata\nprint(importlib.metadata.version('numpy') == np.__version__)", "True\n"),
        ("!pip install opencv-python nothere", "note: opencv-python is installed already\nnote: nothere cannot be"),
    ],
)
def test_what_is_meant_happens_and_a_note_says_so(group: Group, code: str, text: str) -> None:
    with group.session(seed=1) as session:
        observation = session.run(code)
        assert (observation.status, observation.text[: len(text)]) == ("ok", text), observation.error


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("mine = 1\nprint(nothing)", "; defined are image_path_0, image_size_0, image_path, image_size, mine"),
        ("open('missing.txt')", "; there are image_path_0 (/mnt/data/input_images/image_0.jpg)"),
        ("cv2.imread('missing.png')", "(there are image_path_0 (/mnt/data/input_images/image_0.jpg)): 'missing.png'"),
        ("image_clue_0.save('/usr/x.png')", "; files are written to /mnt/data/temp_processed_images"),
        ("ImageDraw.Draw(3)", "; it is not imported: from PIL import ImageDraw; defined are"),
        ("threshold = 3\nprint(treshold)", "; did you mean 'threshold'?"),
        ("cv2.COLOR_BGR2RBG", "; did you mean 'COLOR_BGR2RGB'"),
        ("from PIL import ImageDrow", "; did you mean 'ImageDraw'?"),
        ("d = {'a': {'b': 1}}\nd['a'][\n  'c']", "; d['a'] has the keys 'b'"),
        ("items = [1, 2]\nitems[2]", "; items has 2 items"),
        ("import os\nos.environ['IMAGE']", "; no program sets os.environ: there are image_path_0 ("),
        ("def f(x, *, scale=2): pass\nf(1, factor=3)", "; it is called as f(x, *, scale=2)"),
        ("cv2.circle(np.zeros((9, 9), np.uint8), (2.5, 3), 1, 255)", "whole numbers: (int(x), int(y))"),
        ("Image.fromarray(np.zeros((4, 4)) + 0.5).save('x.png')", "; a file of this format holds whole numbers"),
        ("raise NameError('mine')", "NameError: mine (line 1: raise NameError('mine'))"),
    ],
)
def test_an_error_lists_what_there_is(session: Session, code: str, remedy: str) -> None:
    assert remedy in (session.run(code).error or "")


@pytest.mark.parametrize(
    "code",
    [
        "for n in range(30): open(f'{n}' + 'x' * 240, 'w')\nopen('missing.txt')",
        "globals()['v' * 9000] = globals()[5] = 1\nnothing",
        "import sys\nsys.stderr = 7\nglobals()['']= 1\nimages; nothing",
        "del os.environ['HOME']\nImage.open('missing.png')",
        "raise type('E' * 9000, (FileNotFoundError,), {'strerror': property(lambda self: 1 / 0)})",
        "class Name(NameError): name = property(lambda self: 1 / 0)\nraise Name('x')",
        "class A:\n    def __dir__(self): raise SystemExit\nA().attribute",
        "class D(dict):\n    def __iter__(self): 1 / 0\nD()['a']",
        "{'k' * 10**7: 1, **{str(n): n for n in range(10**5)}}['a']",
        "d = {'k' * 10**7: 1} | {str(n): n for n in range(10**5)}\nd['a']",
        "globals().update({f'name_{n}': n for n in range(10**5)})\nname_",
        "def f(n): return f(n + 1)\nf(0)",
        "raise ValueError('values to unpack' * 10**6)",
    ],
)
def test_whatever_the_code_has_made_an_error_is_an_error_and_the_session_goes_on(group: Group, code: str) -> None:
    with group.session() as session:
        assert session.run(code).status == "error"
        assert session.run("print(1)").text == "1\n"


@pytest.mark.parametrize("tier", ["full", "lite"])
def test_folders_of_other_runtimes_are_the_working_folder(tier: str) -> None:
    with SandboxPool(tier=tier) as pool, pool.group() as group, group.session() as session:
        for folder in ("/mnt/data", "/content", "/output", "/kaggle/working", "/tmp"):
            name = folder.replace("/", "_")
            observation = session.run(f"n = '{name}'\nImage.new('RGB', (3, 3)).save(f'{folder}/{{n}}.png')")
            assert [image.name for image in observation.images] == [f"{name}.png"], observation.error
            assert {edit.kind for edit in observation.edits} == {"output_folder"}


def test_of_several_images_none_is_taken_for_the_image(pool: SandboxPool) -> None:
    with pool.group([b"P5 2 2 255 abcd", b"P5 2 2 255 bcde"]) as group, group.session() as session:
        assert session.run("print(len(images))").text.endswith("2\n")
        assert session.run("image").status == session.run("Image.open('image_1.png')").status == "error"


def test_a_figure_that_cannot_be_drawn_is_a_note(session: Session) -> None:
    observation = session.run("plt.figure(figsize=(10**5, 10**5))\nplt.plot([1])\nprint(1)")
    assert (observation.status, observation.images) == ("ok", ())
    assert observation.text.startswith("1\nnote: a figure is not shown: figure of ")
    assert session.run("print(2)").text == "2\n"


def test_no_note_speaks_of_images_that_there_are_not(pool: SandboxPool) -> None:
    code = "import glob\nprint(glob.glob('*.png'), os.listdir('.'))"
    with pool.group() as group, group.session() as session:
        assert session.run(code).text == "[] ['.tmp']\n"


def test_a_window_is_shown(session: Session) -> None:
    code = "cv2.imshow('window', np.full((4, 5, 3), (255, 0, 0), np.uint8))"
    shown = session.run(code).images[0].pixels
    assert (shown.size, shown.getpixel((0, 0))) == ((5, 4), (0, 0, 255))
    assert session.run("cv2.imshow('window', np.ones((4, 5)))").images[0].pixels.getpixel((0, 0)) == (255, 255, 255)
    for last in ("cv2.destroyAllWindows()", "cv2.namedWindow('window')", "import matplotlib\nmatplotlib.use('TkAgg')"):
        assert session.run(last).text == "", "no value that a notebook would show"
    assert session.run("cv2.waitKey(0) & 0xFF").text == "255\n"


def test_a_file_of_the_working_folder_is_found_from_another_folder(session: Session) -> None:
    session.run("import os\nImage.new('RGB', (3, 4)).save('a.png')\nos.makedirs('sub')\nos.chdir('sub')")
    assert session.run("print(Image.open('a.png').size, cv2.imread('a.png').shape)").text == "(3, 4) (4, 3, 3)\n"
    session.run("os.chdir('/usr')")
    assert session.run("print(os.getcwd())").text == "/mnt/data/temp_processed_images\n"


@pytest.mark.parametrize("font", ["arial.ttf", "C:/Windows/Fonts/simhei.ttf", "/usr/share/fonts/x/NotoSansCJK.ttc"])
def test_a_font_that_is_not_there_gives_one_that_can_write(session: Session, font: str) -> None:
    code = f"""
from PIL import ImageDraw, ImageFont
font = ImageFont.truetype({font!r}, 24)
def drawn(text):
    image = Image.new('L', (200, 40))
    ImageDraw.Draw(image).text((2, 2), text, 255, font)
    return image.tobytes()
print(len({{drawn(text) for text in ('中文', '日本', '한국', 'кот', 'مرح', 'abc')}}), font.getlength('中') > 20)
"""
    text = session.run(code).text
    assert text.startswith("note: the sandbox has no font ")
    assert text.endswith("6 True\n")


def test_characters_of_every_script_are_drawn_by_each_library(session: Session) -> None:
    code = """
def drawn(text):
    array = np.zeros((60, 300, 3), np.uint8)
    cv2.putText(array, text, (5, 40), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 255, 0), 2)
    return array
print(len({drawn(text).tobytes() for text in ('中文', '日本', '한국', 'кот', 'abc')}), drawn('中')[..., 0].any())
print(cv2.getTextSize('中文', 0, 1, 2)[0][0] > 40, drawn('中')[..., 1].max())
plt.rcParams['font.family'] = 'SimHei'
def plotted(text):
    figure = plt.figure(figsize=(2, 1)); figure.text(0.1, 0.5, text); figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba()).tobytes(); plt.close()
    return pixels
print(len({plotted(text) for text in ('中文', '日本', '한국', 'кот', 'abc')}))
"""
    text = session.run(code).text
    assert text == "5 False\nTrue 255\nnote: the sandbox has no font SimHei: DejaVu Sans is used\n5\n"
