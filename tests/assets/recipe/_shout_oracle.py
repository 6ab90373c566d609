"""The oracle of ``shout``, as a package would bring it."""

from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme


def script(turn: CompletionRequest) -> str:
    if not turn.rounds:
        return Thyme().write_round("Loudly now.", f"print({turn.task.sample.answer!r}.upper())", first=True)
    said = turn.rounds[0].observation.text.strip()
    return Thyme().write_answer("It was loud.", said, first=False)
