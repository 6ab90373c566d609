"""What the reward of single decisions says of actions that it was not written on: mutations of held-out pivots.

    darkroom pivots && python -m measurements.step_rewards data/datasets/pivots/decisions

Of every validation row in the protocol thyme the verified action is replaced by ones that reach the goal in another
way, and by ones that do not: they are executed after the prefix. Printed: how many of them are rewarded.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from darkroom.pipelines.publishing.dataset_reader import dataset_files, map_in_threads, read_files
from darkroom.pipelines.publishing.pivots.rows import StepReward
from darkroom.pipelines.records import Check
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.pivots import Action

REACHES, MISSES = "reaches", "misses"
FILE = "/mnt/data/temp_processed_images/look.png"
LOOK = "image = Image.open(image_path).convert('RGB')\n{}\n" + f"image.save({FILE!r})\nprint({FILE!r})"
NOISE = "image = Image.fromarray(np.random.default_rng(0).integers(0, 256, np.asarray(image).shape, np.uint8))"
Mutation = tuple[str, str, Action]
"""What it should come to, what it is called, the action."""


def mutations(row: Mapping[str, Any]) -> Iterator[Mutation]:
    """Other actions after the row's prefix."""
    of_goal = {"target": _crops, "upright": _turns, "contrast": _lights, "answer": _answers}[row["goal"]]
    yield from of_goal(row)
    if row["goal"] != "answer":
        yield MISSES, "answers at once", Action("I know.", "", row["gold"])
        yield MISSES, "shows the image again", _look("pass")
        yield MISSES, "shows nothing", Action("I look.", "print(1)", "")
        yield MISSES, "raises an error", Action("I look.", "1 / 0", "")


def _look(body: str) -> Action:
    return Action("I look.", LOOK.format(body), "")


def _crop(box: Box, more: str = "") -> Action:
    return _look(f"image = image.crop({tuple(box)}){more}")


def _crops(row: Mapping[str, Any]) -> Iterator[Mutation]:
    size = row["image_refs"][0]
    width, height = size["width"], size["height"]
    sides = row["boxes"][0]
    target = Box(sides["x1"], sides["y1"], sides["x2"], sides["y2"])
    near = target.grown(max(12, max(target.width, target.height) // 4)).clipped(width, height)
    yield REACHES, "another margin", _crop(near)
    yield REACHES, "another margin, enlarged", _crop(near, ".resize((600, 600 * image.height // image.width))")
    yield MISSES, "the whole image, enlarged", _look("image = image.resize((image.width * 2, image.height * 2))")
    yield MISSES, "half of the target", _crop(Box(target.x1 - 40, near.y1, target.x1 + target.width // 2, near.y2))
    yield MISSES, "beside the target", _crop(_beside(target, width, height))
    side = (0, 0, width, height * 2 // 3) if target.y2 < height // 2 else (0, height // 3, width, height)
    yield MISSES, "two thirds of the image", _crop(Box(*side))


def _beside(target: Box, width: int, height: int) -> Box:
    """A region of the image's other half."""
    left = 0 if target.x1 > width // 2 else width * 3 // 4
    return Box(left, height // 4, left + width // 4, height // 2)


def _turns(row: Mapping[str, Any]) -> Iterator[Mutation]:
    angle = row["angle"]
    yield REACHES, "turned back, white corners", _turn(360 - angle, "fillcolor='white'")
    yield REACHES, "turned back, other resampling", _turn(-angle, "resample=Image.Resampling.BILINEAR")
    yield MISSES, "turned twice", _turn(angle if abs(angle - 180) > 10 else 90)
    yield MISSES, "20 degrees too far", _turn(20 - angle)
    yield MISSES, "turned back, mirrored", _turn(-angle, after=".transpose(Image.Transpose.FLIP_LEFT_RIGHT)")
    corner = ".crop((0, 0, image.width // 5, image.height // 5))"
    yield MISSES, "turned back, a corner", _look(f"image = image.rotate({-angle}, expand=True)\nimage = image{corner}")


def _turn(angle: float, options: str = "fillcolor='black'", after: str = "") -> Action:
    return _look(f"image = image.rotate({angle}, expand=True, {options}){after}")


def _lights(row: Mapping[str, Any]) -> Iterator[Mutation]:
    tiles = "cv2.createCLAHE(4.0, (8, 8)).apply(np.asarray(image.convert('L')))"
    yield REACHES, "stretched", _look("from PIL import ImageOps\nimage = ImageOps.autocontrast(image, cutoff=1)")
    yield REACHES, "stretched by tiles", _look(f"image = Image.fromarray({tiles}).convert('RGB')")
    yield MISSES, "darkened", _look("image = image.point(lambda level: level // 2)")
    yield MISSES, "blurred", _look("from PIL import ImageFilter\nimage = image.filter(ImageFilter.GaussianBlur(4))")
    yield MISSES, "noise of its size", _look(NOISE)
    corner = "image.crop((0, 0, image.width // 6, image.height // 6))"
    yield MISSES, "a stretched corner", _look(f"from PIL import ImageOps\nimage = ImageOps.autocontrast({corner})")


def _answers(row: Mapping[str, Any]) -> Iterator[Mutation]:
    gold = row["gold"]
    yield REACHES, "with blanks", Action("I saw it.", "", f"  {gold} ")
    other = next((choice[0] for choice in row["choices"] if choice[0] != gold[:1]), f"not {gold}")
    yield MISSES, "another answer", Action("I saw it.", "", other)
    yield MISSES, "no answer", Action("I saw it.", "", "")
    yield MISSES, "one more look", _look("image = image.crop((0, 0, image.width // 2, image.height // 2))")


def _chosen(folder: Path, split: str, each: int) -> Iterator[Mapping[str, Any]]:
    """``each`` rows in the protocol thyme of every goal."""
    files = dataset_files(folder, split=split)
    columns = [(row["protocol"], row["goal"]) for row in read_files(files, without=("images", "videos"))]
    chosen: set[int] = set()
    for goal in {goal for _, goal in columns}:
        places = [place for place, column in enumerate(columns) if column == ("thyme", goal)]
        chosen.update(places[:: max(1, -(-len(places) // each))])
    return (row for place, row in enumerate(read_files(files)) if place in chosen)


def _rewarded(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[tuple[str, str, Check]]]:
    reward = StepReward.of(row)
    return row, [(should, name, reward.of_action(action)) for should, name, action in mutations(row)]


def main(
    folder: Annotated[Path, typer.Argument(help="datasets/pivots/decisions of a home.")],
    split: str = "validation",
    each: Annotated[int, typer.Option(help="Rows of every goal, evenly spread.")] = 20,
) -> None:
    """Print a table: goal, action, what it should come to, rewarded of all."""
    counts: defaultdict[tuple[str, str, str], Counter[bool]] = defaultdict(Counter)
    flaws: Counter[str] = Counter()
    for row, checks in map_in_threads(_chosen(folder, split, each), _rewarded):
        for should, name, check in checks:
            counts[row["goal"], name, should][check.passed] += 1
            flaws[check.reason or "rewarded"] += should == MISSES
    print("| goal | action | should | rewarded |\n| --- | --- | --- | --- |")
    for (goal, name, should), passed in sorted(counts.items()):
        print(f"| {goal} | {name} | {should} | {passed[True]} of {passed.total()} |")
    for should in (REACHES, MISSES):
        total = sum((passed for (_, _, which), passed in counts.items() if which == should), Counter())
        print(f"{should}: {total[True]} of {total.total()} rewarded")
    print("refused for: " + ", ".join(f"{flaw} {n}" for flaw, n in flaws.most_common()))


if __name__ == "__main__":
    typer.run(main)
