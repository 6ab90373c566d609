"""The code as it ran, from the code that was written and the edits that the sandbox reports."""

from darkroom.pipelines.records import Edit, Observation, Round
from darkroom.pipelines.verification.checks.crop import executed_code
from darkroom.sandbox.frames import parse_reply
from darkroom.sandbox.limits import Limits


def test_repairs_of_tagged_code_are_followed_although_its_tags_are_neutralised() -> None:
    code = "<code>\n  image.crop((1, 2, 3, 4))\n</code>"
    rows = b'[["strip_tag", null, [0, 6, "", 28, 7, ""]], ["dedent", null, [1, 2, ""]], ["clamp_box", "a", "b"]]'
    fields = b'{"status": "ok", "text": "", "error": null, "images": [], "artefacts": [], "edits": %b}' % rows
    edits = tuple(Edit(edit.kind, edit.before, edit.after) for edit in parse_reply(fields, Limits(), code)[0].edits)
    turn = Round("", code, Observation("ok", "", edits=edits))
    assert executed_code(turn) == "\nimage.crop((1, 2, 3, 4))\n\nb"
