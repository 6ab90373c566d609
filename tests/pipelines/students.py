"""A student that writes one good row, one with a wrong answer, one whose code fails, and one that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.pipelines.models.policies import Completion, CompletionRequest, PolicyIdentity
from darkroom.pipelines.records import Usage

CODE = """from PIL import Image
image = Image.open(image_path)
processed_path = '/mnt/data/temp_processed_images/crop_1.png'
image.crop(({region})).resize((240, 160)).save(processed_path)
print(processed_path)"""


@dataclass
class Student:
    """Its rows go by the sample's row of ``SmallSource``: 0 good, 2 wrong, 3 failing, 4 unreadable."""

    requests: list[CompletionRequest] = field(default_factory=list)
    identity = PolicyIdentity("local", "student", "1")
    concurrency = 2

    async def check(self) -> None:
        """Always there."""

    async def write(self, request: CompletionRequest) -> Completion:
        self.requests.append(request)
        return Completion(_text(request), usage=Usage(calls=1, prompt_tokens=90, completion_tokens=10))

    async def close(self) -> None:
        """Nothing is open."""


def _text(request: CompletionRequest) -> str:
    sample, row = request.task.sample, request.task.sample.source_row
    if row == "row/4":
        return "<code>no end"
    if request.rounds:
        answer = "nothing" if row == "row/2" else sample.answer
        return f"The sign can be read now.</think>\n<answer>{answer}</answer>"
    code = "print(unknown)" if row == "row/3" else CODE.format(region=request.task.hint["region"])
    return f"<think>A closer look at the sign helps.\n<code>\n```python\n{code}\n```\n</code>"
