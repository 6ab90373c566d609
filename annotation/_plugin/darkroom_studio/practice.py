"""Practice: images with known right answers, before a person gets tasks of a campaign that asks for it (``fence.py``).

A try has five images, each in two steps: the person answers the question and boxes the target; then they accept or
reject a record, and read what was right. Until a step is done its solution stays on the server. Nothing here is a task
or an annotation. A campaign's images come from a sync (``darkroom/annotation/rounds/practice.py``).
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from darkroom_studio.administration import staff_only
from darkroom_studio.identity import user_of
from darkroom_studio.languages import language_of, marked, translated
from darkroom_studio.middleware import POLICY
from darkroom_studio.own_tables import PRACTICE, PRACTICE_SETS, counted_pause, listed, pending, rows
from darkroom_studio.validation import (
    N_IMAGES,
    N_PASSING,
    answer_problem,
    draw_practice,
    practice_errors,
    read_body,
    read_boxes,
)
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template import Context, Engine
from django.utils.safestring import mark_safe

PAGE, SCRIPT = (Path(__file__).with_name(f"practice.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
_OPEN = f"where user_id = %s and step < {2 * N_IMAGES}"


@staff_only
def sets(request: HttpRequest) -> HttpResponse:
    """GET: the digest of each campaign's images. POST {"campaign", "set"}: replaces them; an empty set ends it."""
    if request.method == "POST":
        sent = json.loads(request.body)
        campaign = request.darkroom_note = sent["campaign"]
        with transaction.atomic():
            rows(f"delete from {PRACTICE_SETS} where campaign = %s", campaign)
            if sent["set"]:
                values = (campaign, sent["set"]["digest"], json.dumps(sent["set"]))
                rows(f"insert into {PRACTICE_SETS} values (%s, %s, %s)", *values)
    return JsonResponse({"sets": dict(rows(f"select campaign, digest from {PRACTICE_SETS}"))})


def practice(request: HttpRequest) -> HttpResponse:
    """The page of a step, or of what was right in the last one until the person goes on (``after``)."""
    user, language = user_of(request), language_of(request)
    now, campaigns = time.time(), pending(user)
    rows(
        f"update {PRACTICE} set seconds = seconds + {counted_pause(f'{now} - last_at')}, last_at = {now} {_OPEN}",
        user.id,
    )
    latest = _latest(user, campaigns)
    if request.method == "POST":
        try:
            sent = dict(read_body(request.body, request.encoding))
        except (ValueError, TypeError):
            return JsonResponse({"detail": "expected a JSON object"}, status=400)
        return _submitted(sent, user, latest, language)
    step = latest["step"] if latest else 0
    if latest and step and step % 2 == 0 and request.GET.get("after") != f"{latest['number']}.{step}":
        return _page(latest, user, language, is_solved=True)
    if not campaigns:
        return HttpResponseRedirect("/projects/")
    if latest is None or step == 2 * N_IMAGES:
        _begin(user, campaigns[0])
        latest = _latest(user, campaigns)
    return _page(latest or {}, user, language, is_solved=False)


def _latest(user: Any, campaigns: list[str]) -> dict[str, Any] | None:
    """The last try in the first of the campaigns; without any, the last one at all."""
    where, order = ("and campaign = %s", "number") if campaigns else ("", "ended_at")
    rest = f"from {PRACTICE} where user_id = %s {where} order by {order} desc limit 1"
    tries = listed("campaign, number, step, images", rest, user.id, *campaigns[:1])
    return {**tries[0], "images": json.loads(tries[0]["images"])} if tries else None


def _begin(user: Any, campaign: str) -> None:
    """Insert a try, of the images that the person got least often; another tab's stays, if that was faster."""
    before = rows(f"select images from {PRACTICE} where user_id = %s and campaign = %s", user.id, campaign)
    n_before = Counter(image["key"] for (images,) in before for image in json.loads(images))
    items, images = {item["key"]: item for item in _set(campaign)["items"]}, []
    for key, is_planted in draw_practice({key: n_before[key] for key in items}):
        planted = items[key]["planted"] if is_planted else None
        images.append({**items[key], "is_planted": bool(planted), "record": planted or items[key]})
    values = (user.id, campaign, len(before) + 1, json.dumps(images), time.time())
    columns = "(user_id, campaign, number, images, last_at)"
    rows(f"insert into {PRACTICE}{columns} values (%s, %s, %s, %s, %s) on conflict do nothing", *values)


def _set(campaign: str) -> dict[str, Any]:
    content = rows(f"select content from {PRACTICE_SETS} where campaign = %s", campaign)
    return dict(json.loads(content[0][0])) if content else {}


def _submitted(sent: dict[str, Any], user: Any, latest: dict[str, Any] | None, language: str) -> HttpResponse:
    """Store a step, once; one from another tab changes nothing, and the page shows the next."""
    if latest is None or sent.get("step") != f"{latest['number']}.{latest['step']}" or latest["step"] == 2 * N_IMAGES:
        return JsonResponse({})
    image, problem = latest["images"][latest["step"] // 2], ""
    if latest["step"] % 2 == 0:
        problem = answer_problem(sent.get("answer"), language)
        try:
            image |= {"own": str(sent.get("answer")).strip(), "own_boxes": read_boxes(sent.get("boxes"), image["size"])}
        except ValueError:
            problem = problem or translated("Draw at least one box around the target object.", language)
    elif sent.get("verdict") in ("accept", "reject"):
        image["wrong"] = practice_errors(image, sent["verdict"])
    else:
        problem = translated("Accept or reject.", language)
    if problem:
        return JsonResponse({"detail": problem}, status=400)
    store = f"update {PRACTICE} set step = step + 1, n_right = n_right + %s, images = %s, ended_at = %s"
    values = (
        int(image.get("wrong") == []),
        json.dumps(latest["images"]),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    rows(
        f"{store} {_OPEN} and campaign = %s and number = %s and step = %s", *values, user.id, *list(latest.values())[:3]
    )
    return JsonResponse({})


def _page(latest: dict[str, Any], user: Any, language: str, *, is_solved: bool) -> HttpResponse:
    """Show the step, with no more than the person may know by now."""
    place, nonce, content = (latest["step"] - is_solved) // 2, secrets.token_urlsafe(16), _set(latest["campaign"])
    passages = content.get("passages", {}).get(language or content.get("language"), {})
    image = latest["images"][place]
    values: dict[str, Any] = {
        **{"language": language or "en", "person": user.id, "nonce": nonce, "n": N_IMAGES, "n_passing": N_PASSING},
        **{"step": f"{latest['number']}.{latest['step']}", "place": place + 1, "item": image, "is_solved": is_solved},
        "script": mark_safe(marked(SCRIPT, language)),
        "asks": not is_solved and latest["step"] % 2 == 0,
        "category": translated(image["record"]["category"], language),
        "passages": [mark_safe(passages.get(name, "")) for name in image.get("wrong", ())],
        "n_right": sum(each.get("wrong") == [] for each in latest["images"]),
        "guide": mark_safe(passages.get("all", "")),
    }
    page = Engine(autoescape=True).from_string(marked(PAGE, language)).render(Context(values, use_l10n=False))
    response = HttpResponse(page)
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = f"{POLICY}; script-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'"
    return response
