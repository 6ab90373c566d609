"""A check of an endpoint: a dozen small questions to it, and the settings that fit the answers. Every question costs a
call that is on no ledger. A field that is refused (400, 413, 422) is turned off in the settings; from any other failure
nothing is concluded. Both are printed in the endpoint's words."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pybase64
from PIL import Image

from darkroom.pipelines.models.messages import ImagePart, Message, message
from darkroom.pipelines.models.parsing import json_objects
from darkroom.pipelines.models.policies.openai import EndpointAnswer, is_same_model, read_answer
from darkroom.pipelines.models.policies.policy import NoAnswer, PolicyError, PolicyUnavailable, StatusError
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.media_validation import encode

State = Literal["yes", "no", "unclear"]
_SIDE, _LARGE = 224, (4096, 3072)
_MANY = (32, 8, 2)
_CODE = "<code>\nprint(1)\n</code>"
_CALL = '<tool_call>\n{"name": "crop", "arguments": {"x": 1}}\n</tool_call>'
_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of a model's context in lists of models: vLLM's, OpenRouter's, Groq's, Mistral's."""


@dataclass(frozen=True, slots=True)
class Ability:
    """A finding of one question."""

    about: str
    state: State
    seen: str
    """What the endpoint said or did."""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """An answer, or why there is none."""

    seconds: float
    answer: EndpointAnswer | None = None
    refusal: str = ""
    """The endpoint's words."""
    status: int = 0

    @property
    def text(self) -> str:
        return self.answer.choices[0].text.strip() if self.answer and self.answer.choices else ""

    @property
    def is_refused(self) -> bool:
        """Return whether the endpoint takes no such request, however often it is sent."""
        return self.status in (400, 413, 422)

    @property
    def n_prompt(self) -> int:
        """Tokens of the prompt; 0 where they are not counted."""
        return (self.answer.prompt_tokens or 0) if self.answer else 0

    @property
    def said(self) -> str:
        """The text to print: the refusal, or the answer."""
        return self.refusal or f"answered {_short(self.text)!r}"


class EndpointCheck:
    """The questions to one endpoint, one after the other; ``settings`` fit the answers so far, by field of the
    endpoint's settings. ``findings`` raises ``PolicyUnavailable`` where nothing answers."""

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        # the SDK takes a second, which commands that call no endpoint are spared
        from darkroom.pipelines.models.policies.http_client import ChatClient

        self.endpoint = endpoint
        self.settings: dict[str, Any] = {}
        self.n_tokens = 0
        self._chat = ChatClient(endpoint, key)
        self._fields: dict[str, Any] = {**endpoint.sampling, "seed": 0, **endpoint.extra_body}

    async def findings(self) -> AsyncIterator[Ability]:
        """Asks, and gives each finding as it is made."""
        try:
            yield await self._listed()
            yield (answers := await self._text())
            if answers.state != "no":
                for ask in (self._thought, self._system):
                    yield await ask()
                yield (sees := await self._image())
                of_images = (self._images, self._large) if sees.state != "no" else ()
                for ask in (*of_images, self._stop, self._several, self._seed, self._schema, self._calls, self._limits):
                    yield await ask()
        finally:
            await self._chat.close()

    async def _ask(self, *messages: Message, urls: Mapping[str, bytes] | None = None, **fields: Any) -> CheckAnswer:
        """Ask; once more where a gateway fails or is busy, which may pass."""
        reply = await self._ask_once(messages, urls or {}, fields)
        return await self._ask_once(messages, urls or {}, fields) if reply.status >= 429 else reply

    async def _ask_once(
        self, messages: Sequence[Message], urls: Mapping[str, bytes], fields: Mapping[str, Any]
    ) -> CheckAnswer:
        from darkroom.pipelines.models.policies.http_client import Body

        body = {name: value for name, value in {**self._fields, **fields}.items() if value is not None}
        start = time.monotonic()
        try:
            async with asyncio.timeout(self.endpoint.timeout_seconds):
                response = await self._chat.post(Body(body, messages, urls))
            if (answer := read_answer(response, body.get("n", 1))).failure is not None:
                raise answer.failure
        except StatusError as error:
            return CheckAnswer(time.monotonic() - start, refusal=_short(str(error), 300), status=error.status)
        except (NoAnswer, PolicyError, TimeoutError) as error:
            return CheckAnswer(time.monotonic() - start, refusal=_short(str(error) or "no answer in time", 300))
        self.n_tokens += (answer.prompt_tokens or 0) + (answer.completion_tokens or 0)
        return CheckAnswer(time.monotonic() - start, answer)

    async def _asked(self, question: str, **fields: Any) -> CheckAnswer:
        return await self._ask(message("user", question), **fields)

    async def _listed(self) -> Ability:
        try:
            listed = await self._chat.request_models()
        except NoAnswer as error:
            raise PolicyUnavailable(f"nothing answers at {self.endpoint.base_url} ({error})") from None
        except StatusError:
            listed = []
        if not listed:
            return Ability("list of models", "unclear", "there is none")
        found = next((entry for entry in listed if is_same_model(self.endpoint.model, entry["id"])), None)
        if found is None:
            names = _short(", ".join(entry["id"] for entry in listed))
            return Ability("list of models", "no", f"no {self.endpoint.model!r} in it: {names}")
        prices = held if isinstance(held := found.get("pricing"), dict) else {}
        for name in ("prompt", "completion"):
            if (price := _price(prices.get(name))) is not None:
                self.settings[f"usd_per_million_{name}_tokens"] = price
        context = next((f", context {found[name]:,} tokens" for name in _CONTEXT if type(found.get(name)) is int), "")
        return Ability("list of models", "yes", f"has {found['id']!r}{context}")

    async def _text(self) -> Ability:
        """A plain question. Where it is refused, the fields that are: each is tried by itself."""
        question = "What is 2 + 2? Reply with the number."
        if (reply := await self._asked(question)).is_refused:
            bare = dict.fromkeys(("temperature", "top_p", "seed", "max_tokens"))
            tried = {name: await self._asked(question, **{**bare, name: self._fields.get(name)}) for name in bare}
            changed: dict[str, Any] = {name: None for name, each in tried.items() if each.answer is None}
            if "max_tokens" in changed:
                changed["max_completion_tokens"] = self.endpoint.max_tokens
            again = await self._asked(question, **changed)
            if again.answer is not None:
                self._fields |= changed
                self.settings["extra"] = json.dumps({**self.endpoint.extra_body, **changed})
            seen = again.refusal or f"without {', '.join(changed)}: {reply.refusal}"
            return Ability("text", "yes" if again.answer else "no", seen)
        if reply.answer is None:
            return Ability("text", "no", reply.refusal)
        if not reply.answer.choices[0].finished:
            self.settings["max_tokens"] = 4 * self.endpoint.max_tokens
            limit = f"{self.endpoint.max_tokens:,} tokens were spent before the answer ended"
            return Ability("text", "unclear", f"{limit}; {reply.said}")
        named = reply.answer.model or "no name"
        another = "" if is_same_model(self.endpoint.model, named) else f"; the model that answered is {named!r}"
        counted = "" if reply.answer.completion_tokens else "; tokens are not counted"
        state: State = "unclear" if another or counted or "4" not in reply.text else "yes"
        return Ability("text", state, f"{reply.said} in {reply.seconds:.1f} s{another}{counted}")

    async def _thought(self) -> Ability:
        reply = await self._asked("Which is larger, 17 * 23 or 20 * 20? Think first, then reply with the number.")
        if reply.answer is None or not (thought := reply.answer.choices[0].reasoning):
            return Ability("thought apart", "no", "the text is all that comes" if reply.answer else reply.refusal)
        names = [name for name, value in reply.answer.message.items() if name not in ("role", "content") and value]
        return Ability("thought apart", "yes", f"in {', '.join(names) or 'the content'}: {_short(thought)!r}")

    async def _system(self) -> Ability:
        asked = message("system", "Reply to everything with the one word BANANA."), message("user", "What is 2 + 2?")
        reply = await self._ask(*asked)
        return Ability("system role", _state(reply, "banana" in reply.text.lower()), reply.said)

    async def _image(self) -> Ability:
        picture = Image.new("RGB", (_SIDE, _SIDE), "blue")
        picture.paste("red", (0, 0, _SIDE // 2, _SIDE))
        question = "Which colour is the left half of this image? Reply with one word."
        reply, blind = await self._seen([picture], question), await self._asked(question)
        if reply.n_prompt and reply.n_prompt == blind.n_prompt:
            return Ability("image", "no", f"dropped: it takes no tokens; {reply.said}")
        return Ability("image", _state(reply, "red" in reply.text.lower()), reply.said)

    async def _images(self) -> Ability:
        pictures = [Image.new("RGB", (56, 56), (8 * number, 90, 160)) for number in range(_MANY[0])]
        for n in _MANY:
            reply = await self._seen(pictures[:n], "Reply with the word ready.")
            if reply.answer is not None:
                return Ability("images at once", "yes", f"{n}{' or more' if n == _MANY[0] else ''}")
        return Ability("images at once", "no", reply.refusal)

    async def _large(self) -> Ability:
        pictures = [Image.new("RGB", size, "white") for size in ((_SIDE, _SIDE), _LARGE)]
        small, large = [await self._seen([picture], "Reply with the word ready.") for picture in pictures]
        about = f"image of {_LARGE[0]}x{_LARGE[1]}"
        if large.answer is None:
            self.settings |= {"max_pixels": 2_000_000} if large.is_refused else {}
            return Ability(about, "no", large.refusal)
        return Ability(about, "yes", f"{large.n_prompt:,} tokens; {small.n_prompt:,} where it is {_SIDE}x{_SIDE}")

    async def _seen(self, pictures: Sequence[Image.Image], question: str) -> CheckAnswer:
        parts, urls = [], {}
        for picture in pictures:
            data = encode(picture, "PNG")
            ref = ImageRef(digest_bytes(data), *picture.size, "RGB", "PNG")
            urls[ref.sha256] = b"data:image/png;base64," + pybase64.b64encode(data)
            parts.append(ImagePart(ref))
        return await self._ask(message("user", *parts, question), urls=urls)

    async def _stop(self) -> Ability:
        reply = await self._asked(f"Copy exactly, and nothing else:\n{_CODE}\nDONE", stop=["</code>"])
        before, mark, after = reply.text.partition("</code>")
        if reply.is_refused:
            self.settings["send_stop"] = False
        if "<code>" not in before:
            return Ability("stop strings", "no" if reply.refusal else "unclear", reply.said)
        if after.strip():
            return Ability("stop strings", "no", "ignored: the text goes on after them, and is cut here")
        return Ability("stop strings", "yes", "honoured, and part of the text" if mark else "honoured, and left out")

    async def _several(self) -> Ability:
        reply = await self._asked("Reply with any word.", n=2)
        n = len(reply.answer.choices) if reply.answer else 0
        if reply.is_refused or n == 1:
            self.settings["send_n"] = False
        return Ability("several answers (n)", "yes" if n > 1 else "no", reply.refusal or f"{n} to n=2")

    async def _seed(self) -> Ability:
        replies = [await self._asked("Reply with a random number of 12 digits.") for _ in range(2)]
        is_same = replies[0].text == replies[1].text != ""
        seen = f"two requests with one seed gave {'the same answer' if is_same else 'different answers'}"
        return Ability("seed", "yes" if is_same else "no", replies[1].refusal or seen)

    async def _schema(self) -> Ability:
        form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA}}
        reply = await self._asked("How many legs has a cat? Answer in a sentence.", response_format=form)
        if reply.is_refused:
            self.settings["send_schema"] = False
        fits = any(type(found.get("n")) is int for found in json_objects(reply.text))
        return Ability("JSON schema", _state(reply, fits), reply.said)

    async def _calls(self) -> Ability:
        reply = await self._asked(f"Copy exactly, and nothing else:\n{_CALL}")
        if reply.answer and reply.answer.message.get("tool_calls"):
            return Ability("tool calls as text", "yes", "the server moves them to tool_calls, which is read")
        return Ability("tool calls as text", _state(reply, "<tool_call>" in reply.text), reply.said)

    async def _limits(self) -> Ability:
        limits = [f"{name}: {value}" for name, value in self._chat.headers.items() if "ratelimit" in name.lower()]
        return Ability("limits in headers", "yes" if limits else "no", _short(", ".join(sorted(limits)), 300) or "none")


def _state(reply: CheckAnswer, is_good: bool) -> State:
    return "yes" if is_good else "no" if reply.answer is None else "unclear"


def _price(stated: Any) -> float | None:
    """USD for a million tokens of a price for one, as OpenRouter and LiteLLM state it."""
    try:
        price = round(1e6 * float(stated), 6)
    except (TypeError, ValueError):
        return None
    return price if 0 < price < 1e6 else None


def _short(text: str, most: int = 80) -> str:
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
