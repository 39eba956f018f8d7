"""Drives the pages of `weir lab report` in headless Chromium.

    WEIR_WRITE_PAGES=PAGES cargo test -p weir-lab the_samples_are_pages
    results.py PAGES [PICTURES]

PAGES is the folder with results.html and hostile.html; with a folder PICTURES, screenshots at three
widths, light and dark, are written there. Needs chromium and chromedriver.
Each check prints a line; the last line has the totals.
"""

import os
import sys

from check import WIDTHS, Checks
from webdriver import Browser, Failure, wait

def _cdp(browser, command, **parameters):
    return browser._on("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


def _open(browser, address):
    browser.open(address)
    wait("the page", lambda: browser.run("return typeof reveal === 'function'"))


def _narrow(browser):
    wide, screen = browser.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= screen, f"{wide} pixels in {screen}"


def _drawn(browser):
    """Charts have marks with extent and colour, and no text of one lies outside of it."""
    drawings, faults = browser.run(
        "const all = [...document.querySelectorAll('figure.chart .facet > svg')]"
        ".filter((one) => one.getClientRects().length);"
        "const faults = [];"
        "for (const one of all) {"
        " const box = one.getBoundingClientRect();"
        " const marks = [...one.querySelectorAll('.bar, .line, .middle')];"
        " const seen = marks.filter((mark) => {"
        "  const own = mark.getBoundingClientRect();"
        "  const style = getComputedStyle(mark);"
        "  return own.width + own.height > 0 && (style.fill + style.stroke).includes('rgb'); });"
        " if (box.height < 20 || seen.length === 0) faults.push('empty: ' + one.ariaLabel);"
        " for (const text of one.querySelectorAll('text')) {"
        "  const own = text.getBoundingClientRect();"
        "  if (own.left < box.left - 2 || own.right > box.right + 2) faults.push(text.textContent);"
        " } }"
        "return [all.length, faults]")
    assert drawings > 3 and not faults, f"{drawings} drawings, {faults}"


def _quiet(browser):
    said = browser.complaints()
    assert not said, said
    asked = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert not asked, f"the page fetches {asked}"


def _verdict(browser):
    """Each scenario with a figure has a row, and the first of them are on the first screen."""
    rows, low = browser.run(
        "const all = [...document.querySelectorAll('#top .matrix tbody tr')];"
        "return [all.length, all[0].getBoundingClientRect().bottom]")
    assert rows >= 3 and low < 900, f"{rows} rows, the first ends at {low}"


def _links(browser):
    """Each figure of the verdict and of a chart leads to a row; a click shows it, folded or not."""
    links, dead = browser.run(
        "const all = [...document.querySelectorAll('.matrix td a, .drawing a')];"
        "return [all.length, all.filter((a) => {"
        " const row = document.getElementById(a.getAttribute('href').slice(1));"
        " return !row || !row.closest('tr'); }).length]")
    assert links > 20 and dead == 0, f"{dead} of {links} links lead nowhere"
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = false;")
    browser.run(
        "document.documentElement.style.scrollBehavior = 'auto';"
        "const all = document.querySelectorAll('.matrix td a'); all[all.length - 1].click()")
    wait("the row on the screen", lambda: browser.run(
        "const row = document.getElementById(location.hash.slice(1)).closest('tr');"
        "const box = row.getBoundingClientRect();"
        "return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight"))


def _theme(browser):
    """The switch wins over the system."""
    ground = lambda: browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.colours("light")
    light = ground()
    browser.run("document.querySelector('[data-theme=dark]').click()")
    wait("a dark ground", lambda: ground() != light)
    _drawn(browser)
    browser.colours("dark")
    browser.run("document.querySelector('[data-theme=light]').click()")
    wait("a light ground", lambda: ground() == light)
    browser.run("document.querySelector('[data-theme=auto]').click()")
    wait("the system's ground", lambda: ground() != light)


def _accessible(browser):
    """Headings in order, names on what can be used, one main part, language."""
    faults = browser.run(
        "const faults = [];"
        "let level = 0;"
        "for (const one of document.querySelectorAll('h1, h2, h3, h4, h5')) {"
        " const own = Number(one.tagName[1]);"
        " if (own > level + 1 && own < 5)"
        "  faults.push(`${one.textContent}: h${own} after h${level}`);"
        " level = own; }"
        "for (const one of document.querySelectorAll("
        " 'button, select, a[href], [tabindex=\"0\"]')) {"
        " const name = one.getAttribute('aria-label') || one.textContent || one.closest('label');"
        " if (!name) faults.push(one.outerHTML.slice(0, 80)); }"
        "if (document.querySelectorAll('main').length !== 1) faults.push('main');"
        "if (document.documentElement.lang !== 'en') faults.push('lang');"
        "for (const one of document.querySelectorAll('table.rows')) {"
        " if (!one.querySelector('th[scope=col]') || !one.querySelector('th[scope=row]'))"
        "  faults.push('a table without heads'); }"
        "return faults")
    assert not faults, faults


def _print(browser):
    """On paper the ground is white, the verdict a table, and what is folded left out."""
    browser.colours("dark")
    _cdp(browser, "Emulation.setEmulatedMedia", media="print")
    browser.size(720, 1000)
    try:
        folded, ground, bar, side = browser.run(
            "return [[...document.querySelectorAll('details:not([open])')]"
            ".filter((one) => one.getClientRects().length).length,"
            " getComputedStyle(document.documentElement).colorScheme,"
            " document.querySelector('.topbar').getClientRects().length,"
            " getComputedStyle(document.querySelector('.matrix tr')).display]")
        assert (folded, ground, bar, side) == (0, "light", 0, "table-row"), (
            folded, ground, bar, side)
    finally:
        _cdp(browser, "Emulation.setEmulatedMedia", media="")
        browser.size(*WIDTHS[0][1:])
        browser.colours("light")


def _without_scripts(browser, address):
    """Verdict, charts and tables are there."""
    _cdp(browser, "Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(address)
        rows, charts, headlines = browser.run(
            "return [document.querySelectorAll('table.rows tbody tr').length,"
            " [...document.querySelectorAll('figure.chart')]"
            ".filter((one) => one.getBoundingClientRect().height > 0).length,"
            " document.querySelectorAll('.matrix td svg').length]")
        assert rows > 8 and charts >= 4 and headlines > 5, (rows, charts, headlines)
    finally:
        _cdp(browser, "Emulation.setScriptExecutionDisabled", value=False)


def _hostile(browser):
    """No text became an element, and what a text wants to run did not run."""
    found = browser.run(
        "return [document.querySelectorAll('main b > b, main script').length,"
        " [...document.querySelectorAll('script')].filter((one) => !one.type"
        "  && one.textContent.startsWith('alert')).length]")
    assert found == [0, 0], found


def looks(checks, browser, address, name, pictures):
    for scheme in ["light", "dark"]:
        browser.colours(scheme)
        for width_name, width, height in WIDTHS:
            browser.size(width, height)
            _open(browser, address)
            at = f"{name}, {width_name}, {scheme}"
            checks.check(f"{at}: no wider than the screen", lambda: _narrow(browser))
            checks.check(f"{at}: the charts are drawn", lambda: _drawn(browser))
            checks.check(f"{at}: no complaint, nothing fetched", lambda: _quiet(browser))
            if pictures:
                for place in ["top", "s1", "s2", "conditions"]:
                    browser.run(
                        "document.documentElement.style.scrollBehavior = 'auto';"
                        "document.getElementById(arguments[0]).scrollIntoView()", place)
                    browser.run("return new Promise((done) => setTimeout(done, 300))")
                    file = f"results-{name}-{width_name}-{scheme}-{place}.png"
                    browser.picture(os.path.join(pictures, file))


def scene(checks, browser, pages, name, pictures):
    address = f"file://{os.path.join(pages, name)}.html"
    looks(checks, browser, address, name, pictures)
    browser.colours("light")
    browser.size(*WIDTHS[0][1:])
    _open(browser, address)
    checks.check(f"{name}: the verdict is on the first screen", lambda: _verdict(browser))
    checks.check(f"{name}: figures lead to rows", lambda: _links(browser))
    checks.check(f"{name}: it prints", lambda: _print(browser))
    checks.check(f"{name}: colours are chosen", lambda: _theme(browser))
    checks.check(f"{name}: headings and names", lambda: _accessible(browser))
    checks.check(f"{name}: no text is markup", lambda: _hostile(browser))
    checks.check(f"{name}: no complaint after all this", lambda: _quiet(browser))
    checks.check(f"{name}: it is whole without JavaScript",
                 lambda: _without_scripts(browser, address))


def main():
    pages = os.path.abspath(sys.argv[1])
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    checks = Checks()
    browser = Browser()
    try:
        for name in ["results", "hostile"]:
            try:
                scene(checks, browser, pages, name, pictures)
            except (Failure, OSError) as error:
                checks.failed += 1
                print(f"FAIL {name}: {error}", flush=True)
    finally:
        browser.close()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
