"""Who writes the rows of the newer families: from the truth, always in the same few words.

The demo's oracles say the same in many words, for models that shall not learn a phrase. Here a phrase is welcome: a
recurring line is one token, and what is left to learn are numbers and colours.
"""

import re
from random import Random

from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import PyVision, Thyme, ToolCall
from darkroom.pipelines.models.protocols.markup import write_box
from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.records.samples import reference_solution
from measurements.ablations.world.looks import named_regions, named_sides

FRAME_CODE = """\
import matplotlib.pyplot as plt

plt.imshow(video_clue_0[{number}].asnumpy())
plt.axis("off")
plt.show()"""

LOOK_CODE = """\
from PIL import Image

image = Image.open(image_path)
processed_path = "look_{number}.png"
image.crop(({box})).save(processed_path)
print(processed_path)"""
ONCE_MORE = 1 / 3
"""The proportion of rows in which the first region is looked at again."""


def _zoom_or_answer(turn: CompletionRequest) -> str:
    """A crop of the region as the question names it, where the family chose a row with a call."""
    sample = turn.task.sample
    if turn.rounds:
        return ToolCall().write_answer("The crop shows the sign.", sample.answer, first=False)
    if turn.task.hint["style"] == "text":
        return ToolCall().write_answer("The image shows the sign.", sample.answer, first=True)
    (sides,) = named_sides(sample.question)
    return ToolCall().write_round("I zoom in on the region.", crop_line([*sides], 1), first=True)


def _compute_or_answer(turn: CompletionRequest) -> str:
    sample = turn.task.sample
    if turn.rounds:
        return Thyme().write_answer("The program has printed the sum.", sample.answer, first=False)
    return Thyme().write_round("I let Python add the numbers.", reference_solution(sample).programs[0], first=True)


def _solution(turn: CompletionRequest) -> str:
    solution = reference_solution(turn.task.sample)
    return "\n".join([solution.idea, *solution.steps, write_box(turn.task.sample.answer)])


def _look_or_answer(turn: CompletionRequest) -> str:
    """Every region that the question names, one a round, and for some rows the first one again."""
    sample, number = turn.task.sample, len(turn.rounds)
    regions = named_regions(sample.question)
    looks = [*regions, *(regions[:1] if Random(turn.task.seed).random() < ONCE_MORE else ())]
    if number == len(looks):
        return Thyme().write_answer("I have seen what is asked about.", sample.answer, first=False)
    thought = "I look at a region." if number < len(regions) else "I look once more."
    code = LOOK_CODE.format(number=number, box=", ".join(map(str, looks[number])))
    return Thyme().write_round(thought, code, first=not number)


def _first_frame(turn: CompletionRequest) -> str:
    return PyVision().write_round("I look at the first frame.", FRAME_CODE.format(number=0), first=True)


def _named_frame(turn: CompletionRequest) -> str:
    (number,) = re.findall(r"frame (\d+)", turn.task.sample.question)
    return PyVision().write_round("I look at the frame in question.", FRAME_CODE.format(number=number), first=False)


def _seen_in_frame(turn: CompletionRequest) -> str:
    return PyVision().write_answer("This frame shows the sign.", turn.task.sample.answer, first=not turn.rounds)


zoom = family_script(_zoom_or_answer)
"""The script of ``operation_aware``."""
compute = family_script(_compute_or_answer, plan=_solution)
"""The script of ``math_code``."""
look = family_script(_look_or_answer)
"""The script of ``needed_looks``."""
on_demand = family_script(_first_frame, _named_frame, _seen_in_frame)
"""The script of ``agentic_video``, whose rows have two looks at least: the first frame, then the one in question."""
in_context = family_script(_seen_in_frame)
"""The script of ``frames_in_context``."""
