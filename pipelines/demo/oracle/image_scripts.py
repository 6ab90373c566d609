"""Scripts of the oracle for families that look at an image; each has phrases and code in a TOML file of its name."""

from collections.abc import Sequence
from functools import partial
from random import Random

from darkroom.pipelines.demo import data_beside, some_form
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_from_crop,
    answer_turn,
    answering,
    before_look,
    by_scale,
    crop_turn,
    enlargement,
    family_script,
    first_region,
    hinted_region,
    is_named,
    label_of,
    looked_up,
    obstacles,
    operation_plan,
    place_at,
    place_of,
    region_from_text,
    silent,
    visibility,
    why_closer,
)
from darkroom.pipelines.generation.recipes import as_fractions, as_looked_up, target_region
from darkroom.pipelines.generation.recipes.crop import SEPARATOR
from darkroom.pipelines.generation.recipes.further_enhancement import generous
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme, ToolCall
from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box, box_from_fractions
from darkroom.pipelines.records.reject_reasons import Reason, RowError

_CROP = data_beside(__file__, "crop")
COUNTS = ("no", "one", "two", "three", "four", "five", "six")
TOO_WIDE = 1 / 6
"""How often the first look shows far more than the target."""


def _look_or_answer(turn: CompletionRequest) -> str:
    if "candidates" in turn.task.hint:
        return _search(turn)
    regions = _regions(turn)
    if len(turn.rounds) < len(regions):
        region = regions[len(turn.rounds)]
        # a turn's own seed: the second look does not repeat the first one's words
        rng = Random(turn.seed if turn.rounds else turn.task.seed)
        why = _CROP["narrower"] if turn.rounds else why_closer(visibility(turn.task))
        return crop_turn(turn, region, rng, why, by_scale("then", enlargement(region)))
    return answer_turn(turn, Thyme(), after_crop(turn.task.sample, enlargement(regions[-1])))


def _regions(turn: CompletionRequest) -> list[Box]:
    region, rng = hinted_region(turn), Random(turn.task.seed)
    if is_named(region, turn.task.sample) or rng.random() >= TOO_WIDE:
        return [region]
    image = turn.task.sample.images[0]
    try:
        return [generous(region, image.width, image.height, rng), region]
    except RowError:  # no room for a wider look
        return [region]


def _search(turn: CompletionRequest) -> str:
    """One candidate after the other, in the order of the hint, until one shows the target."""
    target = turn.task.sample.truth.boxes[0].box
    regions = [region_from_text(text) for text in turn.task.hint["candidates"].split(SEPARATOR)]
    looks = regions[: 1 + next(n for n, region in enumerate(regions) if region.contains(target))]
    if len(turn.rounds) == len(looks):
        return answer_turn(turn, Thyme(), _CROP["found"])
    why = _CROP["other"] if turn.rounds else _CROP["search"]
    return crop_turn(turn, looks[len(turn.rounds)], Random(turn.seed), why, n=COUNTS[len(regions)])


crop = family_script(_look_or_answer)
"""A crop of the target, for one row in six after too wide a look, then what it shows; a search where nothing else tells
the target from others."""


_FURTHER = data_beside(__file__, "further_enhancement")
_PARTS = ("third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _generous_crop(turn: CompletionRequest) -> str:
    why = why_closer(visibility(turn.task))
    return crop_turn(turn, first_region(turn), Random(turn.task.seed), why, _FURTHER["wide"])


def _exact_crop(turn: CompletionRequest) -> str:
    region = hinted_region(turn)
    closer = by_scale("closer", enlargement(region), _FURTHER)
    return crop_turn(turn, region, Random(turn.seed), _observed(turn), closer)


def _observed(turn: CompletionRequest) -> Sequence[str]:
    """The outcome of the first round: nothing, or a crop in which the target is where it is."""
    if not turn.rounds[0].observation.images:
        return ["That gave no picture at all, so I still have not seen the {label}."]
    first, target = first_region(turn), turn.task.sample.truth.boxes[0].box
    middle = (target.x1 + target.x2) / 2
    third = min(2, max(0, int(3 * (middle - first.x1) / first.width)))
    where = ("on the left", "near the middle", "on the right")[third]
    parts = round(first.width / target.width)
    size = "less than half" if parts <= 2 else f"about one {_PARTS[min(parts, len(_PARTS) + 2) - 3]}"
    places = [place.replace("{where}", where).replace("{size}", size) for place in _FURTHER["place"]]
    return [f"{opening} {place}" for opening in _FURTHER["found"] for place in places]


further_enhancement = family_script(_generous_crop, _exact_crop, partial(answer_from_crop, says=_FURTHER))
"""A generous crop, the exact one, the answer."""


_CORRECTION = data_beside(__file__, "error_correction")


def _wrong_crop(turn: CompletionRequest) -> str:
    why, rng = why_closer(visibility(turn.task)), Random(turn.task.seed)
    return crop_turn(turn, first_region(turn), rng, why, _CORRECTION["belief"], part="detail that I look for")


def _right_crop(turn: CompletionRequest) -> str:
    first, region = first_region(turn), hinted_region(turn)
    observed = ["That gave no picture at all."]
    if turn.rounds[0].observation.images:
        is_another = any(first.intersection(truth.box).area for truth in turn.task.sample.truth.boxes[1:])
        observed = _CORRECTION["another" if is_another else "missed"]
    return crop_turn(turn, region, Random(turn.seed), observed, _CORRECTION["instead"], way=_way(first, region))


def _way(first: Box, region: Box) -> str:
    across, down = (region.x1 + region.x2 - first.x1 - first.x2) / 2, (region.y1 + region.y2 - first.y1 - first.y2) / 2
    column = ("left" if across < 0 else "right") if abs(across) > abs(down) / 2 else ""
    row = ("up" if down < 0 else "down") if abs(down) > abs(across) / 2 else ""
    return f"further {row} and to the {column}" if row and column else f"further {row or f'to the {column}'}"


error_correction = family_script(_wrong_crop, _right_crop, partial(answer_from_crop, says=_CORRECTION))
"""A crop that misses, the right one with the reason, the answer."""


_AWARE = data_beside(__file__, "operation_aware")


def _zoom_or_answer(turn: CompletionRequest) -> str:
    sample, hint, view = turn.task.sample, turn.task.hint, visibility(turn.task)
    label = label_of(sample)
    if hint["style"] == "text" or turn.rounds:
        plain = [*_AWARE["as_it_is"], *(_AWARE["plain"] if view.is_plain else ())]
        return answer_turn(turn, ToolCall(), plain if hint["style"] == "text" else _AWARE["shows"], label=label)
    index = int(hint["image"]) - 1
    image, fractions = sample.images[index], [float(side) for side in hint["region"].split(", ")]
    exact = box_from_fractions(fractions, image.width, image.height)
    region = as_looked_up(exact, image, Random(seed_from("region", sample.sample_id)))
    sides: list[int | float] = [*as_fractions(region, image, digits=2)]
    place = place_at((sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2)
    thought = before_look(sample, Random(turn.seed), why_closer(view), _AWARE["then"], label=label, place=place)
    return ToolCall().write_round(thought, crop_line(sides, int(hint["image"])), first=True)


operation_aware = family_script(_zoom_or_answer)
"""A zoom by tool call and what it shows, or a few sentences."""


_CONTRAST = data_beside(__file__, "contrast")


def _restore(turn: CompletionRequest) -> str:
    rng, degradation = Random(turn.task.seed), str(turn.task.hint["fault"])
    grainy = degradation.endswith("grainy")
    sample, seen = turn.task.sample, _CONTRAST["seen"][degradation.split()[0]]
    grain = [_CONTRAST["grain"]] if grainy else []
    thought = before_look(sample, rng, seen, *grain, _CONTRAST["why"], _CONTRAST["then"])
    code = silent(rng, _CONTRAST["code"]["grainy" if grainy else "smooth"], sample)
    return Thyme().write_round(thought, code, first=True)


contrast = family_script(_restore, answering(Thyme(), _CONTRAST["shows"]))
"""Code that restores the contrast, then what can be read."""


_ROTATION = data_beside(__file__, "rotation")


def _turn_upright(turn: CompletionRequest) -> str:
    rng = Random(turn.task.seed)
    angle, correction = int(turn.task.hint["angle"]), int(turn.task.hint["correction"])
    lean = some_form(_ROTATION["leans"][_lean(angle)], rng)
    thought = before_look(turn.task.sample, rng, _ROTATION["seen"], _ROTATION["why"], _ROTATION["then"], lean=lean)
    signed = correction if correction <= 180 else correction - 360
    code = rng.choice(_ROTATION["code"]).format(correction=rng.choice((correction, signed)))
    return Thyme().write_round(thought, code, first=True)


def _lean(angle: int) -> str:
    side = "left" if angle < 180 else "right"
    degrees = min(angle, 360 - angle)
    if degrees > 165:
        return "over"
    return f"{side} a little" if degrees < 65 else f"{side} on its side" if degrees <= 115 else f"{side} over"


rotation = family_script(_turn_upright, answering(Thyme(), _ROTATION["shows"]))
"""Code that turns the image upright, then what it shows."""


_REAL_WORLD = data_beside(__file__, "real_world")
_CODE = _REAL_WORLD["code"]


def _operate(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.task.seed)
    operations = _operations(turn.task)
    # a crop comes before a turn, so that its box is the original's
    slots: dict[str, object] = {"label": label_of(sample), "back": f"{-(sample.truth.angle or 0) % 360:g}"}
    says = {kind: dict(_REAL_WORLD[kind]) for kind in ("issues", "then")}
    steps = dict(_CODE["steps"])
    if "region" in operations:
        region = looked_up(turn, target_region(sample))
        scale = enlargement(region)
        slots |= {"place": place_of(region, sample), "box": tuple(region), "scale": scale}
        says["issues"]["region"] = why_closer(visibility(turn.task), _REAL_WORLD["closer"])
        says["then"]["region"] = by_scale("region", scale, _REAL_WORLD["then"])
        steps["region"] = _CODE["steps"]["region" if scale > 1 else "region_plain"]
    parts = [says[kind][operation] for kind in ("issues", "then") for operation in operations]
    thought = before_look(sample, rng, *parts, **slots)
    code = [silent(rng, steps[operation], sample).format(**slots) for operation in reversed(operations)]
    return Thyme().write_round(thought, "\n".join([_CODE["open"], *code, rng.choice(_CODE["save"])]), first=True)


def _operations(task: Task) -> list[str]:
    """Raises ``RowError`` (wrong_plan) where another policy planned and no obstacle was measured."""
    operations = [operation.name.lower() for operation in obstacles(task)]
    if not operations:
        raise RowError(Reason.WRONG_PLAN, "the oracle knows of nothing that this image needs")
    return operations


def _real_world_answer(turn: CompletionRequest) -> str:
    sample, operation = turn.task.sample, _operations(turn.task)[0]
    phrases = _REAL_WORLD["worked"][operation]
    if operation == "region":
        phrases = after_crop(sample, enlargement(looked_up(turn, target_region(sample))), phrases)
    return answer_turn(turn, Thyme(), phrases, _REAL_WORLD["shows"])


real_world = family_script(_operate, _real_world_answer, plan=operation_plan)
"""The plan, the operations that the truth asks for in one program, what it shows."""


_DIRECT = data_beside(__file__, "direct")


def _direct_answer(turn: CompletionRequest) -> str:
    usable = [*_DIRECT["usable"], *(_DIRECT["usable_plain"] if visibility(turn.task).is_plain else ())]
    return answer_turn(turn, Thyme(), usable, _DIRECT["looked"], _DIRECT["shows"], rng=Random(turn.task.seed))


direct = family_script(_direct_answer, plan=operation_plan)
"""The plan that no operation is needed, then what the image shows and the answer."""
