"""The repairs that help a small model over trivial mistakes (Thyme, appendix A), every one of them reported.

Code that parses is never changed here, but for a tool call in JSON. What does not parse is tried with ever larger
repairs, and the first text that parses is what runs: what is around the code is stripped (`_WRAPPINGS`), outside of
strings and comments characters become plain (`_CHARACTERS`; a NUL stays an error: no model means one), then lines are
laid out anew (`_LAYOUTS`).

Each repair is an edit of the whole text: the `after` of one is the `before` of the next, and lines are counted in the
last. Where nothing helps, the error is the one of the code without its fence or tags, and says so.

Not here: boxes, which are repaired while the code runs (`boxes`). The lite tier, which has no file system of its own,
also moves folders, and a prompt's absolute names of images move everywhere (`names`).
"""

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from darkroom.sandbox._guest import source_layout
from darkroom.sandbox._guest.differences import MAX_CHANGED_CHARS, MAX_REPAIRS, n_changed_chars
from darkroom.sandbox._guest.names import ImageLinks
from darkroom.sandbox._guest.notebook import call_notebook


class SourceEdit(NamedTuple):
    kind: str
    before: str
    after: str


class Step(NamedTuple):
    kind: str
    repair: Callable[[str], str]
    """Returns the text that it was given where it does not apply."""


_MAX_WRAPPINGS = 4
"""Such as tags, a fence, prose and a notebook's lines."""

_DOUBLE, _SINGLE = "“”„‟", "‘’‚‛"
_QUOTED = re.compile(
    f'(?P<text>{source_layout.TEXT})|[{_DOUBLE}](?P<double>[^{_DOUBLE}"\n]*)[{_DOUBLE}]'
    f"|[{_SINGLE}](?P<single>[^{_SINGLE}'\n]*)[{_SINGLE}]|[{_DOUBLE}{_SINGLE}]",
    re.DOTALL,
)
_PLAIN_QUOTES = str.maketrans(dict.fromkeys(_DOUBLE, '"') | dict.fromkeys(_SINGLE, "'"))
_DROPPED = "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\N{SOFT HYPHEN}\x1a"
_SPACES = "\N{NO-BREAK SPACE}\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_VISIBLE = str.maketrans(dict.fromkeys(_DROPPED, "") | dict.fromkeys(_SPACES, " "))
_AFTER_BACKSLASH = re.compile(r"\\[ \t]+(?=\r?\n)")


def parse_repaired(code: str, filename: str, *, enabled: bool = True) -> tuple[ast.Module, list[SourceEdit]]:
    """The syntax tree of the code, and the repairs that it took. Raises SyntaxError or ValueError."""
    if not enabled:
        return ast.parse(code, filename), []
    try:
        return source_layout.parse(code, filename), []
    except (SyntaxError, ValueError) as error:
        original = error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an invalid escape, once per attempt
        unwrapped = _unwrapped(code)
        inner = _last(unwrapped, code)
        for joined in ([], _applied(inner, _JOIN_FENCED) or _applied(inner, _JOIN_TAGGED)):
            mended = _mended(_last(joined, inner))
            if mended is not None:
                edits = unwrapped + joined + mended
                if n_changed_chars(edits) > MAX_CHANGED_CHARS or len(edits) > MAX_REPAIRS:
                    raise original  # every repair is reported, and these would not fit into a reply
                return source_layout.parse(_last(edits, code), filename), edits
        if unwrapped:
            try:
                source_layout.parse(inner, filename)
            except SyntaxError as error:
                error.msg += ", in the code without its fence or tags"
                raise
    raise original


def move_paths(nodes: Iterable[ast.AST], code: str, folders: Mapping[str, str], links: ImageLinks) -> list[SourceEdit]:
    """Point string literals below a folder, and those that name an image, to where that really is, in place."""
    if not links.named and not any(folder in code for folder in folders):
        return []
    edits: list[SourceEdit] = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            before, place = node.value, links.place_of(node.value)
            node.value = _moved(before, folders) if place is None else place
            if node.value != before:
                kind = "output_folder" if place is None else "image_name"
                edits.append(SourceEdit(kind, repr(before), repr(node.value)))
    return edits


def _moved(path: str, folders: Mapping[str, str]) -> str:
    for folder, real in folders.items():
        if (path == folder or path.startswith(f"{folder}/")) and (folder == real or not os.path.isfile(path)):
            return real + path.removeprefix(folder)
    return path


def _last(edits: list[SourceEdit], code: str) -> str:
    return edits[-1].after if edits else code


def _applied(code: str, step: Step) -> list[SourceEdit]:
    """The one edit that the step makes, or none where it changes nothing."""
    after = step.repair(code)
    return [] if after == code else [SourceEdit(step.kind, code, after)]


def _unwrapped(code: str) -> list[SourceEdit]:
    """The edits that strip what is around the code, from the outside in."""
    edits: list[SourceEdit] = []
    while len(edits) < _MAX_WRAPPINGS and not source_layout.parses(inner := _last(edits, code)):
        steps = [step for step in _WRAPPINGS if not edits or step.kind != "strip_prose"]
        stripped = next(filter(None, (_applied(inner, step) for step in steps)), None)
        if not stripped:
            break
        edits += stripped
    return edits


def _mended(code: str) -> list[SourceEdit] | None:
    """The edits after which the code parses: none where it does already; None where nothing helps."""
    edits: list[SourceEdit] = []
    for step in _CHARACTERS:
        if not source_layout.parses(inner := _last(edits, code)):
            edits += _applied(inner, step)
    tried = (_laid_out(_last(edits, code), recipe) for recipe in _LAYOUTS)
    return next((edits + laid_out for laid_out in tried if laid_out is not None), None)


def _laid_out(code: str, recipe: tuple[Step, ...]) -> list[SourceEdit] | None:
    """The edits of all the steps, in turn; None where one changes nothing or where the last text does not parse."""
    edits: list[SourceEdit] = []
    for step in recipe:
        edit = _applied(_last(edits, code), step)
        if not edit:
            return None  # without this step it is a shorter recipe, which was tried
        edits += edit
    return edits if source_layout.parses(_last(edits, code)) else None


def _plainly_quoted(match: re.Match[str]) -> str:
    if match["text"] is not None:
        return match["text"]
    plain, inner = match[0].translate(_PLAIN_QUOTES), match["double"] or match["single"] or ""
    return plain[0] + inner + plain[1 + len(inner) :]


def _drop_invisible(code: str) -> str:
    parts = source_layout.STRING_OR_COMMENT.split(code)
    parts[::2] = [_AFTER_BACKSLASH.sub(r"\\", part.translate(_VISIBLE)) for part in parts[::2]]
    return "".join(parts)


_WRAPPINGS = (
    Step("strip_tag", source_layout.strip_tags),
    Step("strip_prose", source_layout.strip_prose),
    Step("strip_fence", source_layout.strip_fence),
    Step("strip_call", source_layout.strip_call),
    Step("strip_prompts", source_layout.strip_prompts),
    Step("notebook", call_notebook),
)
# of two blocks with nothing between them; a line break takes the tags' place
_JOIN_TAGGED = Step("strip_tag", partial(source_layout.TAG_SEAM.sub, "\n"))
_JOIN_FENCED = Step("strip_fence", partial(source_layout.FENCE_SEAM.sub, ""))
_CHARACTERS = (
    Step("plain_quotes", partial(_QUOTED.sub, _plainly_quoted)),
    Step("invisible_characters", _drop_invisible),
)
"""In code that parses, what they change stands in strings and comments only; so where they apply they are needed."""
_DEDENT = Step("dedent", source_layout.dedent)
_ALIGN = Step("align_first_line", source_layout.align_first_line)
_TABS_OUT = Step("expand_tabs", source_layout.expand_tabs)
_REINDENT = Step("autopep8", source_layout.reindent)
_REFORMAT = Step("autopep8", source_layout.reformat)
_LAYOUTS: tuple[tuple[Step, ...], ...] = (
    (),
    (_DEDENT,),
    (_ALIGN,),
    (_TABS_OUT,),
    (_DEDENT, _TABS_OUT),
    (_REINDENT,),
    (_DEDENT, _REINDENT),
    (_REFORMAT,),
    (_DEDENT, _REFORMAT),
)
"""Tried in turn, each on the same text."""
