"""Who judges a training: as the command line says, else as the environment does, else nobody."""

from __future__ import annotations

from dataclasses import replace

from pipelines.digest import canonical
from train.faults import TrainFault
from train.judging.settings import JudgeSettings, open_judge
from train.methods import Judges
from train.options import Rubric


def judges_of(url: str, model: str, *, n_votes: int | None = None, rubric: Rubric) -> tuple[Judges, str]:
    """The judge, and all of it that determines its votes, as a text for the checkpoint's inputs.

    ``n_votes`` None: as many as the environment says, else one.
    Raises ``TrainFault`` for settings that are no judge's.
    """
    if bool(url) != bool(model):
        raise TrainFault(f"a judge needs --judge-url and --judge-model; found {url!r} and {model!r}")
    settings = JudgeSettings(url, model) if url else JudgeSettings.from_environment()
    if settings is None:
        return Judges(), ""
    settings = replace(settings, n_votes=n_votes or settings.n_votes)
    judge = open_judge(settings)
    known_as = canonical([settings.model, settings.revision, settings.temperature, settings.n_votes, rubric])
    return Judges(
        judge, judge.pictures, n_votes=settings.n_votes, rubric=rubric, forget=judge.forget_pictures
    ), known_as
