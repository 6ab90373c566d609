"""Code finds the same libraries whatever else is installed, and stand-ins or a reason for what it often asks for."""

import json
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions

import pytest

from darkroom.sandbox import SandboxError, SandboxPool, Session, sandbox_digest
from darkroom.sandbox.digest import LIBRARIES_VARIABLE, NINE, added_libraries, importable_modules, library_versions
from darkroom.sandbox.doctor import can_run, diagnose

pytestmark = pytest.mark.e2e

LISTED = "numpy, PIL, cv2, matplotlib, scipy, sympy, skimage, autopep8, av"


@pytest.fixture(scope="module", params=["full", "lite"])
def own_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if not can_run(request.param, diagnose()):
        pytest.skip(f"the {request.param} tier cannot run here")
    with SandboxPool(tier=request.param) as pool, pool.group() as group, group.session() as session:
        yield session


def test_nothing_is_found_beside_the_libraries_and_what_they_require(session: Session) -> None:
    _, importable = importable_modules(())
    others = {name for name in packages_distributions() if name.isidentifier()} - {
        *importable,
        *sys.stdlib_module_names,
    }
    provided = {"sandbox", "_distutils_hack", "IPython", "tqdm", "google"}
    others = {name for name in others if PathFinder.find_spec(name)} - provided
    assert {"dagster", "pytest", "sklearn"} <= others
    code = f"import importlib.util\nprint([name for name in {sorted(others)} if importlib.util.find_spec(name)])"
    assert session.run(code).text == "[]\n"
    found = f"print([name for name in {importable} if not importlib.util.find_spec(name)])"
    assert session.run(found).text == "[]\n"


@pytest.mark.parametrize("code", ["import sklearn", "from pytest import raises", "__import__('no_such_module')"])
def test_another_import_is_an_error_that_lists_what_there_is(own_session: Session, code: str) -> None:
    error = own_session.run(code).error or ""
    assert error.startswith("ModuleNotFoundError: No module named '")
    assert f"in the sandbox, which has {LISTED} (line 1:" in error


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        ("import requests", "ModuleNotFoundError", "there is no network; work with the images of the task"),
        ("import pytesseract", "ModuleNotFoundError", "crop and enlarge the text, show it and read it in the image"),
        ("import easyocr", "ModuleNotFoundError", "crop and enlarge the text, show it and read it in the image"),
        ("import urllib.request as u; u.urlopen('https://a.b/c.png')", "URLError", "the sandbox has no network"),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "gaierror", "the sandbox has no network"),
        ("import socket; socket.socket()", "PermissionError", "the sandbox has no network"),
        ("box = input('Which box? ')", "EOFError", "write the value into the code"),
    ],
)
def test_a_refusal_says_what_to_do_instead(own_session: Session, code: str, kind: str, advice: str) -> None:
    error = own_session.run(code).error or ""
    assert error.startswith(f"{kind}: ")
    assert advice in error


def test_what_needs_no_network_of_these_still_works(session: Session) -> None:
    code = """
import asyncio, io, socket, sys
from urllib.parse import quote
near, far = socket.socketpair()
near.send(b"x")
sys.stdin = io.StringIO("a line")
print(quote("a b"), far.recv(1), input(), asyncio.run(asyncio.sleep(0, "slept")))
"""
    assert session.run(code).text == "a%20b b'x' a line slept\n"


def test_display_of_ipython_shows_images(own_session: Session) -> None:
    code = """
from IPython.display import HTML, Image as Shown, clear_output, display
import IPython
from PIL import Image
part = Image.new("RGB", (30, 20), "red")
part.save("part.png")
display(part.resize((9, 8)))
display(Shown(filename="part.png", width=300), HTML("<b>bold</b>"))
IPython.display.clear_output(wait=True)
"""
    observation = own_session.run(code)
    assert (observation.error, observation.text) == (None, "<b>bold</b>\n")
    assert [image.pixels.size for image in observation.images] == [(30, 20), (9, 8)]  # the file first


def test_tqdm_is_quiet(own_session: Session) -> None:
    code = """
from tqdm import tqdm, trange
from tqdm.auto import tqdm as automatic
from tqdm.notebook import tqdm as bar_of_a_notebook
with tqdm(total=5, desc="boxes") as bar:
    bar.update(2)
    bar.set_postfix(loss=1)
print([*tqdm("ab", leave=False)], sum(trange(4)), len(automatic([1, 2])), [*enumerate(bar_of_a_notebook("c"))], bar.n)
"""
    observation = own_session.run(code)
    assert (observation.error, observation.text) == (None, "['a', 'b'] 6 2 [(0, 'c')] 2\n")


def test_a_library_that_the_setting_adds_is_found_and_listed_and_part_of_the_digest(
    full_tier: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = sandbox_digest()
    monkeypatch.setenv(LIBRARIES_VARIABLE, " scikit-learn,tqdm")
    assert sandbox_digest() != plain
    with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
        assert session.run("from sklearn.cluster import KMeans; import joblib").ok
        assert session.run("import tqdm; print(hasattr(tqdm, '__version__'))").text == "True\n"
        assert f"which has {LISTED}, sklearn, tqdm (line 1" in (session.run("import pandas").error or "")
    monkeypatch.setenv(LIBRARIES_VARIABLE, "no-such-package")
    with pytest.raises(
        SandboxError, match="DARKROOM_SANDBOX_LIBRARIES names 'no-such-package', which is not installed"
    ):
        added_libraries()


def test_the_digest_names_every_distribution_that_code_can_import() -> None:
    versions = library_versions(())
    assert {*NINE, "mpmath", "networkx", "python-dateutil", "six"} <= versions.keys()
    assert all(versions.values())
    assert not {"tomli", "pytest", "gmpy2"} & versions.keys()  # asked for under conditions that do not hold


def test_libraries_do_not_see_what_is_hidden(session: Session) -> None:
    """Such as gmpy2 and numexpr, with which sympy computes otherwise."""
    code = "import json, sys\nprint(json.dumps([name for name in sys.modules if '.' not in name]))"
    loaded = set(json.loads(session.run(code).text))
    assert not loaded & {"gmpy2", "numexpr", "pytest", "torch", "pandas", "sklearn"}
