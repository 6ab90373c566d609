"""The ablations' arithmetic, results on disk, settings and page; no model is trained."""

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from darkroom.train.rl.settings import METHODS_VARIABLE
from measurements.ablations import __main__ as program, models, report, results, runner
from measurements.ablations.catalog import EXPERIMENTS, FRESH, TUNED
from measurements.ablations.evaluations import evaluation_settings
from measurements.ablations.experiment import MEASURES
from measurements.ablations.models import METHODS, grpo_settings, sft_settings
from measurements.ablations.statistics import paired

PROOF = EXPERIMENTS["learning_proof"]
GAINS = {1: 0.13, 2: 0.17, 3: -0.05, 4: -0.20, 5: 0.16}


@pytest.fixture(autouse=True)
def own_methods(monkeypatch):
    monkeypatch.setenv(METHODS_VARIABLE, str(METHODS))


def numbered(experiment, base=0.5):
    """Complete figures of an experiment: another value for each arm and seed."""
    return {
        arm.name: {
            seed: dict.fromkeys(MEASURES, base + 0.1 * place + 0.01 * number)
            for number, seed in enumerate(experiment.seeds)
        }
        for place, arm in enumerate(experiment.arms)
    }


def test_the_interval_of_paired_differences_is_students_over_seeds():
    found = paired(GAINS, dict.fromkeys(GAINS, 0.0))
    values = list(GAINS.values())
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((0.042, low, high))
    assert found.mean / ((found.high - found.mean) / stats.t.ppf(0.975, 4)) == pytest.approx(
        stats.ttest_1samp(values, 0).statistic
    )
    assert found.verdict("more") == "not shown"


def test_the_sign_test_counts_seeds_and_leaves_ties_out():
    found = paired({**GAINS, 6: 0.5}, {**dict.fromkeys(GAINS, 0.0), 6: 0.5})
    assert found.p_sign == pytest.approx(1.0)
    all_more_but_a_tie = paired({**dict.fromkeys(range(8), 1.0), 8: 0.0}, dict.fromkeys(range(9), 0.0))
    assert all_more_but_a_tie.p_sign == pytest.approx(2 / 2**8)
    assert paired({1: 0.5}, {1: 0.5}).p_sign == 1.0


def test_only_seeds_of_both_arms_are_compared():
    assert paired({1: 1.0, 2: 5.0}, {1: 0.0, 3: 9.0}).differences == {1: 1.0}
    with pytest.raises(ValueError, match="no seed in common"):
        paired({1: 1.0}, {2: 1.0})


@pytest.mark.parametrize(
    ("values", "expected", "verdict"),
    [
        ((0.1, 0.11, 0.12), "more", "shown"),
        ((0.1, 0.11, 0.12), "less", "the opposite is shown"),
        ((-0.1, -0.11, -0.12), "less", "shown"),
        ((0.1, -0.11, 0.12), "more", "not shown"),
        ((0.0, 0.0, 0.0), "more", "not shown"),
        ((0.3,), "more", "undecided: one seed"),
    ],
)
def test_an_effect_is_shown_where_the_whole_interval_lies_on_its_side(values, expected, verdict):
    found = paired(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
    assert found.verdict(expected) == verdict
    assert math.isfinite(found.low) == (len(values) > 1)


def test_every_arms_settings_are_those_of_the_training_programs(tmp_path):
    for experiment in EXPERIMENTS.values():
        for model in experiment.models():
            if model.program == "sft":
                assert sft_settings(model, 3).seed == 3
            elif model.program == "grpo":
                assert grpo_settings(model, 3).method == model.method
        for arm in experiment.arms:
            assert arm.asked is None or evaluation_settings(arm, tmp_path, 3).seed == 3


def test_a_model_name_means_one_model():
    by_name = {}
    for experiment in EXPERIMENTS.values():
        for model in experiment.models():
            assert by_name.setdefault(model.name, model) == model


def test_arms_that_are_not_asked_have_only_measures_of_their_training():
    for experiment in EXPERIMENTS.values():
        keys = {*experiment.measures, *(one.measure for one in experiment.comparisons)}
        if any(arm.asked is None for arm in experiment.arms):
            assert all(key.startswith(("rolled_", "first_", "last_")) for key in keys)


def test_tables_have_measures_that_every_arm_has():
    of_training_alone = ("rolled_", "first_", "last_")
    for experiment in EXPERIMENTS.values():
        for arm in experiment.arms:
            if arm.model.program != "grpo":
                assert not any(key.startswith(of_training_alone) for key in experiment.measures)
            for key in experiment.measures:
                if key.startswith("sums_"):
                    assert "held_out_sums" in arm.questions
                if key.endswith(("_far", "_near")):
                    assert arm.questions == ("held_out_looks",)
                if key.endswith(("_look", "_looks")):
                    assert arm.questions == ("held_out_needed_looks",)


def test_what_every_paper_leads_one_to_expect_is_compared():
    papers = {one.row.paper for one in EXPERIMENTS.values()}
    assert papers == {"Learning proof", "Thyme", "PyVision-RL", "CodeV", "Look Less, Reason More", "FIGR"}
    assert all(one.comparisons for one in EXPERIMENTS.values())


def test_published_seeds_were_not_tuned_on_and_are_enough():
    assert all(len(one.seeds) >= 3 and not set(one.seeds) & set(TUNED) for one in EXPERIMENTS.values())
    assert PROOF.seeds == FRESH
    assert len(FRESH) >= 8


def test_complete_arms_are_not_made_again(tmp_path, monkeypatch, capsys):
    made, fails = [], {"grpo"}

    def measured(arm, root, seed):
        if arm.name in fails:
            raise KeyboardInterrupt
        made.append(arm.name)
        return dict.fromkeys(MEASURES, 0.5)

    monkeypatch.setattr(runner, "measures", measured)
    monkeypatch.setattr("measurements.ablations.models.Model.make", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        runner.run_seed(tmp_path, 101, [PROOF])
    fails.clear()
    runner.run_seed(tmp_path, 101, [PROOF])
    assert made == ["untrained", "sft", "grpo"]
    assert "seed 101: learning_proof, grpo: right 0.5" in capsys.readouterr().out
    assert set(results.figures(tmp_path, PROOF)["grpo"]) == {101}


def test_results_of_other_settings_do_not_count(tmp_path):
    arm = PROOF.arms[1]
    results.write(tmp_path, PROOF, arm, 101, {"right": 0.5})
    assert results.read(tmp_path, PROOF, arm, 101) == {"right": 0.5}
    longer = replace(arm, model=replace(arm.model, settings={"max_steps": 9}))
    assert results.read(tmp_path, PROOF, longer, 101) is None
    assert results.read(tmp_path, PROOF, replace(arm, asked={"max_rounds": 1}), 101) is None


def test_a_seed_counts_when_every_arm_has_it(tmp_path):
    for arm in PROOF.arms:
        for seed in (101, 102) if arm.name == "sft" else (102,):
            results.write(tmp_path, PROOF, arm, seed, {"right": 0.5})
    assert {name: list(seeds) for name, seeds in results.figures(tmp_path, PROOF).items()} == {
        "untrained": [102],
        "sft": [102],
        "grpo": [102],
    }


def test_a_failing_seed_names_its_log_and_keeps_the_earlier_ones(tmp_path, monkeypatch):
    failing = tmp_path / "python"
    failing.write_text('#!/bin/sh\necho "$@"\nexit 2\n')
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    for log in ("seed-3.log", "seed-3.2.log"):
        with pytest.raises(SystemExit, match=rf"^seed 3 ended with status 2; what it said is in .*/{log}$"):
            runner._in_process(tmp_path, 3, ["no_such_experiment"])
        assert "no_such_experiment" in (tmp_path / log).read_text()


def test_the_pages_tell_what_is_shown_and_lists_what_was_not_run():
    found = {name: numbered(one) for name, one in EXPERIMENTS.items()}
    found["figr_table_2"] = {arm.name: {} for arm in EXPERIMENTS["figr_table_2"].arms}
    pages = report.pages(found, EXPERIMENTS, {})
    assert "*right* more in grpo than in sft: +10 points (by seed +10, +10, " in pages["reproductions_proof.md"]
    opposite = "**the opposite is shown:** *code blocks per rollout* less in last_round than in masked"
    assert opposite in pages["reproductions_thyme.md"]
    assert f"`{report.COMMAND} figr_table_2 OUT`" in pages[report.PAGE].partition("## Not run")[2]
    assert all(f"]({name})" in pages[report.PAGE] for name in pages.keys() - {report.PAGE})


def test_the_pages_keep_what_they_say_of_experiments_without_results_here():
    everything = {name: numbered(one) for name, one in EXPERIMENTS.items()}
    nothing = {name: {arm.name: {} for arm in one.arms} for name, one in EXPERIMENTS.items()}
    pages = report.pages(everything, EXPERIMENTS, {})
    assert report.pages(nothing, EXPERIMENTS, pages) == pages
    for name in EXPERIMENTS:
        only = report.pages({**nothing, name: everything[name]}, EXPERIMENTS, {})
        assert report.pages({**everything, name: nothing[name]}, EXPERIMENTS, only) == pages


def test_the_figure_is_written(tmp_path):
    report.plot(PROOF, numbered(PROOF), tmp_path / "new/figure.png")
    assert (tmp_path / "new/figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_line_lists_and_prints_what_is_complete(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ablations", "--list"])
    program.main()
    assert all(name in capsys.readouterr().out for name in ["learning_proof"])
    for arm in PROOF.arms:
        results.write(tmp_path / "root", PROOF, arm, 101, dict.fromkeys(MEASURES, 0.5))
    monkeypatch.setattr(sys, "argv", ["ablations", str(tmp_path / "root"), "--docs", str(tmp_path)])
    program.main()
    assert "undecided: one seed" in (tmp_path / report.PAGE).read_text()
    assert (tmp_path / "images/learning_proof.png").is_file()
    kept = json.loads((tmp_path / "root/results/learning_proof/sft/101.json").read_text())
    assert kept["settings"]["models"][-1]["settings"]["max_steps"] == models.SFT["max_steps"]


def test_an_unknown_experiment_is_refused_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ablations", "thyme_table_9", str(tmp_path)])
    with pytest.raises(SystemExit):
        program.main()
    assert "found thyme_table_9" in capsys.readouterr().err
