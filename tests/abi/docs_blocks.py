#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: docs_blocks.py SOURCE PREFIX

No block of code of a page is unchecked. The test named in RUN runs a block as it stands, and
docs_run.py runs the others as far as they can run here. Whether they run or not, of the others this
test checks: C compiles against the installed headers; a shell command parses, its program or script
exists, has the options that it is given, and takes the RMM_RESOURCE before it; JSON and Python
parse. Output and other text has no tag, or "text".
"""
import ast
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

SOURCE, STAGE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
RUN = {  # (page, tag or its first word): test
    ("README.md", "c"): "abi.readme", ("README.md", "console"): "abi.readme",
    ("docs/extending.md", "diff"): "abi.recipes",
    ("docs/amd.md", "cpp"): "abi.amd", ("docs/amd.md", "sh build"): "abi.amd",
    ("docs/amd.md", "cmake"): "abi.amd",
    ("docs/compat.md", "cpp"): "abi.compat", ("docs/compat.md", "sh build"): "abi.compat",
    ("docs/compat.md", "cmake"): "abi.compat",
    ("docs/compat-classic.md", "cpp"): "abi.compat_classic",
    ("docs/compat-classic.md", "sh build"): "abi.compat_classic",
    ("docs/compat-classic.md", "cmake"): "abi.compat_classic",
    ("docs/containers.md", "sh containers"): "abi.doc_containers",
    ("docs/cxx.md", "cpp"): "abi.cxx_page", ("docs/cxx.md", "sh cxx"): "abi.cxx_page",
    ("docs/monitoring.md", "sh hangs"): "fuse.names_a_daemon_that_hangs",
    ("docs/python.md", "python"): "abi.python", ("docs/python.md", "sh wheel"): "abi.python_wheel",
    ("docs/rapids.md", "python"): "abi.rapids_26.10",
    ("docs/rapids.md", "cpp"): "abi.rapids_26.10, and by-pointer abi.rapids_25.12",
    ("examples/README.md", "sh recipes"): "abi.howto_pages",
    **{(f"docs/howto/{name}.md", "console"): "abi.howto_pages" for name in (
        "ci", "fragmentation", "leak", "limit-a-job", "out-of-memory", "which-process",
        "wrong-use")},
    ("examples/README.md", "sh build"): "abi.examples_page",
    ("examples/README.md", "console"): "abi.examples_page",
}
PRELUDE = """#include <rmm/rmm.h>
#include <stdio.h>
struct point { float x, y; };
extern rmm_resource_t *pool, *counted, *tracked, *logged;
extern rmm_stream_t stream;
extern rmm_status_t status;
extern void step(void);
"""
OUTPUT = ("", "text", "{toctree}")
wrong = []


def blocks(path):
    """[(line, tag, text)]"""
    found, tag, lines = [], None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"\s*```(.*)$", line)
        if fence and tag is None:
            tag, lines, begin = fence[1], [], number
        elif fence:
            found.append((begin, tag, "\n".join(lines) + "\n"))
            tag = None
        elif tag is not None:
            lines.append(line.strip() if line.lstrip().startswith("...") else line)
    return found


def check_c(text):
    if "int main(" in text:  # a program: it needs no more than its own lines
        source = text
    else:
        kept = [line for line in text.splitlines() if line.strip() != "..."]
        outside = [line for line in kept if line.startswith("RMM_DEVICE_ARRAY_DEFINE")]
        inside = [line for line in kept if line not in outside]
        source = "\n".join([PRELUDE, *outside, "void part(void)", "{", *inside, "}", ""])
    flags = ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused",
             "-Wno-unused-result", "-I", str(STAGE / "include"), "-x", "c", "-"]
    done = subprocess.run([os.environ.get("CC", "cc"), *flags], input=source, text=True,
                          capture_output=True, check=False)
    return done.stderr


def check_words(words):
    """The command's program and what it is given."""
    while words and re.match(r"\w+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        if name == "RMM_RESOURCE" and not value.startswith("["):
            done = subprocess.run([STAGE / "bin/rmm-replay", "--resource", value, "--version"],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stderr
    if words and re.match(r"(tools|tests)/", words[0]):
        return "" if (SOURCE / words[0]).exists() else f"there is no {words[0]}"
    if not words or not words[0].startswith("rmm"):
        return ""
    program = STAGE / "bin" / words[0]
    if not program.exists():
        return f"there is no program {words[0]}"
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
    given = words[1:words.index("--")] if "--" in words else words[1:]
    for option in (word.partition("=")[0] for word in given if word.startswith("--")):
        if not re.search(rf"(^|\s){option}\b", shown):
            return f"{words[0]} has no {option}"
    return ""


def check_shell(text):
    text = re.sub(r"<pid>", "1", text)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        return done.stderr
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\|\||[|;]|&(?!\d)|\bdo\b", line):
            try:
                words = shlex.split(re.sub(r"\d?[<>]+&?\S+", " ", part), comments=True)
            except ValueError: # a quote that the split has cut
                continue
            problem = check_words(words)
            if problem:
                return problem
    return ""


def check_console(text):
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return check_shell("\n".join(commands) + "\n")


def check_json(text):
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return ""


def check_python(text):
    try:
        ast.parse(textwrap.dedent(text))
    except SyntaxError as error:
        return str(error)
    return ""


CHECKS = {"c": check_c, "sh": check_shell, "console": check_console, "json": check_json,
          "python": check_python}


def check_page(path, name):
    """How many blocks it has."""
    count = 0
    for line, tag, text in blocks(path):
        word = tag.split(" ")[0]
        count += 1
        is_run = (name, tag) in RUN or (name, word) in RUN and word != "sh"
        if tag in OUTPUT or is_run and (word != "python" or ">>>" in text): # doctest's
            continue
        check = CHECKS.get(tag)
        problem = check(text) if check else f"no test runs a block '{tag}'"
        if problem:
            wrong.append(f"{name}:{line}: {problem.strip()}")
    return count


def check_itself():
    """Each kind of error is found."""
    for tag, text in (("c", "rmm_no_such_call(pool);"), ("sh", "rmm-run --no-such -- x"),
                      ("sh", "RMM_RESOURCE=puddle ./program"), ("sh", "tests/no-such"),
                      ("sh", "if true"), ("json", "{"), ("python", "(")):
        assert CHECKS[tag](text), text
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        page.write_text("```perl\n1;\n```\n", encoding="utf-8")
        check_page(page, "page.md")
    assert wrong.pop() == "page.md:1: no test runs a block 'perl'"


def main():
    check_itself()
    pages = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "examples/README.md",
             *sorted((SOURCE / "docs").rglob("*.md"))]
    total = sum(check_page(path, str(path.relative_to(SOURCE))) for path in pages)
    print("\n".join(wrong) or f"{total} blocks of {len(pages)} pages")
    return 1 if wrong or total < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
