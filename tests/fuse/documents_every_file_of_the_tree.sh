#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmm(5) has an entry with the right mode for each file, directory and link of a mounted tree with
# a program, and each entry is there: a pipe too, which is found by its name and not listed. Tables
# have the columns that the page tells, and its examples work. unit.rmmfs_man_page finds the pipes that the page lacks.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

page=${test_path%/tests/fuse/*}/docs/man/rmm.5
start_daemon
start_program a env RMM_DRIVER=sim
gpu a 0
tell a resource 1 cuda cuda 0 0
tell a resource 2 pool pool 0 1
tell a alloc 0 1000
tell a take 2 1000
tell a track 0 0
tell a borrow 0 100 1
tell a pool 3 # with a report: else there is nothing to open
tell a borrow 3 100 1
fetch_report a 0 "$(cd "$mnt" && echo "proc/${program_pid[a]}"/gpu0/mr/*/map)"
long=$(printf 'x%.0s' $(seq 230))
for i in $(seq 5000); do # until log.1 is there
    tell a log 3 "$i $long"
    if [ $((i % 100)) = 0 ]; then
        stat "$mnt/log" >"$work/looked" # looking takes in what is in the ring
        [ ! -e "$mnt/log.1" ] || break
    fi
done

python3 - "$page" "$mnt" >"$work/wrong" <<'END' || fail "rmm(5): $(cat "$work/wrong")"
import os, re, stat, sys
page, root = sys.argv[1:]

def kind(path):
    """A directory as the headings of the page call it: /rmm/proc/PID/LOCATION/."""
    path = re.sub(r"^proc/[^/]+/", "proc/PID/", path)
    path = re.sub(r"^(proc/PID/)?(gpu\d+|host)/", r"\1LOCATION/", path)
    return "/rmm/" + re.sub(r"/mr/[^/]+/$", "/mr/ID.NAME/", path)

def word(directory, name, mode):
    """An entry of a directory as the page calls it."""
    if directory == "/rmm/by-uuid/":
        return "UUID"
    if not stat.S_ISDIR(mode):
        return name
    name = {"/rmm/proc/": "PID"}.get(directory, "ID.NAME" if directory.endswith("/mr/") else name)
    return re.sub(r"^gpu\d+$", "gpuN", name) + "/"

def about(mode):
    return "link" if stat.S_ISLNK(mode) else "%04o" % stat.S_IMODE(mode)

documented, contents, wrong, headings, entries = {}, {}, [], [], []
for line in open(page):
    entry = re.match(r'\.BR (\S+) " \(([^)]+)\)"$', line)
    if line.startswith((".SS ", ".SH ")):
        headings = [word for word in line.split()[1:] if word.startswith("/rmm/")]
    if line.startswith((".SS ", ".SH ", ".TP")):
        entries = []
    elif entry:
        entries += [(heading, entry[1]) for heading in headings]
        for heading in headings:
            documented[heading, entry[1]] = entry[2]
            contents[heading, entry[1]] = ""
    else:
        for entry in entries:
            contents[entry] += re.sub(r"^\.\w+ ", "", line).replace("\n", " ")

def check_table(path, name):
    """Its first line is #COLUMN COLUMN ..., without a blank, for column -t."""
    with open(path, errors="replace") as file:
        head = file.readline()
    if head.startswith("#") and not head.startswith(("# HELP ", "# TYPE ")):
        if " ".join(head[1:].split()) not in contents[name] or head[1].isspace():
            wrong.append("%s%s has the columns %s, the page says %s" % (*name, head, contents[name]))

found, directories = set(), {}
for path, _, _ in os.walk(root):
    path += "/"
    below = path[len(root) + 1:]
    names = {kind(below)}
    if re.match(r"gpu\d+/$", below):
        names.add("/rmm/gpuN/")
    for name in names:
        directories.setdefault(name, []).append(path)
    for entry in os.listdir(path):
        mode = os.lstat(path + entry).st_mode
        shown = word(kind(below), entry, mode)
        said = [documented[name, shown] for name in names if (name, shown) in documented]
        found.update((name, shown) for name in names)
        if said != [about(mode)]:
            wrong.append("%s%s is (%s), the page says %s" % (below, entry, about(mode), said or "nothing"))
        elif stat.S_ISREG(mode):
            check_table(path + entry, next((name, shown) for name in names if (name, shown) in documented))

for (heading, name), said in sorted(documented.items()):
    if not said.endswith(", pipe"):
        if (heading, name) not in found:
            wrong.append("%s%s is in the page, not in the tree" % (heading, name))
        continue
    for path in directories.get(heading, []):
        try:
            pipe = os.open(path + name, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            wrong.append("%s%s is in the page, and cannot be opened: %s" % (heading, name, error))
            continue
        if about(os.fstat(pipe).st_mode) + ", pipe" != said or name in os.listdir(path):
            wrong.append("%s%s is no unlisted pipe" % (path, name))
        os.close(pipe)

required = {"/rmm/proc/PID/LOCATION/mr/ID.NAME/", "/rmm/proc/PID/trace/", "/rmm/proc/PID/diag/"}
if not required <= set(directories):
    wrong.append("the tree has no %s" % (required - set(directories)))
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
END

sed -n '/^\.SH EXAMPLES/,/^\.fi/p' "$page" | sed -e '/^\./d' -e 's/\\-/-/g' -e "s|/rmm|$mnt|g" >"$work/examples"
[ "$(wc -l <"$work/examples")" -ge 3 ] || fail "the page has $(wc -l <"$work/examples") examples"
while read -r line; do
    bash -c "$line" >"$work/shown" 2>"$work/error" </dev/null || fail "example: $line: $(cat "$work/error")"
    [ -s "$work/shown" ] || [[ $line == echo* ]] || fail "example shows nothing: $line"
done <"$work/examples"
stop_daemon
