"""The code as it ran, from the code that was written and the edits that the sandbox reports."""

from darkroom.pipelines.records import Edit, Observation, Round
from darkroom.pipelines.verification.checks import crop_contains_target, crop_is_tight
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


def test_the_last_image_of_the_last_round_that_showed_one_is_the_crop(make_case, make_image, store) -> None:
    hit, miss, large = (
        store.add_pixels(make_image(3, 640, 480).crop(box))
        for box in ((180, 100, 280, 170), (400, 300, 500, 370), (60, 40, 600, 440))
    )

    def found(*shown):
        return make_case(rounds=tuple(Round("", "", Observation("ok", "", images=images)) for images in shown))

    for shown, passes in (([(miss, hit)], True), ([(hit, miss)], False), ([(miss,), (hit,), ()], True)):
        assert crop_contains_target(found(*shown)).passed is passes
    for shown, passes in (([(large, hit)], True), ([(hit, large)], False), ([(large,), (hit,), ()], True)):
        assert crop_is_tight(found(*shown)).passed is passes
