# SPDX-License-Identifier: Apache-2.0
"""
What the reference says about each function: the headers, made complete. Every parameter has a text,
every function that returns a status names its statuses; where a comment says "as another function",
they are that function's. Anything that stays open is an error, in one line with its place.
"""
import dataclasses
import re

import headers
import parameters

STATUS = "rmm_status_t"


class Reference:
    """All headers, and what is open in them."""

    def __init__(self, include):
        self.headers = headers.read_headers(include)
        self.meanings = headers.statuses_of(headers.pathlib.Path(include))
        self.group_of = {
            function.name: (header, group)
            for header in self.headers
            for group in header.groups
            for function in group.functions
        }
        self.problems = []
        self.used = set()

    def parameters(self, group):
        """[(name, text)], in the order of the functions."""
        found = {}
        for function in group.functions:
            for _, name in function.parameters:
                text = group.params.get(name) or parameters.text_of(function.name, name, self.used)
                if text is None:
                    self.problems.append(f"{function.name}: nothing says what {name} is")
                found.setdefault(name, text or "")
        for name in group.params:
            if name not in found:
                self.problems.append(f"{group.name}: @param {name} is no parameter")
        return list(found.items())

    def header(self, path):
        return next(header for header in self.headers if header and header.path == path)

    def own_statuses(self, group):
        """[(status, text)] with the general meaning where the comment gives none."""
        return [
            (name, text or (self.meanings[name] if name else "")) for name, text in group.statuses
        ]

    def statuses(self, header, group):
        """(name of the function that they are from or "", statuses)"""
        own = self.own_statuses(group)
        text = " ".join(part for part in group.text if isinstance(part, str))
        said = f"{group.result} {text}"
        named = re.findall(r"\b[Aa]s (rmm_\w+)\(", said)
        if re.search(r"\b[Aa]s (the \w+ )?above\b", said):
            named.append(header.groups[header.groups.index(group) - 1].name)
        source = next((name for name in named if name in self.group_of), "")
        if source and self.group_of[source][1] is not group:
            _, others = self.statuses(*self.group_of[source])
            return source, own + [pair for pair in others if pair[0] not in dict(own)]
        if own:
            return "", own + self.common_statuses(header, own)
        common = self.common_statuses(header)
        if not common:
            self.problems.append(f"{group.name}: nothing says which statuses it returns")
        return "", common

    def common_statuses(self, header, known=()):
        """Those that the comment of the file names for its functions."""
        text = " ".join(part for part in header.text if isinstance(part, str))
        if not re.search(r"Each may return|[Ss]tatuses", text):
            return []
        other = re.search(r"statuses: as (rmm/\w+\.h)", text)
        if other:
            text += " ".join(str(part) for part in self.header(other[1]).text)
        names = dict.fromkeys(re.findall(r"RMM_ERR_[A-Z_]+", text))
        return [(name, self.meanings[name]) for name in names if name not in dict(known)]

    def result(self, header, group):
        """What functions return that return no status."""
        kinds = {function.returns for function in group.functions}
        if group.result or kinds <= {"void", STATUS}:
            return group.result
        text = next(part for part in group.text if isinstance(part, str))
        if len(kinds) == 1 and re.match("The |True |Where ", text):
            return text
        if header.path == "rmm/sim.h" and kinds == {"int"}:
            return "0, or a cudaError_t value."
        self.problems.append(f"{group.name}: nothing says what it returns")
        return ""

    def structs(self, header, group):
        """The structs of this header that the functions take or fill: [(name, fields)]."""
        used = {
            re.sub(r"\bconst\b|[ *]", "", kind)
            for function in group.functions
            for kind, _ in function.parameters
        }
        return [
            (name, fields)
            for name, fields in header.structs.items()
            if name in used and any(text for _, text in fields)
        ]

    def others(self):
        """(header, Other) of each callback type and of the macros that share a comment."""
        for header in self.headers:
            if header is None or not header.groups:
                continue
            for name, (declaration, lines) in header.callbacks.items():
                yield header, other_of([name], [declaration], lines)
            for macros, lines in header.macros:
                names = [macro.split("(")[0] for macro in macros]
                yield header, other_of(names, [f"#define {macro}" for macro in macros], lines)

    def finish(self):
        """Exits if something is open."""
        for key in sorted(set(parameters.TEXTS) - self.used):
            self.problems.append(f"parameters.py: nothing uses {key}")
        if self.problems:
            raise SystemExit("\n".join(self.problems))


@dataclasses.dataclass
class Other:
    """What has a page and is no function: callback types, flags and other macros."""

    names: list
    declarations: list  # one each
    text: list  # paragraphs; ("code", lines) or text
    params: dict
    result: str  # with the statuses, in one paragraph

    @property
    def name(self):
        return self.names[0]


def other_of(names, declarations, lines):
    text, params, result = headers.cut_tags(lines)
    said = " ".join(line.strip() for line in result)
    return Other(names, declarations, headers.paragraphs(text), params, said)


def summary(group):
    """The first sentence, without its full stop."""
    for part in group.text:
        if isinstance(part, str):
            return re.split(r"(?<=[a-z)\]`A-Z0-9])[.:;](?:\s|$)", part, maxsplit=1)[0].rstrip(".")
    return group.result.rstrip(".") or "a type of callback"


def returns_status(group):
    return any(function.returns == STATUS for function in group.functions)
