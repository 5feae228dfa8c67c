"""The page in a browser, light, dark and on a phone: charts are drawn, nothing is said to the console, nothing is cut off."""

import io

import pytest
from PIL import Image

from bench import page
from tests.support import records
from tests.support.browser import Browser

for name in ("altair", "vl_convert", "markdown_it"):
    pytest.importorskip(name)

SCREENS = {"light": (1280, False), "dark": (1280, True), "phone": (390, False)}


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    records.write(folder / "results.jsonl", records.every_section())
    page.write(folder)
    return folder / "report.html"


@pytest.fixture(params=SCREENS)
def screen(request, browser, report):
    width, dark = SCREENS[request.param]
    browser.console()
    browser.open(report, width, dark)
    return request.param


def every(browser, selector, more):
    """Of every element: what JavaScript says of it, which calls it `one`."""
    return browser.ask(f"return [...document.querySelectorAll('{selector}')].map(one => {more})")


def test_charts_are_drawn_and_the_console_is_empty(screen, browser, tmp_path):
    assert len(every(browser, "figure", "one.id")) == len(every(browser, ".chart svg", "1")) >= 8
    assert min(every(browser, ".chart", "one.querySelectorAll('.role-mark path').length")) > 0
    assert sum(every(browser, ".chart", "one.querySelectorAll('.mark-symbol path').length")) > 50
    assert browser.console() == []
    picture = Image.open(io.BytesIO(browser.picture(tmp_path / f"{screen}.png"))).convert("L")
    corner = picture.getpixel((2, 2))
    assert corner < 60 if screen == "dark" else corner > 240


def test_nothing_is_wider_than_the_screen(screen, browser):
    assert browser.ask("return document.documentElement.scrollWidth <= window.innerWidth")
    assert not any(every(browser, ".chart", "one.scrollWidth > one.clientWidth + 1"))


def test_words_in_charts_have_the_colour_of_the_side(screen, browser):
    (word, *_) = every(browser, ".chart .role-axis-title text", "getComputedStyle(one).fill")
    assert word == every(browser, "body", "getComputedStyle(one).color")[0]


def test_who_cannot_see_is_told(screen, browser):
    assert min(map(len, every(browser, ".chart", "one.getAttribute('aria-label') || ''"))) > 20
    described = "!!(one.caption && one.querySelector('th[scope=col]') && one.querySelector('th[scope=row]'))"
    found = every(browser, "table", described)
    assert all(found) and len(found) >= 10


def test_the_keyboard_skips_to_the_content(screen, browser):
    browser.press("TAB")
    assert browser.ask("return document.activeElement.className") == "skip"
    assert browser.ask("return document.activeElement.getBoundingClientRect().left >= 0")
    assert browser.ask("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("ENTER", "TAB")
    assert browser.ask("return document.querySelector('main').contains(document.activeElement)")
