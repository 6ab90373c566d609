"""Practice: images with known right answers, before a person gets tasks of a campaign that asks for it.

A try has five images, each in two steps: the person answers the question and boxes the target; then they accept or
reject a record, and read what was right. Four right images open the campaign's projects (``fence.py``). Until a step is
done its solution stays on the server. Nothing here is a task or an annotation. A sync brings a campaign's images:

    {"digest": "…", "items": [{"key": "…", "image": "<sha256>", "size": [4000, 3000], "question": "…", "answer": "…",
     "category": "OCR", "count": null, "boxes": [[1837, 632, 1941, 662]], "planted": {"answer": "…", …}}],
     "passages": {"en": {"answer": "<p>…", "box": "…", "verdict": "…", "all": "…"}}}
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from darkroom_studio.administration import staff_only
from darkroom_studio.identity import user_of
from darkroom_studio.languages import language_of, marked, translated
from darkroom_studio.middleware import POLICY
from darkroom_studio.own_tables import PRACTICE, PRACTICE_SETS, counted_pause, pending, rows
from darkroom_studio.validation import N_IMAGES, N_PASSING, answer_problem, draw_practice, practice_errors, read_boxes
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template import Context, Engine
from django.utils.safestring import mark_safe

PAGE, SCRIPT = (Path(__file__).with_name(f"practice.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))


class Try(NamedTuple):
    """A person's try; ``step`` counts the steps that are done."""

    campaign: str
    number: int
    step: int
    images: list[dict[str, Any]]


@staff_only
def sets(request: HttpRequest) -> HttpResponse:
    """GET: the digest of each campaign's images. POST {"campaign", "set"}: replaces them; an empty set ends it."""
    if request.method == "POST":
        sent = json.loads(request.body)
        request.darkroom_note = sent["campaign"]
        with transaction.atomic():
            rows(f"delete from {PRACTICE_SETS} where campaign = %s", sent["campaign"])
            if content := sent["set"]:
                values = (sent["campaign"], content["digest"], json.dumps(content))
                rows(f"insert into {PRACTICE_SETS} values (%s, %s, %s)", *values)
    return JsonResponse({"sets": dict(rows(f"select campaign, digest from {PRACTICE_SETS}"))})


def practice(request: HttpRequest) -> HttpResponse:
    """The page of a step, or of what was right in the last one until the person goes on (``after``)."""
    user, language, campaigns = user_of(request), language_of(request), pending(user_of(request))
    latest = _latest(user, campaigns)
    if request.method == "POST":
        return _submitted(request, user, latest, language) if latest and campaigns else JsonResponse({})
    if latest and latest.step and latest.step % 2 == 0 and request.GET.get("after") != f"{latest.number}.{latest.step}":
        return _page(latest, user, language, is_solved=True)
    if not campaigns:
        return HttpResponseRedirect("/projects/")
    if latest is None or latest.step == 2 * N_IMAGES:
        latest = _begin(user, campaigns[0])
    _work_on(user, latest)
    return _page(latest, user, language, is_solved=False)


def _latest(user: Any, campaigns: list[str]) -> Try | None:
    """The last try in the first of the campaigns; without any, the last one at all."""
    where, order = ("and campaign = %s", "number") if campaigns else ("", "ended_at")
    columns = f"select campaign, number, step, images from {PRACTICE} where user_id = %s"
    latest = rows(f"{columns} {where} order by {order} desc limit 1", user.id, *campaigns[:1])
    return next((Try(*values, json.loads(images)) for *values, images in latest), None)


def _begin(user: Any, campaign: str) -> Try:
    """A new try, of the images that the person got least often."""
    whose = (user.id, campaign)
    before = rows(f"select images from {PRACTICE} where user_id = %s and campaign = %s", *whose)
    n_before = Counter(image["key"] for (images,) in before for image in json.loads(images))
    items, images = {item["key"]: item for item in _set(campaign)["items"]}, []
    for key, is_planted in draw_practice({key: n_before[key] for key in items}):
        planted = items[key].pop("planted") if is_planted else None
        record = planted or {name: items[key][name] for name in ("answer", "category", "count", "boxes")}
        images.append({**items[key], "is_planted": bool(planted), "record": record})
    new = f"insert into {PRACTICE}(user_id, campaign, number, images, last_at) values (%s, %s, %s, %s, %s)"
    rows(f"{new} on conflict do nothing", *whose, len(before) + 1, json.dumps(images), time.time())
    begun = _latest(user, [campaign])  # another tab's, if that was faster
    assert begun is not None, "it was inserted"
    return begun


def _set(campaign: str) -> dict[str, Any]:
    content = rows(f"select content from {PRACTICE_SETS} where campaign = %s", campaign)
    return dict(json.loads(content[0][0])) if content else {}


def _work_on(user: Any, latest: Try) -> None:
    """Note that the person works on a try now, as ``own_tables.work_on`` does for a task."""
    now = time.time()
    seconds = f"seconds = seconds + {counted_pause(f'{now} - last_at')}, last_at = {now}"
    where = "user_id = %s and campaign = %s and number = %s"
    rows(f"update {PRACTICE} set {seconds} where {where}", user.id, latest.campaign, latest.number)


def _submitted(request: HttpRequest, user: Any, latest: Try, language: str) -> HttpResponse:
    """Store a step, once; one from another tab changes nothing, and the page shows the next."""
    sent, (_, number, step, images) = json.loads(request.body), latest
    if sent.get("step") != f"{number}.{step}" or step == 2 * N_IMAGES:
        return JsonResponse({})
    _work_on(user, latest)
    image, problem, is_right = images[step // 2], "", 0
    if step % 2 == 0:
        problem = answer_problem(sent.get("answer"), language)
        try:
            image |= {"own": str(sent.get("answer")).strip(), "own_boxes": read_boxes(sent.get("boxes"), image["size"])}
        except ValueError:
            problem = problem or translated("Draw at least one box around the target object.", language)
    elif sent.get("verdict") not in ("accept", "reject"):
        problem = translated("Accept or reject.", language)
    else:
        image["wrong"] = practice_errors(image, sent["verdict"])
        is_right = int(not image["wrong"])
    if problem:
        return JsonResponse({"detail": problem}, status=400)
    store = f"update {PRACTICE} set step = step + 1, n_right = n_right + %s, images = %s, ended_at = %s"
    values = (is_right, json.dumps(images), datetime.now(UTC).isoformat(timespec="seconds"))
    rows(f"{store} where user_id = %s and campaign = %s and number = %s and step = %s", *values, user.id, *latest[:3])
    return JsonResponse({})


def _page(latest: Try, user: Any, language: str, *, is_solved: bool) -> HttpResponse:
    """What the person may know by now."""
    place, nonce = (latest.step - is_solved) // 2, secrets.token_urlsafe(16)
    image, content = latest.images[place], _set(latest.campaign)
    passages = content.get("passages", {}).get(language or content.get("language"), {})
    chosen = {name: mark_safe(text) for name, text in passages.items()}
    record = {**image["record"], "category": translated(image["record"]["category"], language)}
    values: dict[str, Any] = {
        "language": language or "en",
        "person": user.id,
        "nonce": nonce,
        "script": mark_safe(marked(SCRIPT, language)),
        "step": f"{latest.number}.{latest.step}",
        "is_solved": is_solved,
        "asks": not is_solved and latest.step % 2 == 0,
        "place": place + 1,
        "n": N_IMAGES,
        "item": image,
        "record": record,
        "passages": [chosen[name] for name in image.get("wrong", ()) if name in chosen],
        "n_right": sum(not each["wrong"] for each in latest.images if "wrong" in each),
        "n_passing": N_PASSING,
        "guide": chosen.get("all", ""),
    }
    page = Engine(autoescape=True).from_string(marked(PAGE, language)).render(Context(values, use_l10n=False))
    response = HttpResponse(page)
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = f"{POLICY}; script-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'"
    return response
