"""The site in Chromium.

    npm install pyodide z3-solver axe-core; pip install playwright
    MMAFORMAL_NPM=node_modules python -m pytest tests/site        # -m slow: 1,000 rows of every algorithm

It is skipped where Playwright, Chromium or one of those packages is not there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.site_rows import EXAMPLES, asked, expected

from mmaformal import ARCHITECTURES, hopper
from mmaformal.queries.properties import prove
from mmaformal.site.build import NPM, SiteParts, build_site
from mmaformal.site.jobs import Served
from mmaformal.site.playground import answer
from mmaformal.site.proofs import ProofFolder, fill
from mmaformal.site.serve import server

if TYPE_CHECKING:
    from playwright.sync_api import Page

PACKAGES = Path(os.environ.get("MMAFORMAL_NPM", NPM))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
#: Python is loaded within so many milliseconds, on a machine that others use too.
PATIENCE = 120_000


#: A property whose proof is checked in the browser.
PROVED = "never-minus-zero"
UNIT = hopper["HMMA.1688.F16"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    for name in ("pyodide", "z3-solver", "axe-core"):
        if not (PACKAGES / name).is_dir():
            pytest.skip(f"needs `npm install {name}`, and MMAFORMAL_NPM where it is elsewhere")
    proofs = ProofFolder(tmp_path_factory.mktemp("proofs"))
    fill(proofs, [UNIT], [PROVED], lambda _: None, timeout=120, memory=2048)
    out = tmp_path_factory.mktemp("site")
    parts = SiteParts(pyodide=PACKAGES / "pyodide", z3=PACKAGES / "z3-solver", proofs=proofs.path)
    assert build_site(out, parts).lacks == {}
    recording = Path(__file__).parents[2] / "examples" / "bfdot_qemu.npz"
    with server(out, asks=Served(recordings=[recording])) as serving:
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


#: One page of each kind.
PAGES = (
    "index",
    "pairs",
    "sources",
    "generations",
    "questions",
    "instruction/power10/XVF64GER",
    "instruction/hopper/HMMA.16816.F32",
    "property/error-bound",
    "architecture/sme",
    "source/mma-sim",
    "types/bf16-bf16-fp32-fp32",
    "pair/ampere.HMMA.16816.F32/hopper.HMMA.16816.F32",
    f"proof/hopper/{UNIT.name}/{PROVED}",
    "playground",
)


def playground(page: Page, site: str, state: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}playground.html{state}")
    page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)


def visible(page: Page, selector: str = "#instructions tbody tr") -> int:
    return page.locator(f"{selector}:visible").count()


def found_all_of(page: Page, query: str) -> None:
    """Wait until the search has said what it found."""
    page.wait_for_function(
        "q => document.getElementById('found').textContent.startsWith(`“${q}”`)", arg=query
    )


def test_search_finds_by_device_and_type(page: Page, site: str) -> None:
    page.goto(site)
    everything = sum(len(each.instructions) for each in ARCHITECTURES.values())
    assert visible(page) == everything
    for query, word in (("h100 e4m3", "e4m3"), ("h100 fp8", "e")):  # both factors of either type
        page.fill("header input", query)
        found_all_of(page, query)
        fp8 = [
            i
            for i in ARCHITECTURES["hopper"]
            if all(f.name.startswith(word) for f in (i.a_format, i.b_format))
        ]
        assert visible(page) >= len(fp8) > 0
        page.reload()  # its address has the question
        found_all_of(page, query)
        assert visible(page) >= len(fp8)
    page.fill("header input", "a100 h100 fp16")
    found_all_of(page, "a100 h100 fp16")
    assert page.locator("#hits a").first.inner_text().startswith("ampere HMMA")
    page.fill("header input", "Signoff of SystemVerilog")
    found_all_of(page, "Signoff of SystemVerilog")
    assert page.locator("#hits a").first.inner_text() == "Does my design compute it?"
    page.fill("header input", "xyzzy")
    found_all_of(page, "xyzzy")
    assert "try a device" in page.inner_text("#found")
    page.goto(f"{site}instruction/hopper/HMMA.16816.F32.html")
    page.fill("header input", "monotonicity")
    page.press("header input", "Enter")
    page.wait_for_url("**/index.html?q=monotonicity")
    found_all_of(page, "monotonicity")
    assert visible(page, "#properties tbody tr") == 2


def test_tables_are_sorted_by_the_keyboard(page: Page, site: str) -> None:
    page.goto(f"{site}architecture/hopper.html")
    page.focus("thead th:nth-child(9) button")
    page.keyboard.press("Enter")
    up = [int(x) for x in page.locator("tbody td:nth-child(9)").all_inner_texts()]
    page.keyboard.press("Enter")
    down = [int(x) for x in page.locator("tbody td:nth-child(9)").all_inner_texts()]
    assert (up, down) == (sorted(up), sorted(up, reverse=True))
    assert len(set(up)) > 1


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_page_is_wider_than_the_screen(page: Page, site: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in PAGES:
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
    for name in PAGES:
        page.goto(f"{site}{name}.html")
        links = page.eval_on_selector_all("a", "all => [...new Set(all.map(x => x.href.split('#')[0]))]")
        own = [x for x in links if x.startswith(site)]  # others' are not asked: a test needs no network
        assert len(own) > 5
        assert [x for x in own if page.request.head(x).status != 200] == [], name


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
    assert page.inner_text("#parts") == "where they part: align, c"
    assert page.locator("tr.first td").nth(2).inner_text() == "c"
    assert page.locator(".cut").count() > 0
    playground(
        page, site, "#units=ampere%20HMMA.16816.F32,hopper%20HMMA.16816.F32&a=1024,0.1&b=1024,1&c=0x1p-3"
    )
    assert page.inner_text("#parts") == "where they part: align, a[1]·b[1]; d is the same all the same"


def test_fields_keep_the_focus_while_they_are_typed(page: Page, site: str) -> None:
    playground(page, site, "#units=hopper%20HMMA.16816.F32&a=1&b=1&c=0")
    page.focus("#a-0")
    page.keyboard.press("ControlOrMeta+a")
    for word in ("2", "3", "4", "5"):  # from field to field there are the bits, one stop
        page.keyboard.type(word)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "c-0"
    page.keyboard.type("1-")
    assert page.get_attribute("#c-0", "aria-invalid") == "true"
    page.click("[id='a[1]-bit-15']")  # the others are alive meanwhile
    assert "-0x1p+2 = -4" in page.locator(".operand", has_text="a[1]").inner_text()
    page.click("[id='a[1]-bit-15']")
    page.focus("#c-0")
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    assert page.inner_text(".d").split()[-1] == "27"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.id") == "c-bit-30"
    assert page.inner_text(".d") != "27"


def test_a_printed_witness_opens_in_the_playground(page: Page, site: str) -> None:
    page.goto(f"{site}instruction/ampere/HMMA.16816.F32.html")
    row = page.locator("#properties tbody tr", has_text="order-independence-across-blocks")
    given = row.locator("code").inner_text().partition(" gives ")[2].split(";")[0]
    row.get_by_text("try it").click()
    page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)
    assert given in page.inner_text(".d")


# ---- pairs ---------------------------------------------------------------------------------------------------------


def test_a_pair_is_found_from_the_first_page_by_the_keyboard_alone(page: Page, site: str) -> None:
    page.goto(site)
    while page.evaluate("document.activeElement?.name") != "q":
        page.keyboard.press("Tab")
    page.keyboard.type("ampere hopper HMMA.16816.F32.BF16")
    page.wait_for_selector("#hits a")
    while "#" in (focused := page.evaluate("document.activeElement?.href ?? '#'")) or "/pair/" not in focused:
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/**")
    assert "ampere HMMA.16816.F32.BF16" in page.inner_text("h1")


def test_a_pair_opens_in_the_playground_as_it_is_told(page: Page, site: str) -> None:
    page.goto(f"{site}pair/ampere.HMMA.16816.F32/hopper.HMMA.16816.F32.html")
    given = [page.locator("#input dd").nth(k).inner_text().split()[0] for k in (2, 3)]
    parts = page.inner_text("#stages .apart")
    page.get_by_text("Try it in the playground").click()
    page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)
    assert [x.split()[0] for x in page.locator(".d").all_inner_texts()] == given
    assert page.inner_text("#parts") == f"where they part: {parts}"


def test_rows_are_narrowed_and_the_address_has_it(page: Page, site: str) -> None:
    page.goto(f"{site}pairs.html")
    every = page.locator("#pairs tbody tr").count()
    page.fill("#pairs input", "hopper e5m2 sapphire")
    page.locator("#pairs tbody tr:visible").first.wait_for(state="detached")
    page.fill("#pairs input", "a100 h100 tf32")
    page.locator("#pairs tbody tr:visible").first.wait_for()
    few = visible(page, "#pairs tbody tr")
    assert every > few > 0
    page.reload()
    page.locator("#pairs tbody tr:visible").nth(few).wait_for(state="detached")
    assert visible(page, "#pairs tbody tr") == few


def test_a_map_leads_to_pairs(page: Page, site: str) -> None:
    page.goto(f"{site}types/fp16-fp16-fp32-fp32.html")
    page.locator("table.map td.different a").first.click()
    page.wait_for_url("**/pair/**")
    assert page.locator("tr.first").count() == 1 or "not add the same terms" in page.inner_text("#stages")


# ---- proofs --------------------------------------------------------------------------------------------------------


def test_a_proof_is_checked_in_the_browser(page: Page, site: str) -> None:
    page.goto(f"{site}instruction/hopper/{UNIT.name}.html")
    page.get_by_text("to check").click()
    page.wait_for_selector("#check:visible")
    page.click("#check")
    page.wait_for_selector("body[data-checked]", timeout=PATIENCE)
    count = len(prove(PROVED, UNIT).evidence.obligations)
    assert f"{count} of {count} refuted by z3 here" in page.inner_text("#checked")
    assert page.locator("tbody td", has_text="✓ unsat").count() == count


def test_a_script_that_is_another_is_refused(page: Page, site: str) -> None:
    """Its SHA-256 is looked at; an obligation that does not hold is said to be none."""
    page.goto(f"{site}proof/hopper/{UNIT.name}/{PROVED}.html")
    page.evaluate("document.querySelectorAll('tbody tr').forEach((row, k) => { if (k > 1) row.remove(); })")
    page.evaluate("document.querySelector('tbody a').dataset.sha256 = '00'")
    page.click("#check")
    page.wait_for_selector("body[data-checked]", timeout=PATIENCE)
    assert "1 of 2 refuted" in page.inner_text("#checked.wrong")
    assert "another SHA-256" in page.locator("tbody tr").first.inner_text()


def test_an_obligation_that_takes_too_long_is_said_to_be_open(page: Page, site: str) -> None:
    address = f"{site}proof/hopper/{UNIT.name}/{PROVED}.html"
    text = page.request.get(address)
    hurried = re.sub(r'data-seconds="\d+"', 'data-seconds="0.0001"', text.text())
    page.route(address, lambda route: route.fulfill(response=text, body=hurried))
    page.goto(address)
    page.evaluate("document.querySelectorAll('tbody tr').forEach((row, k) => { if (k > 0) row.remove(); })")
    page.click("#check")
    page.wait_for_selector("body[data-checked]", timeout=PATIENCE)
    page.unroute(address)
    assert "0 of 1 refuted" in page.inner_text("#checked")
    assert "1 not settled" in page.inner_text("#checked")


# ---- questions -----------------------------------------------------------------------------------------------------


def test_a_question_is_asked_watched_and_cancelled(page: Page, site: str) -> None:
    page.goto(f"{site}questions.html#kind=prove&x={UNIT.label.replace(' ', '%20')}&property=error-bound")
    page.click("#ask button")
    page.wait_for_selector("article[data-state=running]")
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("article[data-state=cancelled]")
    page.select_option("#ask select[name=kind]", "check")
    page.click("#ask button")
    page.wait_for_selector("article[data-state=done]", timeout=PATIENCE)
    assert "bfdot_qemu.npz" in page.inner_text("article[data-state=done] pre.output")


# ---- everyone ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, site: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    axe = (PACKAGES / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    found = []
    for name in PAGES:
        page.goto(f"{site}{name}.html")
        if name == "playground":
            page.wait_for_selector("body[data-evaluated]", timeout=PATIENCE)
        page.evaluate(axe)
        for each in page.evaluate("axe.run().then(found => found.violations)"):
            if each["impact"] in ("serious", "critical"):
                found.append((name, each["id"], each["nodes"][0]["html"][:120], len(each["nodes"])))
    page.emulate_media(color_scheme="light")
    assert found == []


@pytest.mark.skipif("CI" in os.environ, reason="a time says nothing on a machine that others share")
def test_the_first_page_is_painted_within_a_second(page: Page, site: str) -> None:
    page.goto(site)
    paint, taken = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0", 0.0
    for _ in range(100):
        if taken := page.evaluate(paint):
            break
        page.wait_for_timeout(50)
    assert 0 < taken <= 1000 * float(os.environ.get("MMAFORMAL_PATIENCE", "3"))
    print(f"first paint after {taken:.0f} ms")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sorted(EXAMPLES))
def test_a_thousand_rows_give_what_dot_add_gives(page: Page, site: str, algorithm: str) -> None:
    """In the browser's Python, and with the compiled or NumPy's lanes here."""
    if page.url != f"{site}playground.html":
        playground(page, site)
    i, random = EXAMPLES[algorithm], Random(algorithm)
    rows = [asked(i, random) for _ in range(1000)]
    requests = [json.dumps({"units": [i.label], **words}) for words in rows]
    codes = "all => all.map(x => JSON.parse(window.playgroundAnswer(x)).units[0].code)"
    there = [int(code, 16) for code in page.evaluate(codes, requests)]
    assert there == [expected(i, words) for words in rows]
