r"""What a model puts around its code: a Markdown fence or a pair of tags. Stripped, never searched for inside.

    <code>\n```python\nprint(1)\n```\n</code>    ->    \n```python\nprint(1)\n```\n    ->    print(1)\n

Only blank text may stand outside, and one side is enough. What lies between stays as it is, byte for byte: of a fence
the lines between its two lines, of tags everything between them. Fences of another language are no Python and stay.
The caller asks only for code that does not parse, so what stands in a string is out of reach, and so is `~~~python`
without its end, which is Python.
"""

import re

_BLANK = " \t\r\n\f\v\0\ufeff\u200b\N{NO-BREAK SPACE}"
_LANGUAGE = "(?:python3?|py3?)?"
_OPENING_FENCE = re.compile(
    rf"\A[{_BLANK}]*(`{{3,}}|~{{3,}})[ \t]*{_LANGUAGE}(?:[ \t\r]*(?:\n|\Z)|[ \t])", re.IGNORECASE
)
_ANY_FENCE = re.compile(rf"\A[{_BLANK}]*(?:```|~~~)")
_OPENING_TAG = re.compile(rf"\A[{_BLANK}]*<(?:code|python)>", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</(?:code|python)>\Z", re.IGNORECASE)
_FENCE_SEAM = re.compile(
    rf"^[ \t]*(`{{3,}}|~{{3,}})\s*\n[ \t]*\1[ \t]*{_LANGUAGE}[ \t\r]*\n", re.IGNORECASE | re.MULTILINE
)
_TAG_SEAM = re.compile(rf"</(code|python)>[{_BLANK}]*<\1>", re.IGNORECASE)


def strip_tags(code: str) -> str:
    """Without `<code>` or `<python>` at the start and `</code>` or `</python>` at the end, or either of them."""
    opening = _OPENING_TAG.match(code)
    code = code[opening.end() :] if opening else code
    closing = _CLOSING_TAG.search(code.rstrip(_BLANK))
    return code[: closing.start()] if closing else code


def strip_fence(code: str) -> str:
    """Without a first line like ```` ```python ```` and a last line of the same fence, or either of them."""
    opening = _OPENING_FENCE.match(code)
    if opening:
        return _without_closing_fence(code[opening.end() :], opening[1])
    if _ANY_FENCE.match(code):
        return code
    return _without_closing_fence(_without_closing_fence(code, "```"), "~~~")


def join_fenced(code: str) -> str:
    """Without the end of one block and the start of the next, where nothing stands between them."""
    return _FENCE_SEAM.sub("", code)


def join_tagged(code: str) -> str:
    """`join_fenced` for tags: a line break takes their place."""
    return _TAG_SEAM.sub("\n", code)


def _without_closing_fence(code: str, opening: str) -> str:
    """Without a fence, at least as long as the opening one, that ends the last line or fills it."""
    body = code.rstrip(_BLANK)
    bare = body.rstrip(opening[0])
    if len(body) - len(bare) < len(opening):
        return code
    lines, newline, last = bare.rpartition("\n")
    return bare if last.strip() else lines + newline
