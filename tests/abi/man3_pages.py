#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: man3_pages.py SOURCE PREFIX LIBRARY...

Every function that the libraries export has an installed man page, and so has every callback type,
every flag, and every struct that a function takes. The page of a function has its prototype, says
what each parameter is, what it returns, and the statuses if it returns one. There is no page of
anything else, a page names no page that is not there, and groff finds nothing wrong. The generator
refuses a header that leaves one of these open.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, STAGE, LIBRARIES = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
wrong = []


def plain(roff):
    """The text of a page without macros and fonts."""
    text = re.sub(r"\\f.", "", roff).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    return re.sub(r"^\.\w+ ?", "", text, flags=re.MULTILINE)


def exported():
    command = ["nm", "-D", "--defined-only", *LIBRARIES]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in lines]
    names = {word[2].split("@")[0] for word in words if len(word) == 3 and word[1] != "A"}
    return names - {"rmm_sim_driver"}  # for librmm-c alone


def declared_inline():
    paths = (SOURCE / "include/rmm").glob("*.h")
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return set(re.findall(r"^static inline \w[\w ]* \*?(rmm_\w+)\(", text, re.MULTILINE))


def declared_otherwise():
    """(what must have a page, what may have one), read from the headers in another way."""
    must, may = set(), set()
    for path in [*(SOURCE / "include/rmm").glob("*.h"), *(SOURCE / "include/rmm/sys").glob("*.h")]:
        text = path.read_text(encoding="utf-8")
        must |= set(re.findall(r"\(\*(rmm_\w+_fn)\)\(", text))
        must |= set(re.findall(r"#define (RMM_\w+) \(RMM_CAST\(uint\d+_t, 1\) << \d+\)", text))
        may |= set(re.findall(r"^} (rmm_\w+_t);", text, re.MULTILINE))
        may |= set(re.findall(r"^ *# *define (RMM_\w+)", text, re.MULTILINE))
        must |= {name for name in may if name.endswith("_options_t")}
    return must, may


def sections(text):
    parts = re.split(r"^\.SH (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_function(name, parts):
    flat = " ".join(plain(parts["SYNOPSIS"]).split())
    found = re.search(rf"([\w ]+?)[ *]+{name}\((.*?)\);", flat)
    if not found:
        wrong.append(f"{name}: its page has no prototype")
        return
    for parameter in found[2].split(","):
        word = re.search(r"(\w+)(\[\d*\])?\s*$", parameter)
        if word and word[1] != "void" and not re.search(
                rf"^\.TP\n\\fB{word[1]}\\fP\n\S", parts.get("PARAMETERS", ""), re.MULTILINE):
            wrong.append(f"{name}: its page does not say what {word[1]} is")
    result = plain(parts.get("RETURN VALUE", "")).strip()
    returns_nothing = found[1].split()[-1:] == ["void"] and "*" not in flat[:flat.index(name)][-2:]
    if not result or (result == "Nothing." and not returns_nothing):
        wrong.append(f"{name}: its page does not say what it returns")
    if "rmm_status_t" in found[1] and not re.search("RMM_ERR_", result):
        wrong.append(f"{name}: its page names no status")


def check_page(folder, path, names):
    text = path.read_text(encoding="utf-8")
    if text.startswith(".so "):
        target = folder / pathlib.Path(text.split()[1]).name
        if target.exists() and f"\\fB{path.stem}\\fP" not in text:
            text = target.read_text(encoding="utf-8")
    parts = sections(text)
    if path.stem in names:
        check_function(path.stem, parts)
    elif not parts.get("DESCRIPTION", "").strip() or path.stem not in plain(text):
        wrong.append(f"{path.name} says nothing of {path.stem}")
    for other in re.findall(r"\b(rmm[\w-]*)\(3\)", plain(text)):
        if not (folder / f"{other}.3").exists():
            wrong.append(f"{path.name} names {other}(3), which is not there")


def groff(folder):
    if shutil.which("groff") is None:
        sys.exit(77)
    pages = sorted(f"{folder.name}/{path.name}" for path in folder.glob("*.3"))
    for page in pages:
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tascii", page], cwd=folder.parent,
                              capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:
            wrong.append(f"groff: {page}: {done.stderr.strip()}")


def refused(old, new, expected):
    """The generator's answer to the headers with a change."""
    with tempfile.TemporaryDirectory() as work:
        include = pathlib.Path(work) / "include"
        shutil.copytree(SOURCE / "include", include)
        path = include / "rmm/pool_resource.h"
        text = path.read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"pool_resource.h does not say: {old}")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        done = subprocess.run([str(SOURCE / "tools/doc/man3"), str(include), f"{work}/man3", "1"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0 or expected not in done.stderr:
            wrong.append(f"without '{old}' the generator says: {done.stderr.strip() or 'nothing'}")


def main():
    folder = next(STAGE.glob("**/man3"))
    names = exported() | declared_inline()
    pages = {path.stem for path in folder.glob("*.3")}
    must, may = declared_otherwise()
    wrong.extend(f"no page of {name}" for name in sorted((names | must) - pages))
    wrong.extend(f"{name}.3 is of nothing that the headers declare"
                 for name in sorted(pages - names - must - may - {"rmm-c"}))
    for path in sorted(folder.glob("*.3")):
        check_page(folder, path, names)
    groff(folder)
    refused(" * @param options   NULL: all defaults\n", "", "nothing says what options is")
    refused(" * @param mr  a pool\n", " * @param pool  a pool\n", "@param pool is no parameter")
    refused("rmm_pool_get_maximum(const", "rmm_pool_maximum(const rmm_resource_t *over, const",
            "nothing says what over is")
    refused("} rmm_pool_options_t;",
            "} rmm_pool_options_t;\ntypedef void (*rmm_pool_fn)(void *arg);",
            "rmm_pool_fn has no comment")
    print("\n".join(wrong) or f"{len(names)} functions, {len(pages)} pages")
    return 1 if wrong else 0


sys.exit(main())
