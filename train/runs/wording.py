"""The prompt that ``--prompt`` names, for training and evaluation alike."""

from typing import Any

from darkroom.pipelines.models.paper_prompts import PaperPrompt, paper_prompt
from darkroom.pipelines.models.prompts import PromptError
from darkroom.train.runs import TrainError


def chosen_wording(name: str | None, *, protocol: str | None = None) -> PaperPrompt | None:
    """The prompt; None where none is named. Raises ``TrainError`` for an unknown one, and for another ``protocol``."""
    if not name:
        return None
    try:
        wording = paper_prompt(name)
    except PromptError as error:
        raise TrainError(str(error)) from error
    if protocol is not None and wording.protocol != protocol:
        raise TrainError(
            f"{wording.name} asks for {wording.protocol} turns, not {protocol}: --protocol {wording.protocol}"
        )
    return wording


def wording_record(name: str | None) -> dict[str, Any]:
    """Its part of a record; nothing where none is named, so that older records stay valid."""
    wording = chosen_wording(name)
    return {} if wording is None else {"prompt_file": wording.record}
