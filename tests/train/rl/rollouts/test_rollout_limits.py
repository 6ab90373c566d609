"""The limits of rollouts, without a model: clocks, batches of turns, watchers, segments, weights, samples, metrics."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.repetition import RULES
from darkroom.train.rl.methods import settings_of
from darkroom.train.rl.rollouts import sample_log
from darkroom.train.rl.rollouts.active_rollout import BatchedTurns, EngineClock, add_turn
from darkroom.train.rl.rollouts.loss import rows_of_groups, weight_tokens
from darkroom.train.rl.rollouts.sample_log import SampleLog
from darkroom.train.rl.rollouts.sampling import GreedyInCode, StopWhenOver, TurnWatcher, changed, repetition_rule
from darkroom.train.rl.rollouts.scoring import Scores, group_relative, oversample_filter_rank
from darkroom.train.rl.rollouts.transcript import GeneratedTurn, Transcript, observation_tokens
from darkroom.train.rl.rollouts.vllm_engine import (
    Segment,
    in_segments,
    next_segment,
    read_segment,
    readable_errors,
    stop_arguments,
)
from darkroom.train.runs import TrainError
from tests.train.outcomes import CROP_IMAGE, looked, outcome


def test_time_between_two_turns_is_waited_and_overlapping_turns_are_written_once(monkeypatch):
    now = [10.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = EngineClock()
    assert clock.waiting_share == 0.0
    with clock:
        now[0] = 13.0
        with clock:
            now[0] = 14.0
        now[0] = 16.0
    assert (clock.seconds_writing, clock.seconds_waiting, clock.waiting_share) == (6.0, 0.0, 0.0)
    now[0] = 18.0
    with clock:
        now[0] = 20.0
    assert (clock.seconds_writing, clock.seconds_waiting, clock.waiting_share) == (8.0, 2.0, 0.2)


def test_turns_are_written_once_all_active_rollouts_wait_in_the_order_of_the_batch():
    rollouts, batches = [object() for _ in range(3)], []

    def write(active):
        batches.append([rollouts.index(one) for one in active])
        return [GeneratedTurn([n], str(rollouts.index(one)), "said") for n, one in enumerate(active)]

    async def run():
        turns = BatchedTurns(write, rollouts)
        last, first = (asyncio.ensure_future(turns.next_turn(rollouts[n], 0)) for n in (2, 0))
        await asyncio.sleep(0)
        assert batches == []
        turns.end()
        assert [(await one).text for one in (last, first)] == ["2", "0"]
        turns.end()
        assert (await turns.next_turn(rollouts[2], 0)).text == "2"
        turns.end()

    asyncio.run(run())
    assert batches == [[0, 2], [2]]


def test_a_turn_in_circles_is_an_error_and_a_full_one_is_not_finished():
    active = SimpleNamespace(transcript=Transcript([1]))
    for ending, is_finished in (("said", True), ("code", True), ("full", False)):
        assert add_turn(active, GeneratedTurn([5, 6], "ab", ending)).finished is is_finished
    with pytest.raises(RowError, match=r"it goes in circles: 'x{80}'"):
        add_turn(active, GeneratedTurn([7], "y" + "x" * 80, "repetition", [-0.5]))
    assert active.transcript.turns == ["ab", "ab", "ab", "y" + "x" * 80]
    assert active.transcript.logprobs == [0.0] * 6 + [-0.5]


def test_a_transcript_tells_written_tokens_from_shown_ones():
    transcript = Transcript([1, 2], prompt_images=["p"])
    transcript.write([3, 4], "ab", [-1.0, None])
    transcript.show([5], ["i"])
    transcript.write([6], "c", None)
    assert (transcript.ids, transcript.mask, transcript.n_written) == ([3, 4, 5, 6], [1, 1, 0, 1], 3)
    assert transcript.logprobs == [-1.0, None, 0.0, 0.0]
    assert (transcript.all_images, transcript.images, transcript.turns) == (["p", "i"], ["i"], ["ab", "c"])


def test_an_observation_ends_the_turn_before_unless_the_model_did():
    class Tokenizer:
        def convert_tokens_to_ids(self, text):
            return 9

        def __call__(self, texts):
            return {"input_ids": texts}

    processor = SimpleNamespace(tokenizer=Tokenizer())
    end, begin = "<|im_end|>", "\n<|im_start|>user\nseen<|im_end|>\n<|im_start|>assistant\n"
    assert observation_tokens(processor, [Text("seen")], [], last=9) == begin
    assert observation_tokens(processor, [Text("seen")], [], last=8) == end + begin


class Engine:
    """As much of TRL's ``VLLMGeneration`` as segments use."""

    def __init__(self, replies, image_token=7):
        self.replies, self.temperature, self.generation_kwargs, self.max_completion_length = replies, 0.7, {"a": 1}, 999
        self.processing_class = SimpleNamespace(image_token_id=image_token)
        self.asked = []

    def generate(self, prompts, images, num_generations):
        asked = (prompts, images, self.temperature, self.generation_kwargs, self.max_completion_length)
        self.asked.append(asked)
        replies = [self.replies.pop(0) for _ in prompts]
        return prompts, replies, [[[-0.5]] * len(reply) for reply in replies], None


class Watcher:
    """Ends with the token 0; a 2 opens code and a 3 closes it."""

    def __init__(self, n_left=50):
        self.in_code, self.ending, self.n_tokens, self._n_left = False, "", 0, n_left

    @property
    def n_left(self):
        return self._n_left - self.n_tokens

    def see(self, token):
        if self.ending:
            return
        self.n_tokens += 1
        self.in_code = token == 2 or (self.in_code and token != 3)
        self.ending = "said" if token == 0 else "code" if token == 3 else ""


def test_a_segment_ends_at_the_next_tag():
    outside, inside = Watcher(), Watcher()
    inside.see(2)
    assert next_segment(outside, stop="</code>", adaptive=True) == Segment("<code>", False)
    assert next_segment(inside, stop="</code>", adaptive=True) == Segment("</code>", True)
    for watcher in (outside, inside):
        assert next_segment(watcher, stop="</code>", adaptive=False) == Segment("</code>", False)
    assert stop_arguments(Segment("<code>", False)) == {"stop": ["<code>"], "include_stop_str_in_output": True}


def test_tokens_after_the_end_of_a_turn_are_not_read():
    watcher = Watcher()
    assert read_segment(watcher, [5, 0, 8], [[-1.0], [-2.0], [-3.0]], greedy=False) == ([5, 0], [-1.0, -2.0])
    greedy = Watcher()
    assert read_segment(greedy, [2, 5], [[-1.0], [-2.0]], greedy=True) == ([2, 5], [None, None])
    assert greedy.ending == ""
    assert read_segment(greedy, [], [], greedy=True) == ([], [])
    assert greedy.ending == "said"


def test_turns_go_on_segment_by_segment_until_each_is_over():
    engine = Engine([[5, 2], [0, 4], [6, 3]])
    watchers = [Watcher(10), Watcher(20)]
    ids, logprobs = in_segments(
        engine, [[1, 7, 7, 7, 1, 7], [7, 7]], [["i"], []], watchers, stops=["</code>"] * 2, adaptive=True
    )
    assert ids == [[5, 2, 6, 3], [0]]
    assert logprobs == [[-0.5, -0.5, None, None], [-0.5]]
    (first, images, warm, kwargs, n_left), (second, own, cold, stops, left) = engine.asked
    assert (first, images, warm, n_left) == ([[1, 7, 1, 7], [7]], [["i"], None], 0.7, 20)
    assert (second, own, cold, left) == ([[1, 7, 1, 7, 5, 2]], [["i"]], 0.0, 8)
    assert (kwargs["stop"], stops["stop"], kwargs["a"]) == (["<code>"], ["</code>"], 1)
    assert (engine.temperature, engine.generation_kwargs, engine.max_completion_length) == (0.7, {"a": 1}, 999)
    bare = Engine([[0]])
    in_segments(bare, [[7, 7]], None, [Watcher()], stops=["</code>"], adaptive=False)
    assert bare.asked[0][1] is None


def test_attributes_are_as_before_even_after_an_error():
    holder = SimpleNamespace(a=1, b=2)
    seen = []

    def fail():
        with changed(holder, a=5):
            seen.append((holder.a, holder.b))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [(5, 2)]
    assert (holder.a, holder.b) == (1, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vLLM  is\nnot here", "ValueError: vLLM is not here"),
        ("vLLM" + "x" * 296, "ValueError: vLLM" + "x" * 296),
        ("vLLM" + "x" * 297, "ValueError: vLLM" + "x" * 296 + "…"),
    ],
)
def test_an_error_of_vllm_is_one_line_of_300_characters(text, said):
    with pytest.raises(TrainError) as raised, readable_errors("vllm_server"):
        raise ValueError(text)
    assert str(raised.value) == f"--engine vllm_server: {said}"
    for other in (ValueError("else"), TrainError("vLLM said so")):
        with pytest.raises(type(other), match=str(other)) as raised, readable_errors("vllm_server"):
            raise other
        assert raised.value is other


def rule(**given):
    return repetition_rule(settings_of("thyme", **given))


def test_the_rule_of_repetition_is_changed_by_what_is_given():
    assert rule() == RULES["darkroom"]
    assert rule(repetition="paper") == RULES["paper"]
    assert rule(repetition="off") is None
    changed_rule = rule(repetition_chars=7, repetition_share=0.25, repetition_times=3, repetition_min_chars=0)
    assert (changed_rule.windows, changed_rule.share, changed_rule.times) == ((7,), 0.25, 3)
    assert (changed_rule.min_chars, changed_rule.min_chars_without_letters) == (0, 0)
    assert rule(repetition_times=9).min_chars == RULES["darkroom"].min_chars


def test_only_rows_inside_code_take_their_most_likely_token():
    watchers = [SimpleNamespace(in_code=in_code, ending=ending) for in_code, ending in ((1, ""), (0, ""), (1, "code"))]
    scores = torch.tensor([[1.0, 3.0, 2.0]] * 3)
    greedy = GreedyInCode(watchers)(None, scores.clone())
    assert greedy[0].tolist() == [-torch.inf, 0.0, -torch.inf]
    assert (greedy[1:] == scores[1:]).all()


def test_a_row_stops_with_its_watcher():
    watchers = [Watcher(), Watcher()]
    stops = StopWhenOver(watchers)(torch.tensor([[1, 0], [0, 5]]), None)
    assert stops.tolist() == [True, False]
    assert [watcher.n_tokens for watcher in watchers] == [1, 1]


def watcher(tokens, **given):
    backend = SimpleNamespace()
    made = TurnWatcher(
        SimpleNamespace(backend_tokenizer=backend), PROTOCOLS["thyme"], **{"ends": frozenset({9}), **given}
    )
    made._decoder = SimpleNamespace(step=lambda _, token: tokens.get(token))
    return made


@pytest.mark.parametrize(("n_left", "ending"), [(0, "full"), (-1, "full"), (1, "")])
def test_a_turn_without_a_token_left_is_over(n_left, ending):
    assert watcher({}, n_left=n_left).ending == ending


def test_a_turn_is_full_with_its_last_token_unless_that_ends_it():
    full, said = watcher({1: "a"}, n_left=2), watcher({1: "a"}, n_left=2)
    for one, last in ((full, 1), (said, 9)):
        one.see(1)
        assert (one.ending, one.n_left) == ("", 1)
        one.see(last)
        one.see(1)
    assert (full.ending, full.n_tokens, full.n_left) == ("full", 2, 0)
    assert (said.ending, said.n_tokens) == ("said", 2)


def test_complete_code_is_told_once_and_ends_the_turn_before_anything_else():
    codes = []
    tokens = {1: "<think>a\n<code>\n```python\n", 2: "print(1)", 3: "\n```\n</code>"}
    turn = watcher(tokens, n_left=3, on_code=codes.append, repetition=SimpleNamespace(feed=lambda text: "</" in text))
    for token, in_code in ((1, True), (2, True), (3, False)):
        turn.see(token)
        assert turn.in_code is in_code
    assert (turn.ending, codes) == ("code", ["print(1)"])
    again = watcher(tokens, n_left=9, repetition=SimpleNamespace(feed=lambda text: text == "print(1)"))
    for token in (1, 2, 3):
        again.see(token)
    assert (again.ending, again.n_tokens) == ("repetition", 2)


def batch(lengths, longest=6):
    mask = torch.tensor([[1] * n + [0] * (longest - n) for n in lengths])
    return {"completion_mask": mask, "advantages": torch.arange(len(lengths), dtype=torch.float32)}


def weights(lengths, dropped, *, size=2, loss_type, longest=6, tool_mask=None):
    more = {} if tool_mask is None else {"tool_mask": torch.tensor(tool_mask)}
    weighed = weight_tokens(batch(lengths) | more, dropped, size=size, longest=longest, loss_type=loss_type)
    assert weighed["num_items_in_batch"] == weighed["tool_mask"].sum()
    return weighed["tool_mask"].sum(1).tolist()


@pytest.mark.parametrize(
    ("loss_type", "sums"),
    [("dapo", [1, 3, 4, 2]), ("grpo", [6, 6, 6, 6]), ("group", [3, 9, 8, 4])],
)
def test_tokens_weigh_as_the_loss_says(loss_type, sums):
    assert weights([1, 3, 4, 2], [False] * 4, loss_type=loss_type) == pytest.approx(sums)


@pytest.mark.parametrize(
    ("loss_type", "sums"),
    [("dapo", [1, 0, 0, 0]), ("grpo", [12, 0, 0, 0]), ("group", [12, 0, 0, 0])],
)
def test_what_is_dropped_weighs_nothing_and_the_rest_of_its_group_more(loss_type, sums):
    assert weights([1, 3, 4, 2], [False, True, True, True], loss_type=loss_type) == pytest.approx(sums)


def test_tokens_of_the_sandbox_weigh_nothing():
    mask = [[1, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    assert weights([3, 3], [False, False], loss_type="dapo", tool_mask=mask) == [2, 3]


def test_rows_of_groups_are_taken_in_order_and_other_values_stay():
    found = rows_of_groups(batch([1, 2, 3, 4, 5, 6]) | {"names": list("abcdef"), "n": 3, "few": [1]}, [2, 0], size=2)
    assert found["advantages"].tolist() == [4, 5, 0, 1]
    assert found["completion_mask"].sum(1).tolist() == [5, 6, 1, 2]
    assert (found["names"], found["n"], found["few"]) == (list("efab"), 3, [1])


@pytest.mark.parametrize(
    ("rewards", "scale", "advantages"),
    [
        ([1.0, 0.0], "none", [0.5, -0.5]),
        ([1.0, 0.0], "group", [1.0, -1.0]),
        ([1.0, None, 0.0], "none", [0.5, 0.0, -0.5]),
        ([0.0, 1e-9], "none", [0.0, 0.0]),
        ([0.0, 2e-9], "none", [-1e-9, 1e-9]),
        ([None, None], "group", [0.0, 0.0]),
        ([3.0], "none", [0.0]),
    ],
)
def test_advantages_of_a_group(rewards, scale, advantages):
    assert group_relative(rewards, scale=scale) == pytest.approx(advantages, abs=1e-12)


def test_groups_are_kept_by_spread_or_as_they_come():
    groups = [[1.0, 1.0], [0.0, 1.0], [None, None], [0.0, 2.0], [0.0, 1.0], []]
    ranked = oversample_filter_rank(groups, keep=2)
    assert (ranked.kept, ranked.spreads) == ((3, 1), (0.0, 0.5, 0.0, 1.0, 0.5, 0.0))
    assert list(ranked.filtered.items()) == [
        (0, "no_spread"),
        (2, "broken"),
        (4, "outranked"),
        (5, "broken"),
    ]
    assert oversample_filter_rank(groups, keep=2, ranked=False).kept == (1, 3)
    assert oversample_filter_rank(groups, keep=0).kept == ()
    assert oversample_filter_rank(groups, keep=9).kept == (3, 1, 4)


def scores(*rewards, **columns):
    made = [outcome("red") for _ in rewards]
    return Scores(outcomes=tuple(made), rewards=rewards, **columns)


def test_places_of_kept_groups_are_filled_and_what_fills_them_is_left_out():
    some = scores(1.0, 1.0, 0.0, 1.0, None, None, None, 5.0)
    assert some.select_groups(2, keep=1) == ([1], [False, False])
    assert some.select_groups(2, keep=3) == ([1, 0, 2], [False, False, True, True, True, True])
    assert scores(0.0, 1.0, None).select_groups(3, keep=1) == ([0], [False, False, True])
    assert some.untrained == [False] * 4 + [True] * 3 + [False]


def test_right_rollouts_with_a_negative_advantage_are_counted():
    some = scores(*[1.0] * 5, correct=(1.0, 1.0, 0.0, None, 1.0), advantages=(-0.1, 0.0, -1.0, -1.0, -1.0))
    away = some.trained_metrics([False, False, False, False, True])
    assert away == {"positive_with_negative_advantage": [1.0, 0.0, 0.0, 0.0]}


def test_metrics_are_of_whole_rollouts_or_of_all():
    made = (outcome("red", looked(), looked("error")), outcome(None), outcome("red", sandbox_error="gone"))
    some = Scores(made, (None, None, "gone"), (1.0, 0.0, None), (1.0, 0.0, None), ({"a": 1.0}, {"a": 3.0}, {}))
    metrics = some.rollout_metrics()
    assert (metrics["accuracy"], metrics["answered"], metrics["broken_rate"]) == ([1, 0], [1, 0], [0, 0, 1])
    assert (metrics["tool_calls"], metrics["tool_use"], metrics["executable_rate"]) == ([2, 0, 0], [1, 0, 0], [1, 0])
    assert (metrics["turns"], metrics["tokens"], metrics["images_shown"]) == ([3, 1, 1], [10] * 3, [1, 0, 0])
    assert (metrics["parts/a"], metrics["sandbox/seconds"]) == ([1, 3], [0.0] * 3)
    of_groups = scores(1.0, 1.0, None, None, 0.0, 1.0).group_metrics(2)
    assert of_groups == {"group_std": [0, 0, 0.5], "groups/broken": [1 / 3], "groups/no_spread": [1 / 3]}


def logged(folder, step, n=9, trackers=()):
    rollouts = [outcome("red", looked())] + [outcome(None, turns=("y" * 50_001,))] * (n - 1)
    some = Scores(tuple(rollouts), (None,) * n, (1.0,) * n, (1.0,) * n, ({},) * n, (0.5,) * n)
    SampleLog(folder, trackers)(some, SimpleNamespace(global_step=step))


@pytest.mark.parametrize(
    ("step", "is_logged"), [(0, True), (9, True), (10, False), (18, False), (19, True), (29, True)]
)
def test_the_first_ten_steps_and_every_tenth_are_logged(tmp_path, step, is_logged):
    logged(tmp_path, step)
    assert [path.name for path in tmp_path.glob("*.json")] == ([f"{step + 1:06d}.json"] if is_logged else [])


def test_a_sample_has_eight_rollouts_with_small_images(tmp_path):
    tracked = []
    logged(tmp_path, 3, trackers=[lambda *given: tracked.append(given)])
    rollouts = json.loads((tmp_path / "000004.json").read_text())
    assert len(rollouts) == 8
    first, second = rollouts[:2]
    assert (first["step"], first["reward"], first["advantage"], first["broken"]) == (4, 1.0, 0.5, None)
    assert (first["answer"], first["unanswered"], first["written"]) == ("red", None, None)
    assert (second["answer"], len(second["written"])) == (None, 50_000)
    (name,) = first["rounds"][0]["images"]
    with Image.open(tmp_path / "images" / name) as small:
        assert small.size == CROP_IMAGE.size
    ((given, images, step),) = tracked
    assert (len(given), images, step) == (8, tmp_path / "images", 3)
    assert sample_log.LONGEST_SIDE == 320
