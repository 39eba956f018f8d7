"""Hooks of MkDocs for the book.

Pages outside of `docs` come into the book under the path that they have in the repository. Links
are written for a reader of the repository; here they become links of the book, and a link to a
file that does not exist is an error.
"""

import os
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["", "vectors", "cases", "python", "contrib"]
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^\s*```(\w*)")
ITEM = re.compile(r"^\s*([-*]|\d+\.) ")
INLINE = re.compile(r"(?<!</span>)<code>([^<]*)</code>")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def _uri(path):
    """The path in the book of a page of the repository."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/")


def _path(uri):
    """The path in the repository of a page of the book."""
    return f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri


def _outside():
    """The pages of the book that lie outside of `docs`."""
    for folder in FOLDERS:
        found = (ROOT / folder).glob("**/*.md" if folder else "*.md")
        for path in sorted(found):
            name = path.relative_to(ROOT).as_posix()
            if name != "README.md":
                yield name, path


def on_files(files, config):
    for name, path in _outside():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    style = str(ROOT / "contrib/book/book.css")
    files.append(File.generated(config, "assets/book.css", abs_src_path=style))
    return files


def _target(link, page, config, files):
    """A link of a page, for the book."""
    if re.match(r"[a-z]+:", link):
        return link
    path = os.path.normpath(os.path.join(os.path.dirname(_path(page)), link))
    if (ROOT / path / "README.md").is_file():
        path = os.path.join(path, "README.md")
    if not (ROOT / path).is_file():
        raise PluginError(f"{_path(page)}: there is no file {path}")
    uri = _uri(path)
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return os.path.relpath(uri, os.path.dirname(page) or ".")


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    lines = []
    language = None
    for line in markdown.splitlines():
        fence = FENCE.match(line)
        if fence:
            language = None if language is not None else fence[1]
        elif language is None:
            line = LINK.sub(
                lambda m: m[1] + _target(m[2], uri, config, files) + (m[3] or "") + m[4], line)
            before = lines[-1] if lines else ""
            # A list or a table may follow a paragraph at once in CommonMark, and not here.
            begins = ITEM.match(line) and not (ITEM.match(before) or before.startswith(" "))
            begins = begins or line.startswith("|") and not before.startswith("|")
            if begins and before.strip():
                lines.append("")
        elif language == "rust" and (line == "#" or line.startswith("# ")):
            # A line that the compiler sees and a reader does not.
            continue
        lines.append(line)
    return "\n".join(lines)


def on_page_content(html, **_):
    """Options stay whole: a browser breaks a line after each hyphen."""
    option = r'<span class="option">\g<0></span>'
    return INLINE.sub(lambda m: f"<code>{OPTION.sub(option, m[1])}</code>", html)
