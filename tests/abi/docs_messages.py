#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: docs_messages.py SOURCE

Every message that docs/troubleshooting.md quotes is in the sources: "…" stands for what the
program fills in.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
CONVERSION = r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]"


def texts_of(path):
    """The string literals of a file: adjacent ones joined, what is filled in as one "…"."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'%"\s*PRI\w+\s*("?)', lambda found: "…" if found[1] else '…"', text)
    text = re.sub(r'"\s*"', "", text)
    text = re.sub(r'"\s*[A-Z][A-Z_]+\s*"', "…", text)
    return re.sub(r"…(?:\.?…)+", "…", re.sub(CONVERSION, "…", text))


def main():
    page = (SOURCE / "docs/troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    sources = "\n".join(texts_of(path) for folder in ("lib", "fusefs", "tools")
                        for path in (SOURCE / folder).glob("**/*.c"))
    wrong = [message for message in messages if message.rstrip("…").strip() not in sources]
    for message in wrong:
        print(f"docs/troubleshooting.md quotes what no source says: {message}")
    print(f"{len(messages)} messages")
    return 1 if wrong or len(messages) < 15 else 0


sys.exit(main())
