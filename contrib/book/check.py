"""Opens every page of the book in headless Chromium at two widths.

    check.py target/book [PICTURES]

A page fails that is wider than the screen, reports an error or asks another host for something.
With a folder PICTURES, a screenshot of each is written there. Needs chromium
and chromedriver. Each failure prints a line; the last line has the totals.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "page"))

from webdriver import Browser  # noqa: E402

WIDTHS = (1280, 400)


def problems(browser):
    """The faults of the page that is open."""
    wide, screen = browser.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    if wide > screen:
        yield f"{wide} pixels in {screen}"
    for complaint in browser.complaints():
        yield str(complaint)
    for name in browser.run("return performance.getEntriesByType('resource').map((o) => o.name)"):
        if name.startswith("http"):
            yield f"fetches {name}"
    for name in browser.run(
            "return [...document.images].filter((i) => i.complete && !i.naturalWidth)"
            ".map((i) => i.src)"):
        yield f"has no picture {name}"


def main():
    book = Path(sys.argv[1]).resolve()
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    browser = Browser()
    try:
        for width in WIDTHS:
            browser.size(width, 900)
            for page in sorted(book.glob("**/*.html")):
                if page.name == "404.html":
                    continue  # for a server, with links from its root
                name = page.relative_to(book).as_posix()
                browser.open(page.as_uri())
                found = list(problems(browser))
                for text in found:
                    print(f"{name} at {width}: {text}")
                passed, failed = passed + (not found), failed + bool(found)
                if pictures:
                    shot = name.replace("/", "-").removesuffix(".html")
                    browser.picture(pictures / f"{shot}-{width}.png")
    finally:
        browser.close()
    print(f"{passed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main() > 0)
