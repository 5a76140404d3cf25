#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# index.html: all of the node that its reader may see, blocks of pools only of the reader's own
# programs, texts of programs as texts, nothing that runs or is loaded.
test_users=2
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"

chmod 1777 "$run"
a=(setpriv --reuid 1001 --regid 1001 --clear-groups --)
b=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
cp "$RMMFS_PROGRAM" "$work/<b>\"&'<script>"
start_daemon -o history=12
RMMFS_PROGRAM="$work/<b>\"&'<script>" start_program theirs "${a[@]}"
gpu theirs 0
tell theirs resource 1 pool '<u>&"' 0 0
tell theirs take 1 1000
tell theirs alloc 0 1000
start_program ours "${b[@]}" env RMM_DRIVER=sim
tell ours pool 0
tell ours borrow 0 1000 3
pool=$(cd "$mnt" && echo "proc/${program_pid[ours]}"/gpu*/mr/*.pool)

page_of() { # USER...: as that user, into $work/page
    "$@" cat "$mnt/index.html" >"$work/page" || fail "$* cannot read index.html"
    [ "$(tail -n 1 "$work/page")" = "</html>" ] || fail "$*: the page has no end"
    ! grep -qE "<(u>|b>\"|link|img|iframe|object)|src=|href=.[^#]| on[a-z]+=| style=" "$work/page" ||
        fail "$*: $(cat "$work/page")"
    [ "$(grep -c "<script" "$work/page")" = 1 ] || fail "$*: $(cat "$work/page")"
}
# Before a report there are figures only; the page asks for none.
page_of env
user_of() { # UID: as the page names it
    awk -F: -v uid="$1" '$3 == uid && !name { name = $1 } END { print name ? name : "uid " uid }' /etc/passwd
}
row_of() { # PROGRAM: its row, without the elements and what is only seen on demand
    sed -n "s|.*<summary class=\"row\"><i></i><b class=\"t\">${program_pid[$1]}</b>|${program_pid[$1]} |p" "$work/page" |
        sed 's|<title>[^<]*</title>||g; s|</[a-z]*>| |g; s|<[^>]*>||g; s| *$||'
}
# The figures are in the row: job, GPU, held, in use, free inside, peak.
row_of theirs | grep -q "^${program_pid[theirs]} &lt;b&gt;&quot;&amp;&#39;&lt;script&gt; $(user_of 1001) .* gpu0 0 B 1000 B 0 B 1000 B$" ||
    fail "the program's row: $(row_of theirs)"
row_of ours | grep -q "^${program_pid[ours]} rmmfs_program nobody " || fail "the user's name: $(row_of ours)"
grep -q "1.&lt;u&gt;&amp;&quot;" "$work/page" || fail "the resource's name: $(cat "$work/page")"
! grep -q "Blocks of" "$work/page" || fail "blocks that nobody reported"

fetch_report ours 0 "$pool/map"
[ "$(stat -c %a "$mnt/index.html")" = 444 ] || fail "mode of index.html"
for reader in env "${b[*]}" "${a[*]}"; do
    # shellcheck disable=SC2086  (words on purpose)
    page_of $reader
    maps=1
    [ "$reader" != "${a[*]}" ] || maps=0
    [ "$(grep -c "Blocks of" "$work/page")" = "$maps" ] || fail "$reader: not $maps maps: $(cat "$work/page")"
    grep -q "<b class=\"t\">${program_pid[ours]}</b>" "$work/page" || fail "$reader does not see B's program"
done

# The histories: of the GPU, its two users, and what control group the test is in.
has_history() { # TABLE
    sed -n "/<table id=\"$1\"/,/<\/table>/p" "$mnt/index.html" | grep -q '<path class="used" d="M[0-9]* 100V[0-9]*H.*120V100"/>'
}
eventually has_history devices
eventually has_history jobs
grep -q '<th class="t past">Last 12 seconds</th>' "$mnt/index.html" || fail "no title of the histories"

# A refusal, and who held the memory then.
page_of env
! grep -q 'id="refusals"' "$work/page" || fail "refusals where nothing was refused"
tell theirs refuse 1 2097152
eventually grep -q '<details id="r1">' "$mnt/index.html"
page_of env
sed -n '/<h2 id="refusals">/,$p' "$work/page" >"$work/refusals"
for text in "<span class=\"t\">${program_pid[theirs]}</span>" '<span title="2097152 bytes">2.0 MiB</span>' \
    '&lt;u&gt;&amp;&quot;' "<td class=\"t\">${program_pid[theirs]}</td>"; do
    grep -qF "$text" "$work/refusals" || fail "no $text in: $(cat "$work/refusals")"
done
grep -q '<a href="#refusals" class="warn"><b>1</b> refused allocation</a>' "$work/page" || fail "no link to the refusal"

# A descriptor that goes from root, or from B, to A gives A nothing.
cat >"$work/hand_on.py" <<'END'
import os, sys
path, uid = sys.argv[1], int(sys.argv[2])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, 0)
fd = os.open(path, os.O_RDONLY)
assert b"Blocks of" in os.pread(fd, 1 << 20, 0)
os.setresuid(0, 0, 0)
os.setresuid(1001, 1001, 1001)
try:
    sys.exit("A reads %r" % os.pread(fd, 100, 0))
except PermissionError:
    pass
assert b"Blocks of" not in open(path, "rb").read()
END
for uid in 0 65534; do
    python3 "$work/hand_on.py" "$mnt/index.html" "$uid" || fail "a descriptor of $uid's"
done

# What the texts are made of, and the page's script in a browser.
cat "$mnt/index.html" >"$work/page"
cat "$mnt/$pool/map.svg" >"$work/map.svg"
python3 "$(dirname "$test_path")/page_checks.py" "$work/page" "$work/map.svg" "$work" || fail "page_checks.py: see above"

# A browser makes of it what is in it: two programs, and no element of a hostile name.
for browser in chromium-headless-shell chromium ""; do
    ! command -v "$browser" >/dev/null || break
done
if [ -n "$browser" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/browser" \
        --dump-dom "file://$mnt/index.html" >"$work/shown" 2>"$work/errors" || fail "$(cat "$work/errors")"
    [ "$(grep -c '<details id="p[0-9]*">' "$work/shown")" = 2 ] || fail "in the browser: $(cat "$work/shown")"
    [ "$(grep -c "<script" "$work/shown")" = 1 ] || fail "in the browser: $(cat "$work/shown")"
    grep -q '<form id="controls">' "$work/shown" || fail "the page's script did not run: $(cat "$work/shown")"
    [ "$(grep -c '<div class="map">' "$work/shown")" = 1 ] || fail "no picture in the browser: $(cat "$work/shown")"
fi

# What ended is shown until it leaves, without its blocks.
end_program ours
eventually grep -q "<em>(exited)</em>" "$mnt/index.html"
page_of env
! grep -q "Blocks of" "$work/page" || fail "blocks of a program that ended"
finish
