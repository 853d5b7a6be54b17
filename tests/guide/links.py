#!/usr/bin/env python3
"""Checks that the targets of all links of the built guide exist: files, anchors in them, pictures.

    links.py [BOOK] [MARKDOWN...]

BOOK is the directory that docs/guide/build.sh wrote. In Markdown files only relative links are checked.
Links to other hosts are counted but not requested. Prints a line for each broken link; status 1 if there is one.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Html(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        for name in ("href", "src"):
            if tag != "base" and attrs.get(name):
                self.links.append(attrs[name])


def slug(heading):
    """The anchor of a heading, as the book and GitHub make it."""
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def markdown(text):
    """Anchors and links of a Markdown file, without those in comments, which nobody sees."""
    text = re.sub(r"^(`{3,}).*?^\1|<!--.*?-->", "", text, flags=re.S | re.M)
    anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)", text, re.M)}
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text))
    return anchors, links


class Checker:
    """All pages read so far."""

    def __init__(self):
        self.known, self.wrong, self.followed, self.foreign = {}, [], 0, 0

    def read(self, file):
        """Anchors and links of a file; none if it is not a page."""
        if file not in self.known:
            if file.suffix == ".html":
                page = Html(file.read_text())
                self.known[file] = (page.anchors, page.links)
            elif file.suffix == ".md":
                self.known[file] = markdown(file.read_text())
            else:
                self.known[file] = (set(), [])
        return self.known[file]

    def follow(self, file, link):
        """Whether the target of a link in a file exists."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            self.foreign += parts.scheme in ("http", "https")
            return
        self.followed += 1
        target = file
        if parts.path:
            target = (file.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
        if not target.exists() and not target.with_suffix("").is_dir():
            self.wrong.append(f"{file.name}: {link}: there is no such file")
        elif parts.fragment and target.suffix in (".html", ".md"):
            if unquote(parts.fragment) not in self.read(target)[0]:
                self.wrong.append(f"{file.name}: {link}: there is no such place in {target.name}")


def main():
    """The command."""
    files = []
    for name in sys.argv[1:]:
        path = Path(name).resolve()
        pages = sorted(path.rglob("*.html")) if path.is_dir() else [path]
        files += [page for page in pages if page.name not in ("404.html", "toc.html")]
    checker = Checker()
    for file in files:
        for link in checker.read(file)[1]:
            checker.follow(file, link)
    checker.wrong = list(dict.fromkeys(checker.wrong))
    print(f"{len(files)} pages, {checker.followed} links followed, {checker.foreign} of other machines")
    for wrong in checker.wrong:
        print(wrong)
    sys.exit(1 if checker.wrong or not files else 0)


if __name__ == "__main__":
    main()
