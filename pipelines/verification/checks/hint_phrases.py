"""Words and names that reveal a hint: the paraphrases of "I was given the answer".

Written against thoughts that leak and thoughts that do not (``tests/pipelines/verification/checks/cases/hints.json``).
A thought may guess ("roughly in the upper left"), look ("the sign seems tilted") and measure in code; it may not refer
to a source outside the image.
"""

from __future__ import annotations

import ast
import re

from pipelines.models.parsing import parsed

_FACT = (
    r"(?:bounding[ -]?box(?:es)?|bbox(?:es)?|box(?:es)?|region|area|crop|coordinate|coord|rectangle|location|position"
    r"|angle|rotation|degree|orientation|hint|annotation|answer|solution|value|label|operation)s?"
)
_GIVEN = (
    r"(?:provided|given|supplied|specified|known|annotated|labell?ed|pre-?defined|stated|prescribed|disclosed|handed)"
)
_KIND = r"(?:(?:bounding|crop|rotation|target|exact|correct|reference)[ ])"
_DOCUMENT = (
    r"(?:hint|metadata|meta-data|exif(?:[ ]data)?|annotations?|ground[ -]?truth|file[ -]?name|file[ ]path|path|prompt"
    r"|instructions?|system[ ]message|dataset|data[ ]set|gt)"
)
_SOURCE = rf"(?:{_DOCUMENT}|labels?)"
"""A label may also be a thing in the image, which may well say something."""
_TELLS = r"(?:says?|suffix|tells?|states?|indicates?|suggests?|reveals?|contains?|gives?|mentions?|encodes?)"
_TOLD = re.compile(
    rf"""
      ground[ -]?truth
    | \b gt[ ] {_FACT} \b
    # "the provided box", "the box that was given"
    | \b {_GIVEN}[ ] {_KIND}? {_FACT} \b (?![ ](?:office|of[ ]choices))
    | \b {_FACT}[ ] (?:that[ ]|which[ ])? (?:(?:is|are|was|were|has[ ]been|have[ ]been|had[ ]been)[ ])?
      (?:(?:i|we)[ ](?:was|were)[ ])? (?:already[ ])? {_GIVEN} \b
    # "according to the file name", "the metadata says"
    | \b (?:according[ ]to|as[ ]per|going[ ]by|judging[ ]by|thanks[ ]to)[ ](?:the[ ]|its[ ]|this[ ])? {_SOURCE} \b
    | \b {_DOCUMENT}[ ] (?:clearly[ ]|also[ ])? {_TELLS} \b
    | \b (?:derived|read|taken|inferred|known|extracted|obtained|comes?|came)[ ] from[ ] (?:the[ ]|its[ ])? {_SOURCE} \b
    # "I was told", "as instructed", "the user gave"
    | \b (?:i|we)[ ] (?:was|were|have[ ]been|had[ ]been|am|are|'ve[ ]been)[ ]
      (?:told|informed|given|instructed|provided|advised|handed) \b
    | \b (?:i|we)[ ] (?:already[ ])? (?:know|knew)[ ] (?:in[ ]advance|beforehand|from[ ]the[ ](?:{_SOURCE}|start))
    | \b as[ ] (?:(?:i[ ]was|we[ ]were|you)[ ])? (?:told|instructed|informed|provided|specified|directed|advised) \b
    | \b (?:you|the[ ]user|the[ ]prompt|the[ ]task|they)[ ] (?:have[ ]|has[ ])?
      (?:told|gave|given|provided|supplied|specified|handed|informed) \b
    # the order to keep it secret, repeated
    | \b (?:don't|do[ ]not|must[ ]not|should[ ]not|shouldn't|not[ ]allowed[ ]to|not[ ]supposed[ ]to|avoid|without)[ ]
      (?:mention|mentioning|reveal|revealing|disclose|disclosing)[ ]
    | \b pretend\b | \b as[ ]if[ ](?:i|we)[ ](?:had[ ])?(?:inferred|found|discovered|guessed)
    | \b (?:privileged|secret|hidden|confidential)[ ] (?:information|info|knowledge|{_FACT}) \b
    | \b (?:reference|draft|existing|worked|sample)[ ] solution \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NAME = re.compile(
    r"(?:^|_)(?:gt|groundtruth|ground_truth|truth|hint|hinted|given|provided|supplied|privileged|oracle|annotation|"
    r"annotated|told)(?:_|\d|$)|(?:^|_)(?:true|real|known|actual|correct|exact|right)_"
    r"(?:angle|box|bbox|region|rotation|degrees?|deg|coords?|coordinates|crop|answer)(?:_|\d|$)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATHS = re.compile(r"image_path(?:_\d+)?|video_path(?:_\d+)?")


def hint_phrase(text: str) -> str | None:
    """The words by which a text refers to a hint; None when there are none."""
    match = _TOLD.search(" ".join(text.split()))
    return match[0].strip() if match else None


def hint_name(code: str) -> str | None:
    """A variable, function, argument or attribute of the code whose name says that its value was given; else None."""
    return next((name for name in _names(code) if _NAME.search(_CAMEL.sub("_", name))), None)


def reads_file_name(code: str) -> bool:
    """Whether the code turns a part of an input's path into a number: then the path, not the image, tells it."""
    tree = parsed(code)
    if tree is None:
        return False
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in ("int", "float")]
    names = {name.id for call in numbers for name in ast.walk(call) if isinstance(name, ast.Name)}
    return any(_PATHS.fullmatch(name) or name in _from_paths(tree) for name in names)


def _from_paths(tree: ast.AST) -> set[str]:
    """Variables that are assigned from an input's path, also by way of others."""
    variables: set[str] = set()
    for _ in range(3):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(
                isinstance(name, ast.Name)
                and (_PATHS.fullmatch(name.id) or name.id in variables)
                and not _opened(node.value)
                for name in ast.walk(node.value)
            ):
                variables |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return variables


def _opened(value: ast.expr) -> bool:
    """`Image.open(image_path)`, `cv2.imread(image_path)`: what comes of it is the image."""
    return any(
        isinstance(node, ast.Call) and _called(node) in ("open", "imread", "VideoReader") for node in ast.walk(value)
    )


def _called(call: ast.Call) -> str:
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _names(code: str) -> list[str]:
    tree = parsed(code)
    if tree is None:
        return re.findall(r"[A-Za-z_]\w*", code)
    names: list[str] = []
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.append(value)
    return names
