#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: installed_links.py PREFIX

Nothing that is installed refers to a file that is not: the links of pages with their anchors, of
the site too if it is there, and the pages that headers and man pages name (docs/pool.md). It tries
itself on each kind of break.
"""
import pathlib
import re
import sys
import tempfile

PAGE = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HTML = re.compile(r'(?:href|src)="([^"]+)"')
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")


def slug(heading):
    """The anchor of a heading, as forges and myst-parser make it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def anchors(text):
    lines = FENCE.sub("", text).splitlines()
    return {slug(line.lstrip("#")) for line in lines if line.startswith("#")}


def broken_links(path, text, pattern):
    for link in pattern.findall(text):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:|//", link) or (path.suffix == ".html" and not target):
            continue
        there = (path.parent / target) if target else path
        if not there.exists():
            yield f"{path}: {link}: no such file"
        elif anchor and there.suffix == ".md":
            if anchor not in anchors(there.read_text(encoding="utf-8")):
                yield f"{path}: {link}: no such heading"


def broken(prefix):
    docs = next(prefix.glob("**/doc/rmm-c"), None)
    if docs is None:
        return ["no pages are installed"]
    wrong = []
    for path in sorted(docs.glob("**/*.md")):
        text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
        wrong += broken_links(path, text, PAGE)
    for path in sorted(docs.glob("**/*.html")):
        wrong += broken_links(path, path.read_text(encoding="utf-8"), HTML)
    others = [*prefix.glob("include/**/*.h*"), *prefix.glob("**/man/man*/*")]
    for path in sorted(file for file in others if file.is_file()):
        for name in sorted(set(NAMED.findall(path.read_text(encoding="utf-8")))):
            if not (docs / name).exists():
                wrong.append(f"{path}: {name}: no such file")
    return wrong


def notices(name, text):
    """Whether one file with this text, beside a page.md with the heading A, is broken."""
    with tempfile.TemporaryDirectory() as folder:
        docs = pathlib.Path(folder) / "share/doc/rmm-c"
        pages = ((docs / "page.md", "# A `b` c\n"), (pathlib.Path(folder) / name, text))
        for path, content in pages:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return len(broken(pathlib.Path(folder)))


def check_itself():
    page = "share/doc/rmm-c/other.md"
    assert notices(page, "[x](page.md) [y](page.md#a-b-c) [z](https://e.x/) `[q](no)`\n") == 0
    assert notices(page, "[x](missing.md)\n") == 1
    assert notices(page, "[x](page.md#b)\n") == 1
    assert notices("share/doc/rmm-c/html/a.html", '<a href="no.html">') == 1
    assert notices("include/rmm/a.h", "see docs/no.md") == 1
    assert notices("share/man/man3/a.3", "see docs/no.md") == 1


check_itself()
found = broken(pathlib.Path(sys.argv[1]))
print("\n".join(found) or "every link leads to an installed file")
sys.exit(1 if found else 0)
