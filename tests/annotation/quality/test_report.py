"""The page and the plots: alone in the world, the same every time, and safe with any text."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.report import figures, nice, people_rows, plots, render, summary
from darkroom.pipelines.records.reject_reasons import Reason, reject

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"
VOID = {"meta", "link", "img", "br", "input", "hr"}


class Open(HTMLParser):
    """Which elements were never closed, and which addresses are asked for."""

    def __init__(self):
        super().__init__()
        self.stack, self.addresses, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def parsed(text):
    reader = Open()
    reader.feed(text)
    return reader


def test_the_page_asks_for_nothing(quality):
    text = render(quality)
    assert parsed(text).addresses == []
    assert "://" not in text
    assert "url(" not in text


def test_every_element_is_closed(quality):
    assert parsed(render(quality)).stack == []
    assert parsed(render(measure([]))).stack == []


def test_charts_are_well_formed_and_inside_their_frames(quality):
    charts = re.findall(r"<svg.*?</svg>", render(quality), re.DOTALL)
    assert len(charts) == 8
    for chart in map(ElementTree.fromstring, charts):
        width, height = map(float, chart.get("viewBox").split()[2:])
        for rect in chart.iter("rect"):
            x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width + 0.1
            assert 0 <= y <= y + h <= height + 0.1
        for circle in chart.iter("circle"):
            assert 0 <= float(circle.get("cx")) <= width


def test_the_same_figures_give_the_same_page_and_plots(quality):
    page = render(quality)
    assert page.startswith("<!doctype html>")
    assert render(quality) == page
    assert plots(quality) == plots(quality)


def test_hostile_texts_stay_texts(event, state):
    one = state(
        event("annotate", HOSTILE),
        event("cross_check", "bo", "reject", reasons=(HOSTILE,)),
        skipped_by=[HOSTILE, "bo"],
        item_id=HOSTILE,
    )
    hits = [{"person": HOSTILE, "task_id": 1, "problems": [HOSTILE], "at": ""}]
    page = parsed(
        render(measure([one], blocked=hits, people=[Person(1, HOSTILE, HOSTILE, "annotator")]), title=HOSTILE)
    )
    assert "img" not in page.tags
    assert page.tags.count("script") == 1


def test_images_left_out_are_named_with_what_was_found(quality):
    evidence = "12000x8000 = 96,000,000 pixels, the limit is 50,000,000"
    file = {"source": "ours", "source_row": f"{HOSTILE}.tif"}
    wide = reject(Reason.TOO_LARGE_IMAGE, evidence, stage="annotation_pool", row={}, **file)
    text = render(quality, left_out=[wide])
    assert "12000x8000 = 96,000,000 pixels, the limit is 50,000,000" in text
    assert "img" not in parsed(text).tags
    assert "Images left out" not in render(quality)


def test_the_page_names_everybody_by_address(quality):
    text = render(quality)
    assert all(f">{row.email}<" in text for row in quality.people)


def test_a_name_replaces_nobodys_address(event, state):
    """Accounts of before names were the admin's to set may hold anything."""
    people = [Person(2, "ann@example.org", "<b>bob@example.org</b>", "annotator")]
    quality = measure([state(event("annotate", "ann@example.org"))], people=people)
    assert [row["person"] for row in people_rows(quality)] == ["ann@example.org"]
    assert ">ann@example.org<" in render(quality)
    assert "<b>bob@example.org" not in render(quality)


@pytest.mark.parametrize("n_days", [1, 40])
def test_days_fit_however_many_there_are(event, state, n_days):
    events = [event("annotate", "ann") for _ in range(n_days)]
    dated = [
        type(one)(
            **{name: getattr(one, name) for name in one.__slots__} | {"at": f"2026-{1 + n // 28:02}-{1 + n % 28:02}"}
        )
        for n, one in enumerate(events)
    ]
    text = render(measure([state(one) for one in dated]))
    (chart,) = re.findall(r'<svg[^>]*aria-label="Submissions per day".*?</svg>', text, re.DOTALL)
    assert all(
        float(rect.get("x")) + float(rect.get("width")) <= 560 for rect in ElementTree.fromstring(chart).iter("rect")
    )


@pytest.mark.parametrize(("top", "scale"), [(0, 1), (1, 1), (9, 9), (10, 10), (11, 20), (312, 400), (1000, 1000)])
def test_scales_end_at_a_number_that_reads_well(top, scale):
    assert nice(top) == scale


def test_plots_are_images_with_something_on_them(quality):
    drawn = plots(quality)
    assert set(drawn) == {"rounds", "people", "reasons"}
    for data in drawn.values():
        image = Image.open(io.BytesIO(data)).convert("RGB")
        assert image.width == 720
        assert len(np.unique(np.asarray(image).reshape(-1, 3), axis=0)) > 20


def test_plots_that_would_be_empty_are_left_out():
    assert set(plots(measure([]))) == {"rounds"}


def test_a_name_that_would_be_mathematics_is_drawn_as_it_is(event, state):
    assert "people" in plots(measure([state(event("annotate", "a$_{b$@example.org"))]))


def test_figures_leave_out_what_is_not_defined(quality):
    assert set(figures(measure([]))) == {
        "items", "accepted", "rejected", "waiting", "reworked", "refused_submissions", "gate_hits",
    }  # fmt: skip
    assert len(figures(quality)) == 14


def test_people_rows_are_flat(quality):
    rows = people_rows(quality)
    assert len(rows) == len(quality.people)
    assert all(value is None or isinstance(value, str | int | float) for row in rows for value in row.values())


def test_the_summary_is_short_enough_to_be_shown_inline(quality):
    assert len(summary(quality)) < 1000
    assert summary(quality).splitlines()[2] == f"| accepted | {quality.n_accepted} of 300 |"
