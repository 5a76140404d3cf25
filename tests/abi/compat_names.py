#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: compat_names.py SOURCE

docs/compat-names.md says which headers of ours have a name of RMM's: they are there, and have a
word of that name. What it says no header has is in none.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
wrong: list[str] = []


def words(folders: list[pathlib.Path]) -> set[str]:
    """Those of all headers of the folders, and of the C++ layer beneath."""
    found: set[str] = set()
    for folder in [*folders, SOURCE / "include/rmm/cxx"]:
        for file in folder.rglob("*.h*"):
            found.update(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    return found


NEW = [SOURCE / "compat"]
CLASSIC = [SOURCE / "compat-classic", SOURCE / "compat"]
FOLDERS = {"new": [NEW], "classic": [CLASSIC], "both": [NEW, CLASSIC], "no": []}
WORDS = {id(folders): words(folders) for folders in (NEW, CLASSIC)}


def check_row(cells: list[str]) -> None:
    """One row: header or class, names, versions, where."""
    header, names, versions, where = cells
    quoted = re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`]+)`", names)))
    if where == "no":
        wrong.extend(f"{name} ({versions}): no, but a header has it" for name in quoted
                     if name in WORDS[id(CLASSIC)])
    for folders in FOLDERS[where]:
        for name in quoted:
            if name not in WORDS[id(folders)]:
                wrong.append(f"{names} ({versions}): {where}, but {folders[0].name} has no {name}")
        for path in re.findall(r"`(rmm/[^`]+)`", header):
            old = folders is NEW and re.match("rmm/mr/(device|host)/", path)
            if not old and not any((folder / path).is_file() for folder in folders):
                wrong.append(f"{folders[0].name} has no {path}, which is {where}")


page = (SOURCE / "docs/compat-names.md").read_text(encoding="utf-8")
rows = [line.strip("|").split("|") for line in page.splitlines()
        if line.startswith("| ") and "| here |" not in line]
for row in rows:
    check_row([cell.strip() for cell in row])
if len(rows) < 100:
    wrong.append(f"only {len(rows)} rows")
print("\n".join(wrong) or f"{len(rows)} rows of names")
sys.exit(1 if wrong else 0)
