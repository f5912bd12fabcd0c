"""The site in Chromium.

    npm install pyodide; pip install playwright; MMAFORMAL_PYODIDE=node_modules/pyodide python -m pytest tests/site

It is skipped where Playwright, Chromium or Python for browsers is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.site_rows import EXAMPLES, asked

from mmaformal import ARCHITECTURES
from mmaformal.site.build import NPM, build
from mmaformal.site.playground import answer
from mmaformal.site.serve import server

if TYPE_CHECKING:
    from playwright.sync_api import Page

PYODIDE = Path(os.environ.get("MMAFORMAL_PYODIDE", NPM))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
#: Python is loaded within so many milliseconds, on a machine that others use too.
PATIENCE = 120_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    if not PYODIDE.is_dir():
        pytest.skip(
            "needs Python for browsers: npm install pyodide, and MMAFORMAL_PYODIDE where it is elsewhere"
        )
    out = tmp_path_factory.mktemp("site")
    build(out, pyodide=PYODIDE)
    with server(out) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}/"
        serving.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page(site: str) -> Iterator[Page]:
    """A page whose console stays empty."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        yield page
        browser.close()
    assert said == []


def playground(page: Page, site: str, state: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}playground.html{state}")
    page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)


def visible(page: Page, selector: str = "#instructions tbody tr") -> int:
    return page.locator(f"{selector}:visible").count()


def test_search_finds_by_device_and_type(page: Page, site: str) -> None:
    page.goto(site)
    everything = sum(len(each.instructions) for each in ARCHITECTURES.values())
    assert visible(page) == everything
    page.fill("header input", "h100 e4m3")
    fp8 = [i for i in ARCHITECTURES["hopper"] if "e4m3" in i.spec.types]
    assert visible(page) == len(fp8)
    page.reload()  # its address has the question
    assert visible(page) == len(fp8)
    page.goto(f"{site}instruction/hopper/HMMA.16816.F32.html")
    page.fill("header input", "monotonicity")
    page.press("header input", "Enter")
    page.wait_for_url("**/index.html?q=monotonicity")
    assert visible(page, "#properties tbody tr") == 2


def test_tables_are_sorted_by_the_keyboard(page: Page, site: str) -> None:
    page.goto(f"{site}architecture/hopper.html")
    page.focus("thead th:nth-child(8) button")
    page.keyboard.press("Enter")
    up = [int(x) for x in page.locator("tbody td:nth-child(8)").all_inner_texts()]
    page.keyboard.press("Enter")
    down = [int(x) for x in page.locator("tbody td:nth-child(8)").all_inner_texts()]
    assert (up, down) == (sorted(up), sorted(up, reverse=True))
    assert len(set(up)) > 1


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_page_is_wider_than_the_screen(page: Page, site: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("index", "instruction/power10/XVF64GER", "property/error-bound", "architecture/sme"):
        page.goto(f"{site}{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.set_viewport_size({"width": 1280, "height": 800})


def test_pages_read_without_scripts(page: Page, site: str) -> None:
    context = page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    plain = context.new_page()
    plain.goto(f"{site}index.html")
    assert plain.locator("#instructions tbody tr").count() == sum(map(len, ARCHITECTURES.values()))
    plain.goto(f"{site}playground.html")
    assert "needs scripts" in plain.inner_text("noscript")
    context.close()


def test_every_link_of_a_page_leads_somewhere(page: Page, site: str) -> None:
    for name in ("index.html", "instruction/ampere/HMMA.16816.F32.html", "property/error-bound.html"):
        page.goto(site + name)
        links = page.eval_on_selector_all("a", "all => [...new Set(all.map(x => x.href.split('#')[0]))]")
        assert [x for x in links if page.request.head(x).status != 200] == [], name


def test_the_playground_gives_what_python_gives_here(page: Page, site: str) -> None:
    """The function that the page calls gives for some rows of each algorithm what Python gives."""
    playground(page, site)
    random = Random(7)
    for i in EXAMPLES.values():
        for _ in range(3):
            request = json.dumps({"units": [i.label], **asked(i, random)})
            there = page.evaluate("request => window.playgroundAnswer(request)", request)
            assert json.loads(there) == json.loads(answer(request)), request


def test_a_bit_is_flipped_and_the_address_has_it(page: Page, site: str) -> None:
    playground(page, site, "#units=hopper%20HMMA.16816.F32&a=1&b=1&c=0")
    assert page.inner_text(".d").startswith("0x3f800000")
    page.click("[id='a[0]-bit-10']")  # the last bit of the exponent: 1 becomes 1/2
    assert page.inner_text(".d").startswith("0x3f000000")
    address = page.url
    assert "a=0x3800" in address
    playground(page, site, "#" + address.partition("#")[2])
    assert page.inner_text(".d").startswith("0x3f000000")


def test_numbers_are_typed_and_mistakes_are_said(page: Page, site: str) -> None:
    playground(page, site, "#units=hopper%20HMMA.16816.F32&a=1&b=1&c=0")
    page.fill("#a-0", "3, 4")
    page.press("#a-0", "Tab")
    page.fill("#b-1", "0x1p+1")
    page.press("#b-1", "Tab")
    assert page.inner_text(".d").split()[-1] == "11"
    page.fill("#c-0", "hello")
    page.press("#c-0", "Tab")
    assert "no number" in page.inner_text("#status.wrong")


def test_units_part_where_it_is_marked(page: Page, site: str) -> None:
    playground(page, site)
    assert page.inner_text("#parts") == "where they part: align, a[1]·b[1]"
    assert page.locator("tr.first td").nth(2).inner_text() == "a[1]·b[1]"
    assert page.locator(".cut").count() > 0


def test_a_printed_witness_opens_in_the_playground(page: Page, site: str) -> None:
    page.goto(f"{site}instruction/ampere/HMMA.16816.F32.html")
    row = page.locator("#properties tbody tr", has_text="order-independence-across-blocks")
    given = row.locator("code").inner_text().partition(" gives ")[2].split(";")[0]
    row.get_by_text("try it").click()
    page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)
    assert given in page.inner_text(".d")
