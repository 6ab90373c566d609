"""The flywheel's arms, costs and page; no model is trained."""

import sys

import pytest

from darkroom.pipelines.demo.images.street_signs import StreetSigns
from darkroom.pipelines.generation.flywheel import TurnReport
from darkroom.pipelines.generation.funnel import Funnel, FunnelStep
from darkroom.pipelines.records import Usage
from measurements import flywheel
from measurements.ablations import results
from measurements.ablations.catalog.starts import FRESH, TUNED
from measurements.ablations.experiment import MEASURES
from measurements.ablations.models import sft_settings
from measurements.ablations.world import ROWS

WHEEL = flywheel.experiment(flywheel.first_student(), 2)


def written(n_kept, seconds=None):
    steps = (("samples", 12), ("drafts", 8), ("runs", 5), ("verdicts", 5), ("trajectories", n_kept))
    named = [FunnelStep(name, n, {"malformed_turn": 2} if name == "drafts" else {}) for name, n in steps]
    return TurnReport(Funnel(tuple(named), Usage(calls=14, prompt_tokens=900, completion_tokens=100)), seconds)


def test_every_arm_of_a_turn_starts_from_its_own_arm_of_the_turn_before():
    models = {arm.name: arm.model for arm in WHEEL.arms}
    assert list(models)[:4] == ["start", "kept_1", "executed_1", "unfiltered_1"]
    for keeps in flywheel.KEEPS:
        first, second = models[f"{keeps}_1"], models[f"{keeps}_2"]
        assert (first.start, second.start, second.method) == (models["start"], first, keeps)


def test_arms_of_a_turn_differ_in_their_rows_alone():
    for number in (1, 2):
        made = [sft_settings(arm.model, 5) for arm in WHEEL.arms if getattr(arm.model, "number", 0) == number]
        assert made == [made[0]] * 3


def test_no_wall_is_asked_about_twice():
    seeds = [flywheel.FIRST_WALLS + number for number in range(1, 9)]
    assert not {rows.seed for rows in ROWS.values()} & set(seeds)
    one, other = (next(StreetSigns(1, seed).rows(0)) for seed in seeds[:2])
    assert one.images != other.images


def test_a_change_of_how_rows_are_written_makes_results_stale(tmp_path, monkeypatch):
    arm = WHEEL.arms[1]
    results.write(tmp_path, WHEEL, arm, 101, {"right": 0.5})
    assert results.read(tmp_path, WHEEL, arm, 101) == {"right": 0.5}
    monkeypatch.setattr(flywheel, "WRITING", {**flywheel.WRITING, "temperature": 0.1})
    assert results.read(tmp_path, WHEEL, arm, 101) is None


def test_rejected_rows_are_paid_for():
    assert flywheel.cost(written(4, 8.0)) == {"accepted": 0.4, "n_accepted": 4, "tokens_per_row": 250, "seconds": 8.0}
    assert flywheel.cost(written(0)) == {"accepted": 0.0, "n_accepted": 0, "tokens_per_row": 1000}


def figures(root, seeds):
    one = flywheel.experiment(flywheel.first_student(), 2, seeds)
    for place, arm in enumerate(one.arms):
        for seed in seeds:
            results.write(root, one, arm, seed, dict.fromkeys(MEASURES, 0.1 * place + 0.01 * (seed % 7)))


@pytest.mark.parametrize(("seeds", "warns"), [(FRESH[:3], False), (TUNED, True)])
def test_the_page_says_whether_settings_were_tuned_on_its_seeds(tmp_path, monkeypatch, capsys, seeds, warns):
    figures(tmp_path, seeds)
    monkeypatch.setattr(sys, "argv", ["f", str(tmp_path), "--docs", str(tmp_path), "--seeds", *map(str, seeds)])
    flywheel.main()
    text = (tmp_path / flywheel.PAGE).read_text()
    assert "*right* more in kept_2 than in unfiltered_2: -20 points" in text
    assert ("**No proof:**" in text) == warns
    assert text in capsys.readouterr().out
    assert (tmp_path / "images/flywheel.png").is_file()


def test_without_a_complete_seed_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["f", str(tmp_path), "--docs", str(tmp_path)])
    with pytest.raises(SystemExit):
        flywheel.main()
    assert "no seed of (101, 102, 103) is complete" in capsys.readouterr().err
    assert not (tmp_path / flywheel.PAGE).exists()
