# SPDX-License-Identifier: Apache-2.0
"""Finds where a source file can be mutated, and what each mutant reads.

libclang parses the file with the flags of the build. A mutant replaces a range of the text by a
text that contains both versions and chooses between them at run time: (SWITCH ? (new) : (old)).
Only bodies of functions are looked at, and what a macro expands to is left alone.
"""
import collections
import re

from clang import cindex
from clang.cindex import CursorKind as Kind

SWITCH = '\x01'  # in a replacement: the call that says whether the mutant is switched on

# start and end are positions in the text of the file, read as Latin-1.
Point = collections.namedtuple('Point', 'file line start end operator old new replacement')

COMPARISONS = {'==': '!=', '!=': '==', '&&': '||', '||': '&&'}
BOUNDARIES = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}
ARITHMETIC = {'+': '-', '-': '+'}

# Messages and checks of the code itself, leaks of host memory, which LeakSanitizer notices, locks
# that are not taken, which ThreadSanitizer notices, and what does nothing on Linux: a mutant there
# is not worth a test.
IGNORED_CALLS = re.compile(r'log|warn|assert|_check$|prefetch|madvise|complain|perror|abort'
                           r'|(attr|mutex|cond|rwlock)_(init|destroy|setkind_np)'
                           r'|^pthread_mutex_lock$|^(rmm__)?free$'
                           r'|(?<!buffer)(?<!array)(?<!scalar)(?<!resource)(?<!pool)_fini$', re.I)
# Where arguments are in any order, or only a message has them.
SYMMETRIC_CALLS = re.compile(r'^rmm__error|calloc$|reallocarray$|same|equal|min$|max$|overlap'
                             r'|memcmp|str.*cmp|_overflow$|saturat')
UNDOING_CALLS = re.compile(r'unlock|release|dealloc|free|fini|destroy|close|unmap|unregister|remove'
                           r'|decrement|_sub$|undo|_end$|restore|signal|broadcast')
# Functions that spread keys, well or badly, and those that walk a structure in a debug build.
HASH = re.compile(r'hash|^mix$')
CHECK = re.compile(r'_check$')
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
             Kind.FUNCTION_TEMPLATE, Kind.CONVERSION_FUNCTION}
# Constant expressions, and what is not evaluated.
CONSTANT = {Kind.CXX_UNARY_EXPR, Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.STRUCT_DECL,
            Kind.GENERIC_SELECTION_EXPR}
STATEMENTS = {Kind.CALL_EXPR, Kind.UNARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR}


def one_line(text):
    """The text on one line: a file keeps the lines it had, so that messages name the right one."""
    return re.sub(r'\s*\n\s*', ' ', text)


def has_no_boundary(text):
    """Of "fd >= 0" and "fd < 0", because the tests do not run without a standard input; and of two
    moments, which are never the same nanosecond."""
    return re.search(r'fd(\[\w+\])? (<|>=) 0$|_ns\b', text) is not None


class Finder:
    def __init__(self, path, name, flags):
        with open(path, encoding='latin-1', newline='') as file:
            self.text = file.read()
        self.name, self.points, self.clamps = name, [], set()
        unit = cindex.Index.create().parse(
            str(path), args=flags,
            options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        macros = []
        for cursor in unit.cursor.get_children():
            if cursor.location.file is None or cursor.location.file.name != str(path):
                continue
            if cursor.kind == Kind.MACRO_INSTANTIATION:
                macros.append((cursor.extent.start.offset, cursor.extent.end.offset))
            elif not cursor.kind.is_preprocessing():
                self.macros = macros  # all of them come first
                self.visit_declaration(cursor)

    # Ranges

    def range_of(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def is_written(self, cursor):
        """False if a macro expands to it, or it cannot be put on a line."""
        start, end = self.range_of(cursor)
        text = self.text[start:end]
        return (text != '' and '//' not in text and '\n#' not in text and '\\\n' not in text
                and not any(first <= start and end <= last for first, last in self.macros))

    def slice(self, cursor):
        start, end = self.range_of(cursor)
        return self.text[start:end]

    def add(self, operator, start, end, new, replacement):
        line = self.text.count('\n', 0, start) + 1
        self.points.append(Point(self.name, line, start, end, operator,
                                 one_line(self.text[start:end]), one_line(new), replacement))

    def add_expression(self, operator, cursor, new):
        start, end = self.range_of(cursor)
        new = one_line(new)
        self.add(operator, start, end, new, f'({SWITCH} ? ({new}) : ({self.text[start:end]}))')

    # The tree

    def visit_declaration(self, cursor):
        children = list(cursor.get_children())
        if cursor.kind in FUNCTIONS:
            body = children[-1] if children else None
            result = cursor.result_type.get_canonical().spelling
            if HASH.search(cursor.spelling) or (CHECK.search(cursor.spelling)
                                                and result == '_Bool'):
                return
            if body is not None and body.kind == Kind.COMPOUND_STMT:
                head = self.text[cursor.extent.start.offset:body.extent.start.offset]
                if 'constexpr' not in head:
                    self.visit(body)
        elif cursor.kind in (Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.CLASS_DECL, Kind.STRUCT_DECL,
                             Kind.CLASS_TEMPLATE, Kind.UNEXPOSED_DECL):
            for child in children:
                self.visit_declaration(child)

    def visit(self, cursor):
        children = list(cursor.get_children())
        kind = cursor.kind
        if kind in CONSTANT or self.slice(cursor) == '{0}':
            return
        if kind == Kind.CALL_EXPR and IGNORED_CALLS.search(cursor.spelling):
            return
        if kind == Kind.VAR_DECL:
            if cursor.storage_class == cindex.StorageClass.STATIC:
                return
            if cursor.type.get_array_size() != -1:
                children = [child for child in children if child.kind == Kind.INIT_LIST_EXPR]
        if kind == Kind.CASE_STMT:
            children = children[1:]
        if kind == Kind.CALL_EXPR and cursor.spelling == 'calloc':
            return  # AddressSanitizer notices too few
        if kind == Kind.CALL_EXPR and cursor.spelling == '__builtin_expect':
            children = list(cursor.get_arguments())[:1]
            kind = Kind.PAREN_EXPR
        if kind == Kind.COMPOUND_STMT:
            for child in children:
                self.find_dropped(child)
        elif self.is_written(cursor):
            self.find(cursor, kind, children)
        for child in children:
            self.visit(child)

    def find(self, cursor, kind, children):
        if kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self.find_binary(cursor, *children)
        elif kind == Kind.INTEGER_LITERAL:
            self.find_constant(cursor)
        elif kind in (Kind.IF_STMT, Kind.CONDITIONAL_OPERATOR) and children:
            self.note_clamp(children)
            if children[0].kind.is_expression() and self.is_written(children[0]):
                self.add_expression('negated', children[0], f'!({self.slice(children[0])})')
        elif kind == Kind.CALL_EXPR:
            self.find_swapped(cursor)

    def note_clamp(self, children):
        """A minimum or maximum, as "a < b ? a : b" or "if (a > b) { a = b; }", a difference down to
        0, as "a > b ? a - b : 0", or a sum up to a maximum, as "a > MAX - b ? MAX : a + b": at the
        boundary both results are the same."""
        operands = list(children[0].get_children())
        if children[0].kind != Kind.BINARY_OPERATOR or len(operands) != 2:
            return
        results = children[1:] if len(children) == 3 else re.split(
            ' = |;', self.slice(children[-1]).strip('{} \n'))[:2]
        texts = [result if isinstance(result, str) else self.slice(result) for result in results]
        left, right = map(self.slice, operands)
        most, _, less = right.partition(' - ')
        if set(texts) in ({left, right}, {'0', f'{left} - {right}'}, {'0', f'{right} - {left}'},
                          {most, f'{left} + {less}'}, {most, f'{less} + {left}'}):
            self.clamps.add(self.range_of(children[0]))

    def note_order(self, cursor, left, right):
        """Of "(a > b) - (a < b)": of equals any may come first."""
        if re.fullmatch(r'\((.+) > (.+)\) - \(\1 < \2\)', self.slice(cursor)):
            self.clamps.update(self.range_of(child) for side in (left, right)
                               for child in side.get_children())

    def find_binary(self, cursor, left, right):
        start, end = left.extent.end.offset, right.extent.start.offset
        token = self.text[start:end].strip()
        self.note_order(cursor, left, right)
        for operator, table in (('comparison', COMPARISONS), ('boundary', BOUNDARIES),
                                ('arithmetic', ARITHMETIC)):
            if operator == 'boundary' and (
                    self.range_of(cursor) in self.clamps or has_no_boundary(self.slice(cursor))):
                continue
            if token in table:
                new = f'{self.slice(left)} {table[token]} {self.slice(right)}'
                self.add_expression(operator, cursor, new)

    def find_constant(self, cursor):
        text = self.slice(cursor)
        number = re.fullmatch(r'(0[xX][0-9a-fA-F]{1,15}|[0-9]+)([uUlL]*)', text)
        if number:  # one of 16 digits is a factor of a hash
            new = {'0': '1', '1': '0'}.get(number[1], f'{number[1]}{number[2]} + 1')
            self.add_expression('constant', cursor, new + (number[2] if '+' not in new else ''))

    def find_swapped(self, cursor):
        if SYMMETRIC_CALLS.search(cursor.spelling):
            return
        arguments = list(cursor.get_arguments())
        start, end = self.range_of(cursor)
        for left, right in zip(arguments, arguments[1:]):
            if left is None or right is None or self.slice(left) == self.slice(right):
                continue
            if self.slice(left).startswith('"') and '%' in self.slice(left):
                continue  # a format: the compiler notices
            if left.type.get_canonical().spelling != right.type.get_canonical().spelling:
                continue
            left_start, left_end = self.range_of(left)
            right_start, right_end = self.range_of(right)
            if start <= left_start < left_end < right_start < right_end <= end:
                self.add_expression('swapped', cursor, ''.join((
                    self.text[start:left_start], self.slice(right),
                    self.text[left_end:right_start], self.slice(left), self.text[right_end:end])))

    def find_dropped(self, cursor):
        """A statement of a block that may be left out."""
        start, end = self.range_of(cursor)
        semicolon = re.compile(r'\s*;').match(self.text, end)
        text = self.text[start:end]
        if not semicolon or '//' in text or '\n#' in text or '\\\n' in text:
            return
        call = cursor
        if cursor.kind == Kind.CSTYLE_CAST_EXPR:  # (void)call()
            call = next((child for child in cursor.get_children()
                         if child.kind == Kind.CALL_EXPR), None)
        is_check = text.startswith('RMM_CHECK_ARG(')
        if not is_check and (call is None or not self.is_written(cursor)):
            return
        is_assignment = (cursor.kind == Kind.BINARY_OPERATOR
                         and re.match(r'[^=(]*[^=!<>]=[^=]', text) is not None)
        if not is_check and call.kind not in STATEMENTS and not is_assignment:
            return
        is_call = not is_check and call.kind == Kind.CALL_EXPR
        if is_call and IGNORED_CALLS.search(call.spelling):
            return
        operator = 'lost undo' if is_call and UNDOING_CALLS.search(call.spelling) else 'dropped'
        end = semicolon.end()
        self.add(operator, start, end, '', f'{{ if (!{SWITCH}) {{ {self.text[start:end]} }} }}')


def find_points(path, name, flags):
    return Finder(path, name, flags).points
