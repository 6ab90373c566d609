r"""Repairs of code that does not parse, by its layout: what a model puts around it, and its indentation.

    <code>\n```python\nprint(1)\n```\n</code>    ->    \n```python\nprint(1)\n```\n    ->    print(1)\n

One side of a fence or of a pair of tags is enough; the text between stays as it is, byte for byte. Fences of another
language stay. The caller asks only for code that does not parse, so the contents of a string are out of reach, and so
is `~~~python` without its end, which is Python.

Repairs of indentation work on lines and do not know where a string begins, so the lines of a string may move along with
the code. Each returns the same text where it does not apply.
"""

import ast
import contextlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import autopep8

_BLANK = " \t\r\n\f\v\0\ufeff\u200b\N{NO-BREAK SPACE}"
TEXT = (
    r'"{3}(?:[^\\]|\\.)*?"{3}|' r"'{3}(?:[^\\]|\\.)*?'{3}|" r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'|" r"\#[^\n]*"
)
STRING_OR_COMMENT = re.compile(f"({TEXT})", re.DOTALL)
"""A string or a comment; with the pattern as a group, `split` gives them every other time."""
_LANGUAGE = r"\{?(?:python[23]?|py[23]?|ipython3?|tool_code|code)?\}?"
_OPENING_FENCE = re.compile(
    rf"\A[{_BLANK}]*(`{{3,}}|~{{3,}})[ \t]*(?:{_LANGUAGE}|markdown|md)(?:[ \t\r]*(?:\n|\Z)|[ \t])", re.IGNORECASE
)
_ANY_FENCE = re.compile(rf"\A[{_BLANK}]*(?:```|~~~)")
_OPENING_TAG = re.compile(rf"\A[{_BLANK}]*<(?:code|python|tool_call|tool_code|execute|\|python_tag\|)>", re.IGNORECASE)
_CLOSING_TAG = re.compile(
    r"</(?:code|python|tool_call|tool_code|execute)>(?:\Z|\s{0,9}<(?:sandbox_output|interpreter|output|answer|think)>)",
    re.IGNORECASE,
)
FENCE_SEAM = re.compile(
    rf"^[ \t]*(`{{3,}}|~{{3,}})\s*\n[ \t]*\1[ \t]*{_LANGUAGE}[ \t\r]*\n", re.IGNORECASE | re.MULTILINE
)
_FENCE_LINE = re.compile(r"^[ \t]{0,9}(`{3,9}|~{3,9})[ \t]{0,9}\{?\.?([\w+-]{0,20})\}?[ \t\r]{0,9}$", re.MULTILINE)
_WRAPPED = re.compile(rf"{_OPENING_TAG.pattern}|\A[{_BLANK}]*(?:`{{3,}}|~{{3,}})\w", re.IGNORECASE)
_LONG_STRING = re.compile(r"\"{3}|'{3}")
TAG_SEAM = re.compile(rf"</(code|python)>[{_BLANK}]*<\1>", re.IGNORECASE)


def strip_tags(code: str) -> str:
    """Remove `<code>` or `<python>` at the start and `</code>` or `</python>` at the end, or either, and a thought."""
    if code.lstrip(_BLANK).startswith("<think>") and "</think>" in code:
        return code.partition("</think>")[2]
    opening = _OPENING_TAG.match(code)
    code = code[opening.end() :] if opening else code
    closing = _CLOSING_TAG.search(code.rstrip(_BLANK))
    return code[: closing.start()] if closing else code


_CALL = re.compile(
    r"\A\s*[{\[]|^[ \t]{0,9}(?:<(?:function|invoke |tool_|\|tool_|arg_key)|```json|\[TOOL_CALLS|Action|\{\"name\")",
    re.MULTILINE,
)
_CALLED = re.compile(r"(?:<function=|<invoke name=\"|<tool_call>|\A)\s{0,9}([\w.-]{1,64})(?=[\">]|\s{0,9}<arg_key>)")
_FIELD = re.compile(
    r"<(?:parameter=|parameter name=\"|arg_key>)([\w.-]{1,64})(?:\"?>|</arg_key>\s{0,9}<arg_value>)\n?"
    r"((?:[^<]|<(?!/parameter>|/arg_value>))*+)"
)
_DECODER = json.JSONDecoder(strict=False)  # strings may contain unescaped line ends
_UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError, TypeError)
_FIELDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("tool_calls.toml").read_text("utf-8"))
_TOOL, _ARGUMENTS, _CODE = (_FIELDS[kind].split() for kind in ("tool", "arguments", "code"))
_INSIDE = {*_CODE, *_ARGUMENTS, *_FIELDS["around"].split()}
_BOX = re.compile(r"[\[(]\s{0,3}((?:-?[\d.]{1,20},\s{0,3}){3}-?[\d.]{1,20})\s{0,3}[\])]")
_LIKE_CODE = re.compile(r"[\n(=]")
_MAX_CALLS, _MAX_DEPTH = 8, 8


def strip_call(text: str) -> str:
    """Return the Python in the arguments of tool calls, as JSON or tags spell them; of a call without any, its JSON."""
    if not (opening := _CALL.search(text)):
        return text
    name, calls = _CALLED.search(text), list[dict[str, Any]]()
    for key, value in _FIELD.findall(text, opening.start()):
        calls += _objects({"name": name[1] if name else "", "arguments": {key: value}})
    calls = calls or _objects_of(text, opening.start())
    if programs := _programs(calls):
        return "\n".join(programs)
    return json.dumps(calls) if _tools(calls) else text.partition("Action Input:")[2].strip() or text


def _objects_of(text: str, start: int = 0) -> list[dict[str, Any]]:
    """The objects of JSON in the text, or the one of Python, each followed by those within it that belong to a call."""
    found = list[Any]()
    with contextlib.suppress(*_UNREADABLE):
        while len(found) < _MAX_CALLS and (start := text.find("{", start)) >= 0:
            value, start = _DECODER.raw_decode(text, start)
            found.append(value)
    if not found:
        with contextlib.suppress(*_UNREADABLE):
            found = [ast.literal_eval(text[start : text.rindex("}") + 1])]
    return [each for value in found for each in _objects(value)]


def _objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if isinstance(value, str) and value.lstrip().startswith("{"):  # arguments in a text
        yield from _objects_of(value)
    elif isinstance(value, list):
        yield from (each for inner in value[:_MAX_CALLS] for each in _objects(inner, depth + 1))
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        yield value
        yield from (each for key in value if key in _INSIDE for each in _objects(value[key], depth + 1))


def _programs(calls: list[dict[str, Any]]) -> list[str]:
    """The Python that calls hold under a name of code, or as their whole input. Where no tool is named it has to look
    like code, also if it does not parse: `{"code": "AB12"}` is a value that was read."""
    names, is_call = {*_CODE, *_ARGUMENTS}, bool(_tools(calls))
    texts = [(key in _CODE, text) for call in calls for key, text in call.items() if key in names and type(text) is str]
    return [text for is_code, text in texts if _is_program(text) or (is_code and (is_call or _LIKE_CODE.search(text)))]


def _tools(calls: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The names and the arguments of the calls that have both."""
    named = [(call[key], call) for call in calls for key in _TOOL if isinstance(call.get(key), str)]
    return [(name, call[key]) for name, call in named for key in _ARGUMENTS if key in call]


def strip_fence(code: str) -> str:
    """Remove a first line like ```` ```python ```` and a last line of the same fence, or either of them."""
    opening = _OPENING_FENCE.match(code)
    if opening:
        return _without_closing_fence(code[opening.end() :], opening[1])
    if _ANY_FENCE.match(code):
        return code
    return _without_closing_fence(_without_closing_fence(code, "```"), "~~~")


def strip_prose(code: str) -> str:
    """Return what stands in fences among prose, one block after the other; of code before a fence and prose, the code.
    Blocks of no or another language are left out where one names Python: they may show what it is to print."""
    first = _OPENING_FENCE.match(code)
    if first and _WRAPPED.match(code[first.end() :]):
        return code  # a fence or tag in a fence: `strip_fence` removes one after the other
    blocks, outside, opening, end = list[tuple[str, str]](), "", None, 0
    for line in _FENCE_LINE.finditer(code):
        if opening is None:
            outside, opening = outside + code[end : line.start()], line
            if not blocks and code[line.end() :].strip(_BLANK) and _is_program(outside):
                return outside
        elif line[1] == opening[1] and not line[2]:
            blocks.append((opening[2], code[opening.end() + 1 : line.start()]))
            opening, end = None, line.end()
    if opening is None:
        outside += code[end:]
    else:
        blocks.append((opening[2], code[opening.end() + 1 :]))
    if not outside.strip(_BLANK) or _LONG_STRING.search(outside):
        return code  # a fence may stand in a string of several lines
    named = [block for language, block in blocks if language and re.fullmatch(_LANGUAGE, language, re.IGNORECASE)]
    return "".join(named or [block for language, block in blocks if not language]) or code


def strip_prompts(code: str) -> str:
    """Return what stands after `>>>` and `...`; the lines between them are what was printed."""
    lines = code.strip().splitlines()
    if not lines or not lines[0].startswith(">>>"):
        return code
    return "\n".join(line[4:] for line in lines if line.startswith((">>>", "...")))


def _is_program(text: str) -> bool:
    """Check that it does something: a heading is a comment to Python, and a word a name."""
    does = ast.Call | ast.Assign | ast.AugAssign | ast.Import | ast.ImportFrom
    return parses(text) and any(isinstance(node, does) for node in ast.walk(ast.parse(text)))


def parse(code: str, filename: str = "<code>") -> ast.Module:
    """Parse it. Raises SyntaxError or ValueError, also for a tool call in JSON: to Python it is a value."""
    try:
        tree = ast.parse(code, filename)
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("nested too deeply for Python's parser, or too large for the memory left") from error
    value = getattr(tree.body[0], "value", None) if len(tree.body) == 1 else None
    if not isinstance(value, ast.Dict | ast.List | ast.Subscript):
        return tree
    calls = _objects_of(code)
    if (tools := _tools(calls)) or _programs(calls):
        raise ValueError(_only_python(tools))
    return tree


def _only_python(tools: list[tuple[str, Any]]) -> str:
    """Tell that nothing but Python runs, and the line that crops where the arguments have a box."""
    name, box = tools[0][0] if tools else "", _BOX.search(str(tools))
    instead = f"image_clue_0.crop(({box[1]})), in pixels" if box else "the code that does it"
    return f"there is no tool {name[:64]!r} here, only Python: write {instead}"


def parses(code: str) -> bool:
    with contextlib.suppress(SyntaxError, ValueError):
        parse(code)
        return True
    return False


def _without_closing_fence(code: str, opening: str) -> str:
    """Remove a fence, at least as long as the opening one, that ends the last line or fills it."""
    body = code.rstrip(_BLANK)
    bare = body.rstrip(opening[0])
    if len(body) - len(bare) < len(opening):
        return code
    lines, newline, last = bare.rpartition("\n")
    return bare if last.strip() else lines + newline


_MAX_REFORMATTED = 10_000
"""Characters up to which autopep8 is asked; it takes up to a millisecond a line."""
_MAX_PASSES = 8
"""Without a bound autopep8 never ends on some texts, such as 500 lines with two spaces before each."""
_INDENTATION = ["E1", "W1", "E9", "W6"]
_MARGIN = re.compile(r"^([ \t]*)(?=\S)", re.MULTILINE)
_TABS = re.compile(r"^ *\t[ \t]*", re.MULTILINE)


def dedent(code: str) -> str:
    """The first line's indentation taken from every line that has it; a line that lacks it may be part of a string."""
    first = _MARGIN.search(code)
    return re.sub(f"^{first[1]}", "", code, flags=re.MULTILINE) if first and first[1] else code


def align_first_line(code: str) -> str:
    """A first line that lost its indentation, as happens when a block is cut out of a text."""
    margins = list(itertools.islice(_MARGIN.finditer(code), 2))
    if len(margins) < 2 or margins[0][1] == margins[1][1]:
        return code
    first, second = margins
    return dedent(code[: first.start()] + second[1] + code[first.end() :])


def expand_tabs(code: str) -> str:
    """Tabs before a line as spaces, eight columns wide (Python 2) or four; not where both parse and mean two things."""
    meanings: dict[str, str] = {}
    for width in (8, 4):
        text = _TABS.sub(lambda tabs: tabs[0].expandtabs(width), code)  # noqa: B023 - it is called at once
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            meanings[ast.dump(ast.parse(text))] = text
    return meanings.popitem()[1] if len(meanings) == 1 else code


def reindent(code: str) -> str:
    """autopep8 on the indentation, which helps where that is what Python refuses, and only there."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _autopep8(code, {"select": _INDENTATION}) if isinstance(error, IndentationError) else code
    return code


def reformat(code: str) -> str:
    """autopep8 at its most aggressive, on the indentation and stray semicolons: nothing else of it makes code parse."""
    return _autopep8(code, {"select": [*_INDENTATION, "E70"], "aggressive": 2}) if ";" in code else code


def _autopep8(code: str, options: Mapping[str, object]) -> str:
    blanks = set("".join(margin[1] for margin in _MARGIN.finditer(code)))
    if len(code) > _MAX_REFORMATTED or len(blanks) > 1:  # of tabs among spaces it would guess the width
        return code
    try:
        return str(autopep8.fix_code(code, options={"pep8_passes": _MAX_PASSES, **options}))
    except Exception:  # noqa: BLE001 - it raises what its tokenizers raise
        return code
