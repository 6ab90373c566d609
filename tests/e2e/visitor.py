"""Somebody at a browser: real mouse and key events through the DevTools protocol, and what the page fetched meanwhile.

Nothing sleeps for a fixed time: every act waits until its element is there, lies still and is on top.
"""

from __future__ import annotations

import base64
import io
import json
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from PIL import Image
from websockets.sync.client import ClientConnection, connect

PATIENCE_SECONDS = 300.0
MODIFIERS = {"Control": 2}
KEYS = {"Enter": 13, "Escape": 27, "Backspace": 8, "Tab": 9}


class Point(NamedTuple):
    """A place in the window, in CSS pixels."""

    x: float
    y: float


class Answer(NamedTuple):
    """What a server said to the page."""

    url: str
    status: int
    body: str


class PageGone(Exception):
    """The page changed before the browser had answered."""


WITHHOLD_STRAY_CLICK = """locate => {
    window.clickWatch?.abort();
    window.clickWatch = new AbortController();
    window.clickStrayed = false;
    for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
        window.addEventListener(kind, event => {
            const node = kind.startsWith('pointer') ? locate() : null;
            if (node) {
                const box = node.getBoundingClientRect();
                const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                window.clickStrayed ||= top !== event.target && !node.contains(event.target);
            } else if (kind === 'pointerdown') window.clickStrayed = true;
            if (window.clickStrayed) { event.stopImmediatePropagation(); event.preventDefault(); }
        }, {capture: true, signal: window.clickWatch.signal});
}"""
"""Keeps the next click from the page if it strikes anything else: on a busy machine a dialog grows between the look and
the press, and its heading lies where the button was. (Playwright's ``setupHitTargetInterceptor`` does the same.)"""

GONE = ("Inspected target navigated or closed", "Cannot find context", "Execution context was destroyed", "Promise was")


class Visitor:
    """One tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self._finished: list[str] = []
        self._responses: dict[str, tuple[str, int]] = {}
        self._answers: list[Answer] = []
        self.n_clicks = 0
        self.n_bytes = 0
        self.context = ""

    def call(self, method: str, **params: Any) -> Any:
        """Calls a method of the protocol; notes what the page has fetched."""
        number = self._send(method, **params)
        while True:
            said = json.loads(self._connection.recv(PATIENCE_SECONDS))
            if said.get("id") == number:
                if "error" in said and said["error"]["message"].startswith(GONE):
                    raise PageGone(method, said["error"])
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self._note(said)

    def _send(self, method: str, **params: Any) -> int:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        return self._number

    def open(self, url: str) -> None:
        """Goes to an address."""
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """What an expression gives on the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """Waits until an expression gives something true, also over a change of page; returns that."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with suppress(PageGone):
                said = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
                if "exceptionDetails" not in said and (found := said["result"].get("value")):
                    return found
            time.sleep(0.1)
        raise TimeoutError(f"not in {PATIENCE_SECONDS:.0f} s: {script}; the page shows {self.text()[:1500]!r}")

    def until_said(self, text: str) -> None:
        """Waits until the page shows a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def text(self) -> str:
        """What the page shows."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def find(self, element: str) -> Point:
        """The middle of an element (an expression, or a CSS selector), once it lies still and nothing covers it."""
        script = next_frame(f"""(() => {{
            const node = {located(element)};
            if (!node) return null;
            node.scrollIntoView({{block: 'nearest', inline: 'nearest'}});
            const box = node.getBoundingClientRect();
            const x = box.x + box.width / 2, y = box.y + box.height / 2;
            const top = document.elementFromPoint(x, y);
            const free = top && (node.contains(top) || top.contains(node)) && !node.disabled;
            return box.width && box.height && free ? [x, y] : null;
        }})()""")
        self.point(Point(1, 1))  # hints that a hovering mouse shows would cover it
        before = None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = self.until(script)
            if found == before:
                return Point(*found)
            before = found
            time.sleep(0.1)
        raise TimeoutError(f"{element} does not lie still")

    def click(self, element: str) -> None:
        """A click in the middle of an element; where the page moves under the mouse meanwhile, it is made again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            at = self.find(element)
            self.run(f"({WITHHOLD_STRAY_CLICK})(() => {located(element)})")
            self.drag([at])
            with suppress(PageGone):  # the click changed the page
                if self.run("window.clickWatch?.abort(), window.clickStrayed"):
                    self.n_clicks -= 1
                    continue
            return
        raise TimeoutError(f"{element} does not lie still")

    def point(self, at: Point) -> None:
        """Moves the mouse there."""
        self._mouse("mouseMoved", at, 0)

    def drag(self, points: Sequence[Point]) -> None:
        """Presses the left button at the first point and lets it go at the last."""
        self.n_clicks += 1
        self.point(points[0])
        self._mouse("mousePressed", points[0], 1)
        for point in points[1:]:
            self._mouse("mouseMoved", point, 1)
        self._mouse("mouseReleased", points[-1], 0)

    def resize(self, size: tuple[int, int], *, is_tablet: bool = False) -> None:
        """Makes the window a laptop's, or a tablet's that is worked with fingers."""
        width, height = size
        about = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_tablet}
        self.call("Emulation.setDeviceMetricsOverride", **about)
        self.call("Emulation.setTouchEmulationEnabled", enabled=is_tablet, maxTouchPoints=5 if is_tablet else 1)

    def touch(self, *fingers: Sequence[Point]) -> None:
        """Puts fingers down at the first of their points, and lets them go at the last."""
        steps = list(zip(*fingers, strict=True))
        for place, points in enumerate(steps):
            touches = [{"x": at.x, "y": at.y, "id": number} for number, at in enumerate(points)]
            self.call("Input.dispatchTouchEvent", type="touchMove" if place else "touchStart", touchPoints=touches)
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def tap(self, element: str) -> None:
        """Puts a finger on an element."""
        self.touch([self.find(element)])

    def type(self, element: str, text: str) -> None:
        """Clicks into a field, empties it, and enters a text."""
        self.click(element)
        self.until("['INPUT', 'TEXTAREA'].includes(document.activeElement.tagName)")
        self.press("a", "Control")
        self.press("Backspace")
        self.call("Input.insertText", text=text)
        self.until(f"document.activeElement.value === {json.dumps(text)}")

    def enter(self, text: str) -> None:
        """Types into the field that has the cursor."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, modifier: str = "") -> None:
        """Presses a key, with another one held."""
        code = KEYS.get(key) or ord(key.upper())
        name = key if key in KEYS else f"Key{key.upper()}" if key.isalpha() else f"Digit{key}"
        # a key that enters a character brings its text; Ctrl+A is an editing command in headless mode
        text = {"text": key} if key not in KEYS and not modifier else {"text": "\r"} if key == "Enter" else {}
        commands = {"commands": ["selectAll"]} if (key, modifier) == ("a", "Control") else {}
        about = {"key": key, "code": name, "windowsVirtualKeyCode": code, "modifiers": MODIFIERS.get(modifier, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text, **commands)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def zoom(self, at: Point, *, steps: int) -> None:
        """Turns the wheel forward with Ctrl held."""
        for _ in range(steps):
            about = {"x": at.x, "y": at.y, "deltaX": 0, "deltaY": -100, "modifiers": MODIFIERS["Control"]}
            self.call("Input.dispatchMouseEvent", type="mouseWheel", **about)

    def cut(self, is_cut: bool = True) -> None:
        """Takes the line away from this tab, or gives it back."""
        unlimited = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.call("Network.emulateNetworkConditions", offline=is_cut, **unlimited)

    def slow_down(self) -> None:
        """Gives this tab the line of a telephone of the third generation."""
        line = {"latency": 300, "downloadThroughput": 200_000, "uploadThroughput": 90_000}
        self.call("Network.emulateNetworkConditions", offline=False, **line)

    def lose_answers(self, part: str) -> None:
        """From now on a proxy answers 502 in place of the server at addresses with this part; empty: no more."""
        if part:
            self.call("Fetch.enable", patterns=[{"urlPattern": f"*{part}*", "requestStage": "Response"}])
        else:
            self.call("Fetch.disable")

    def image(self) -> Image.Image:
        """The window as it is, RGB."""
        shot = self.call("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    def answers(self, part: str) -> list[Answer]:
        """What was fetched so far from addresses with this part, with bodies; since the last change of page."""
        for request in self._finished:
            url, status = self._responses[request]
            if part in url:
                self._answers.append(Answer(url, status, self._body(request)))
        self._finished = []
        return [answer for answer in self._answers if part in answer.url]

    def _body(self, request: str) -> str:
        said = self.call("Network.getResponseBody", requestId=request)
        return base64.b64decode(said["body"]).decode(errors="replace") if said["base64Encoded"] else said["body"]

    def _note(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        if event.get("method") == "Page.frameNavigated" and "parentId" not in about["frame"]:
            self._finished, self._answers = [], []  # the browser has let go of the bodies
        if event.get("method") == "Fetch.requestPaused":
            self._send("Fetch.fulfillRequest", requestId=about["requestId"], responseCode=502)
        if event.get("method") == "Network.responseReceived":
            response = about["response"]
            self._responses[about["requestId"]] = (response["url"], response["status"])
        elif event.get("method") == "Network.loadingFinished" and about["requestId"] in self._responses:
            self._finished.append(about["requestId"])
            self.n_bytes += about["encodedDataLength"]

    def _mouse(self, kind: str, at: Point, buttons: int) -> None:
        pressed = {"button": "none"} if kind == "mouseMoved" and not buttons else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=at.x, y=at.y, buttons=buttons, **pressed)


def located(element: str) -> str:
    """The expression of an element: itself, or that of a CSS selector."""
    return element if element.startswith("(") else f"document.querySelector({json.dumps(element)})"


def next_frame(expression: str) -> str:
    """The expression's value when the page has been drawn anew: on a busy machine what moves may stand for a while."""
    drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    return f"{drawn}.then(() => {expression})"


@contextmanager
def visitor(port: int, size: tuple[int, int], *, beside: Visitor | None = None) -> Iterator[Visitor]:
    """A visitor who has nobody's cookies, or another's (``beside``), in a window of this size, at the browser with this
    debugging port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version") as said:
        root = json.load(said)["webSocketDebuggerUrl"]
    with connect(root, max_size=None, ping_interval=None) as control:
        browser = Visitor(control)
        context = beside.context if beside else browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        with connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None, ping_interval=None) as connection:
            made = Visitor(connection)
            made.context = context
            width, height = size
            made.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
            made.call("Page.enable")
            made.call("Network.enable")
            try:
                yield made
            finally:
                if beside:
                    browser.call("Target.closeTarget", targetId=target)
                else:
                    browser.call("Target.disposeBrowserContext", browserContextId=context)
