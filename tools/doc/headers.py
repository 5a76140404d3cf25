# SPDX-License-Identifier: Apache-2.0
"""
Reads the public headers: what the man pages and the API reference are made of.

A header of rmm-c is regular: one comment with @file says what all its functions have in common; a
comment before a declaration documents it and those that follow without a comment. This reader knows
that form only, and stops with the place at anything else, so that no function is left out silently.
"""
import dataclasses
import pathlib
import re
import sys

TOKEN = re.compile(
    r"/\*\*(?P<doc>.*?)\*/"
    r"|/\*.*?\*/"
    r"|(?P<struct>typedef struct (?P<struct_name>\w+) \{(?P<fields>.*?)\n\} \w+;)"
    r"|(?P<callback>typedef [\w ]+[ *]\(\*(?P<callback_name>\w+_fn)\)\([^;]*\);)"
    r"|(?P<typedef>typedef [^;{]*;)"
    r"|(?P<enum>typedef enum (?P<enum_name>\w+) \{.*?\n\} \w+;)"
    r"|(?P<define>^#[ \t]*define[ \t]+(?P<macro>\w+(?:\([\w, .]*\))?)(?:\\\n|[^\n])*$)"
    r"|(?P<call>^RMM_API (?P<prototype>[^;]*);)"
    r"|(?P<inline>^static inline (?P<inlined>[^{;]*?)\n\{)",
    re.DOTALL | re.MULTILINE,
)
STATUS_LINE = re.compile(r"^(?:and )?(RMM_(?:OK|ERR_[A-Z_]+))(?:  +|$)(.*)$")


class Malformed(Exception):
    """A header that this reader does not understand."""


@dataclasses.dataclass
class Function:
    """One function of a header."""

    name: str
    prototype: str  # in one line, without RMM_API
    parameters: list  # of (type, name)
    returns: str  # its type
    exported: bool = True


@dataclasses.dataclass
class Group:
    """Functions that share a comment. Their page has the name of the first."""

    functions: list
    text: list  # paragraphs; ("code", lines) or text
    params: dict  # name: text
    result: str  # of @return, without the statuses; "" if there is none
    statuses: list  # of (name, text)

    @property
    def name(self):
        return self.functions[0].name


@dataclasses.dataclass
class Header:
    """One header."""

    path: str  # rmm/pool_resource.h
    text: list
    groups: list = dataclasses.field(default_factory=list)
    structs: dict = dataclasses.field(default_factory=dict)  # name_t: [(declaration, text)]
    callbacks: dict = dataclasses.field(default_factory=dict)  # name: (declaration, comment)
    macros: list = dataclasses.field(default_factory=list)  # ([name(arguments)], comment's lines)


def lines_of(comment):
    """Without the stars; a blank line is \"\"."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip().split("\n")]
    return [line for i, line in enumerate(lines) if line or (0 < i < len(lines) - 1)]


def paragraphs(lines):
    """Runs of lines; those that are indented by three or more are code, or a table."""
    found, block = [], []
    for line in lines + [""]:
        if line:
            block.append(line)
        elif block:
            found += split_code(block)
            block = []
    return found


def split_code(block):
    found = []
    for line in block:
        code = line.startswith("  ")
        if found and isinstance(found[-1], tuple) == code:
            (found[-1][1] if code else found[-1]).append(line)
        else:
            found.append(("code", [line]) if code else [line])
    return [part if isinstance(part, tuple) else " ".join(part) for part in found]


def cut_tags(lines):
    """(text lines, {param: text}, lines of @return)"""
    text, params, result, into = [], {}, [], None
    for line in lines:
        tag = re.match(r"@(param|return)\s*(.*)", line)
        if tag and tag[1] == "param":
            name, _, rest = tag[2].partition(" ")
            params[name] = [rest.strip()]
            into = params[name]
        elif tag:
            into = result
            into.append(tag[2])
        elif into is None:
            text.append(line)
        else:
            into.append(line)
    joined = {name: " ".join(part.strip() for part in parts) for name, parts in params.items()}
    return text, joined, result


def cut_statuses(lines):
    """(sentence, [(status, text)]) of the lines of @return."""
    sentence, statuses = [], []
    for line in (part.strip() for part in lines):
        found = STATUS_LINE.match(line)
        if found and statuses or found and not line.startswith("RMM_OK"):
            statuses.append([found[1], found[2]])
        elif re.fullmatch(r"(RMM_ERR_[A-Z_]+, )+RMM_ERR_[A-Z_]+", line):
            statuses += [[name, ""] for name in line.split(", ")]
        elif line.startswith("and"):
            statuses.append(["", line])
        elif statuses and line:
            statuses[-1][1] = f"{statuses[-1][1]} {line}".strip()
        elif line:
            sentence.append(line)
    text = " ".join(sentence)
    for name in re.findall(r"RMM_ERR_[A-Z_]+", text):  # named in the sentence
        if not any(name == known for known, _ in statuses):
            statuses.append([name, ""])
    return re.sub(r",? or$", "", text), [tuple(pair) for pair in statuses]


def function_of(prototype, exported, where):
    flat = " ".join(prototype.replace("RMM_NODISCARD", " ").split()).replace("( ", "(")
    found = re.match(r"(?P<returns>.*?[ *])(?P<name>\w+)\((?P<list>.*)\)$", flat)
    if not found:
        raise Malformed(f"{where}: no function: {flat}")
    parameters = []
    for part in found["list"].split(","):
        named = re.match(r"\s*(.*?)(\w+)(\[\w*\])?$", part)
        if part.strip() != "void":
            if not named or not named[1].strip():
                raise Malformed(f"{where}: no parameter: {part}")
            parameters.append((named[1].strip(), named[2]))
    return Function(found["name"], flat, parameters, found["returns"].strip(), exported)


def fields_of(text):
    """[(declaration, comment)] of a struct; a comment is before its field or behind it."""
    found, pending = [], ""
    pattern = re.compile(r"/\*\*<?(?P<doc>.*?)\*/|/\*.*?\*/|(?P<field>[^;/]+);", re.DOTALL)
    for token in pattern.finditer(text):
        if token["field"]:
            found.append([" ".join(token["field"].split()), pending])
            pending = ""
        elif token["doc"] and token[0].startswith("/**<"):
            found[-1][1] = " ".join(lines_of(token["doc"]))
        elif token["doc"]:
            pending = " ".join(lines_of(token["doc"]))
    return [tuple(field) for field in found]


def add_functions(header, doc, prototype, exported):
    """With a comment a group of its own, without one in the group before."""
    function = function_of(prototype, exported, header.path)
    if doc is not None:
        text, params, result = cut_tags(lines_of(doc))
        sentence, statuses = cut_statuses(result)
        header.groups.append(Group([function], paragraphs(text), params, sentence, statuses))
    elif header.groups:
        header.groups[-1].functions.append(function)
    else:
        raise Malformed(f"{header.path}: {function.name} has no comment")


def read_header(path, shown):
    """The header as it is shown: rmm/pool_resource.h."""
    text = re.sub(r"\n#if.*|\n#e\w+.*", "\n", path.read_text(encoding="utf-8"))
    header, doc, follows_macro = None, None, False
    for token in TOKEN.finditer(text):
        if token["doc"] is not None:
            if header is None and "@file" in token["doc"]:
                lines = [line for line in lines_of(token["doc"]) if not line.startswith("@file")]
                header = Header(shown, paragraphs(lines))
                continue
            doc = token["doc"]
        elif token["call"] or token["inline"]:
            add_functions(header, doc, token["prototype"] or token["inlined"], bool(token["call"]))
            doc = None
        elif token["struct"]:
            header.structs[token["struct_name"] + "_t"] = fields_of(token["fields"])
            doc = None
        elif token["callback"]:
            if doc is None:
                raise Malformed(f"{shown}: {token['callback_name']} has no comment")
            flat = " ".join(token["callback"].split()).replace("( ", "(")
            header.callbacks[token["callback_name"]] = (flat, lines_of(doc))
            doc = None
        elif token["define"]:
            if doc is not None:
                header.macros.append(([token["macro"]], lines_of(doc)))
            elif follows_macro and token["macro"] not in header.macros[-1][0]:
                header.macros[-1][0].append(token["macro"])  # the comment is that of all of them
            doc, follows_macro = None, doc is not None or follows_macro
            continue
        elif token["typedef"] or token["enum"]:
            doc = None
        follows_macro = False
    return header


def statuses_of(include):
    """{name: meaning} of RMM_STATUS_MAP."""
    text = (include / "rmm/status.h").read_text(encoding="utf-8")
    rows = re.findall(r'X\((\w+), -?\d+, "([^"]*)"\)', text)
    return {f"RMM_{name}": meaning for name, meaning in rows}


def read_headers(include):
    """All public headers of C, sorted; those without a function too."""
    include = pathlib.Path(include)
    paths = sorted((include / "rmm").glob("*.h")) + sorted((include / "rmm/sys").glob("*.h"))
    try:
        return [read_header(path, str(path.relative_to(include))) for path in paths]
    except Malformed as error:
        sys.exit(f"{error}")
