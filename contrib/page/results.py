"""Drives the pages of `weir lab report` and, by live.py, of `weir lab serve` in headless Chromium.

    results.py WEIR DATA [PICTURES]

WEIR is the program, DATA the folder with results.json and hostile.json; with a folder PICTURES,
screenshots at three widths, light and dark, are written there. Needs chromium and chromedriver.
Each check prints a line; the last line has the totals.
"""

import os
import subprocess
import sys
import tempfile

import live
from check import WIDTHS, Checks
from webdriver import Browser, Failure, wait

# The middle of an element on the screen, and its size, once it has been brought there.
BOX = (
    "const at = arguments[0].scrollIntoView ? arguments[0] : document.querySelector(arguments[0]);"
    "document.documentElement.style.scrollBehavior = 'auto';"
    "at.scrollIntoView({block: 'center'});"
    "const box = at.getBoundingClientRect();"
    "return [box.left, box.top, box.width, box.height]")

# How many colours the pixels of each chart have, its ground counted.
COLOURS = (
    "return weirLab.charts.map((chart) => {"
    " const canvas = chart.u.ctx.canvas;"
    " const pixels = chart.u.ctx.getImageData(0, 0, canvas.width, canvas.height).data;"
    " const seen = new Set();"
    " for (let at = 0; at < pixels.length; at += 4)"
    "  if (pixels[at + 3]) seen.add((pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]);"
    " return seen.size; })")


def _cdp(browser, command, **parameters):
    return browser._on("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


def _mouse(browser, kind, x, y, **more):
    _cdp(browser, "Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def _open(browser, address):
    browser.open(address)
    wait("the page", lambda: browser.run("return typeof weirLab === 'object'"))


def _narrow(browser):
    wide, screen = browser.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= screen, f"{wide} pixels in {screen}"


def _drawn(browser):
    """Charts have their figures' colours; bars and heat maps have extent."""
    colours = wait("charts with pixels", lambda: browser.run(COLOURS))
    assert min(colours) >= 4, f"a chart has {min(colours)} colours"
    empty = browser.run(
        "return [...document.querySelectorAll('figure.chart .plots')]"
        ".filter((one) => one.getBoundingClientRect().height < 20).length")
    assert empty == 0, f"{empty} figures are empty"
    flat = browser.run(
        "return [...document.querySelectorAll('.bars .barline:not(.published) .fill')]"
        ".filter((one) => one.getBoundingClientRect().width < 1).length")
    assert flat == 0, f"{flat} bars have no length"


def _quiet(browser):
    said = browser.complaints()
    assert not said, said
    asked = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert not asked, f"the page fetches {asked}"


def _scale(browser):
    return browser.run("const x = weirLab.charts[0].u.scales.x; return [x.min, x.max]")


def _zoom(browser):
    """By dragging, by a double click, by buttons and by keys."""
    whole = _scale(browser)
    left, top, width, height = browser.run(BOX, ".plot .u-over")
    y = top + height / 2
    # One mouse button: down, along, up.
    _mouse(browser, "mouseMoved", left + width * 0.3, y)
    _mouse(browser, "mousePressed", left + width * 0.3, y, button="left", buttons=1, clickCount=1)
    _mouse(browser, "mouseMoved", left + width * 0.5, y, button="left", buttons=1)
    _mouse(browser, "mouseMoved", left + width * 0.7, y, button="left", buttons=1)
    _mouse(browser, "mouseReleased", left + width * 0.7, y, button="left", clickCount=1)
    narrower = lambda: _scale(browser)[1] - _scale(browser)[0] < 0.9 * (whole[1] - whole[0])
    wait("a narrower axis after a drag", narrower)
    for count in [1, 2]:
        _mouse(browser, "mousePressed", left + width / 2, y, button="left", buttons=1,
               clickCount=count)
        _mouse(browser, "mouseReleased", left + width / 2, y, button="left", clickCount=count)
    wait("the whole axis after a double click", lambda: _scale(browser) == whole)
    browser.run("document.querySelector('.zoom button').click()")
    wait("a narrower axis after the button", narrower)
    browser.run("document.querySelector('.zoom button:last-child').click()")
    wait("the whole axis after the button", lambda: _scale(browser) == whole)
    for key, condition in [("+", narrower), ("0", lambda: _scale(browser) == whole)]:
        browser.run(
            "document.querySelector('.plot').dispatchEvent("
            "new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)
        wait(f"the axis after {key}", condition)
    browser.run(
        "document.querySelector('.plot').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))")
    wait("words under the cursor", lambda: browser.text(".readout").strip())


def _claims(browser):
    """Each link of a sentence leads to a row; a click shows it, folded or not."""
    links, dead = browser.run(
        "const all = [...document.querySelectorAll('a.claim, a.barline, .heat a')];"
        "return [all.length, all.filter((a) => {"
        " const row = document.getElementById(a.hash.slice(1));"
        " return !row || row.tagName !== 'TR'; }).length]")
    assert links > 20 and dead == 0, f"{dead} of {links} links lead nowhere"
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = false;")
    browser.run(
        "document.documentElement.style.scrollBehavior = 'auto';"
        "const all = document.querySelectorAll('a.claim'); all[all.length - 1].click()")
    wait("the row on the screen", lambda: browser.run(
        "const box = document.getElementById(location.hash.slice(1)).getBoundingClientRect();"
        "return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight"))


def _choices(browser):
    """A line goes and comes with its legend; logarithm and tail draw anew."""
    shows = lambda: browser.run("return weirLab.charts[0].u.series[1].show")
    assert shows()
    browser.run("document.querySelector('.legend button').click()")
    wait("the line to go", lambda: not shows())
    browser.run("document.querySelector('.legend button').click()")
    wait("the line to come", shows)
    pressed = browser.run(
        "const cdf = [...document.querySelectorAll('.controls')].find((one) =>"
        " [...one.children].some((button) => button.textContent === 'Tail'));"
        "cdf.firstChild.click();"
        "return cdf.firstChild.getAttribute('aria-pressed')")
    assert pressed == "true", pressed
    _drawn(browser)


def _theme(browser):
    """The switch wins over the system, and charts follow."""
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


def _without_scripts(browser, address):
    """The tables are there, the places of the charts are not."""
    _cdp(browser, "Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(address)
        rows, charts = browser.run(
            "return [document.querySelectorAll('table.rows tbody tr').length,"
            " [...document.querySelectorAll('figure.chart')]"
            ".filter((one) => one.getBoundingClientRect().height > 0).length]")
        assert rows > 20 and charts == 0, f"{rows} rows, {charts} charts"
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
                for place in ["top", "summary", "s1", "s2", "conditions"]:
                    browser.run(
                        "document.documentElement.style.scrollBehavior = 'auto';"
                        "document.getElementById(arguments[0]).scrollIntoView()", place)
                    browser.run("return new Promise((done) => setTimeout(done, 300))")
                    file = f"results-{name}-{width_name}-{scheme}-{place}.png"
                    browser.picture(os.path.join(pictures, file))


def scene(checks, browser, weir, data, name, pictures):
    with tempfile.TemporaryDirectory(prefix="weir-results.") as folder:
        page = os.path.join(folder, "report.html")
        subprocess.run(
            [weir, "lab", "report", os.path.join(data, f"{name}.json"), "--out", page], check=True)
        address = f"file://{page}"
        looks(checks, browser, address, name, pictures)
        browser.colours("light")
        browser.size(*WIDTHS[0][1:])
        _open(browser, address)
        checks.check(f"{name}: a chart is zoomed", lambda: _zoom(browser))
        checks.check(f"{name}: claims lead to rows", lambda: _claims(browser))
        checks.check(f"{name}: lines and scales are chosen", lambda: _choices(browser))
        checks.check(f"{name}: colours are chosen", lambda: _theme(browser))
        checks.check(f"{name}: headings and names", lambda: _accessible(browser))
        checks.check(f"{name}: no text is markup", lambda: _hostile(browser))
        checks.check(f"{name}: no complaint after all this", lambda: _quiet(browser))
        checks.check(f"{name}: tables without JavaScript",
                     lambda: _without_scripts(browser, address))


def main():
    weir, data = os.path.abspath(sys.argv[1]), sys.argv[2]
    pictures = sys.argv[3] if len(sys.argv) > 3 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    checks = Checks()
    browser = Browser()
    try:
        for name in ["results", "hostile"]:
            try:
                scene(checks, browser, weir, data, name, pictures)
            except (Failure, OSError, subprocess.SubprocessError) as error:
                checks.failed += 1
                print(f"FAIL {name}: {error}", flush=True)
        try:
            live.scene(checks, browser, weir, pictures)
        except (Failure, OSError, subprocess.SubprocessError) as error:
            checks.failed += 1
            print(f"FAIL live: {error}", flush=True)
    finally:
        browser.close()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
