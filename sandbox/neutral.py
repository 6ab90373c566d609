"""Takes the meaning out of protocol tags and special tokens in what the code printed.

Output lands in the model's context, between tags that the runtime writes: text with such a tag could close it, pose as
the model's own thought, code or answer, or become a special token. The first character of each becomes one that looks
like it (`<` becomes `‹`, U+2039); all else stays. `special_tokens.toml` has the tags and tokens.

Letters and brackets that Unicode's NFKC makes plain, full-width or mathematical ones, count as these: some tokenizers
normalise. The text may be hostile, and the time is linear in it: every run of characters is taken whole (`*+` never
gives back) and contains no `<`, where the next search begins.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

_LOOKALIKES = {"<": "‹", "[": "⁅", "]": "⁆", "◁": "◃"}
"""No normalisation of Unicode leads back to the former."""
UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Characters, as a class of regular expressions, that control a terminal, turn the direction or cannot be seen."""
_WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("special_tokens.toml").read_text("utf-8")).items()
}
_TAGS = _WORDS["protocol"] | _WORDS["tokens"]
_TAG = re.compile(
    r"<(?:[|｜]"  # <|im_start|> and the tokens of DeepSeek
    r"|\s*+/?+\s*+([\w:.-]++)"
    r"(\s*+/?+>"  # <code>, </answer>, <image_0>
    r"|\s*+="  # <function=name>
    r"|\s++[\w:.-]++\s*+=)?)"  # <answer id="1">
)


def neutralise(text: str, special_tokens: Sequence[str] = ()) -> str:
    """The text without meaning to a chat template or tokenizer; its length stays. `special_tokens` are the reading
    tokenizer's, where it is known; those that begin like no tag stay (some tokenizers end a text by a line break)."""
    plain = text if text.isascii() else text.translate(_plain_forms())
    if not any(first in plain for first in _LOOKALIKES):
        return text
    neutral = _LITERAL.sub(_without_meaning, _TAG.sub(_checked, plain))
    if own := _own(tuple(special_tokens)):
        neutral = own.sub(_without_meaning, neutral)
    if plain is text:
        return neutral
    return "".join(new if new != old else char for char, old, new in zip(text, plain, neutral, strict=True))


@cache
def _plain_forms() -> dict[int, str]:
    """The ASCII character that NFKC makes of another one."""
    forms = ((code, unicodedata.normalize("NFKC", chr(code))) for code in range(0x80, 0x20000))
    return {code: form for code, form in forms if len(form) == 1 and form.isascii()}


def _checked(tag: re.Match[str]) -> str:
    name, rest = tag.groups(default="")
    return _without_meaning(tag) if not name or _has_meaning(name.casefold(), rest.strip()) else tag[0]


def _has_meaning(name: str, rest: str) -> bool:
    """`rest` is `>`, `/>`, `=`, `attribute=` or nothing."""
    stem = name.rstrip("0123456789")
    is_numbered = stem != name
    plain = stem.removesuffix("_") if is_numbered and stem.endswith("_") else name
    if rest.endswith(">"):
        return plain in _TAGS or (is_numbered and stem in _WORDS["numbered"]) or name.startswith("0x")
    if rest == "=":
        return name in ("function", "parameter")
    return name == "invoke" or (bool(rest) and plain in _WORDS["protocol"])


def _without_meaning(tag: re.Match[str]) -> str:
    return _LOOKALIKES[tag[0][0]] + tag[0][1:]


@lru_cache(maxsize=8)  # of thousands of long tokens each holds megabytes
def _own(tokens: tuple[str, ...]) -> re.Pattern[str] | None:
    """The tokens that are not among the known."""
    unknown = [token for token in tokens if len(token) > 1 and token[0] in _LOOKALIKES and token == neutralise(token)]
    return _any_of(unknown) if unknown else None


def _any_of(tokens: Iterable[str]) -> re.Pattern[str]:
    """The first character of each, which is what `_without_meaning` needs of a token that others may overlap."""
    rests: dict[str, list[str]] = {}
    for token in sorted(tokens):
        rests.setdefault(token[0], []).append(re.escape(token[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?={'|'.join(rest)})" for first, rest in rests.items()))


_LITERAL = _any_of(_WORDS["literal"])
