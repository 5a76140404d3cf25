#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clients that connect and say nothing, take nothing, go away, send garbage or endless headers: others
# get whole texts from rmm-exporter, it keeps a bounded number of texts, and at the end it has no more
# descriptors than before. The tree is a plain folder: what is tried is the server.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"
as_user=()

mkdir "$work/tree"
python3 -c 'print("# HELP x y\n# TYPE x gauge"); print("\n".join(f"x{{n=\"{i}\"}} {i}" for i in range(700000)))' \
    >"$work/tree/metrics"
echo '<html></html>' >"$work/tree/index.html"
start_exporter --mount "$work/tree"
cat >"$work/clients.py" <<'END'
import faulthandler
import os
import pathlib
import random
import socket
import sys
import time

port, pid, tree = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
whole = (tree / "metrics").read_bytes()
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
faulthandler.dump_traceback_later(300, exit=True)
deadline = time.time() + 240


def connect(small=False):
    one = socket.socket()
    if small:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(120)
    one.connect(("127.0.0.1", port))
    return one


def read_all(one):
    found = b""
    while part := one.recv(1 << 20):
        found += part
    return found


def ask(request):
    with connect() as one:
        one.sendall(request.replace(b"Host: x", b"Host: x\r\nConnection: close"))
        return read_all(one)


def others_are_served(when):
    head, body = ask(GET).split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200"), (when, head)
    assert body.endswith(whole) and body.count(b"rmm_up 1\n") == 1, (when, len(body))


def descriptors():
    return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


def texts():
    return sum("memfd:" in name for name in descriptors())


def eventually(question, what):
    while not question():
        assert time.time() < deadline, (what, descriptors())
        time.sleep(0.1)


others_are_served("at first")
before = len(descriptors())

# They connect, or begin a request, and say nothing more; more than may be connected at a time.
silent = [connect() for _ in range(900)]
for one in silent[::3]:
    one.sendall(GET[:-2])
others_are_served("900 silent clients")
silent += [connect() for _ in range(200)]
others_are_served("1100 silent clients")
for one in silent:
    one.close()

# They ask, and take nothing. The oldest are disconnected.
slow = []
for i in range(24):
    slow.append(connect(small=True))
    slow[-1].sendall(GET)
    slow[-1].recv(1) # it has the answer
    if i % 8 == 7:
        time.sleep(1.1) # a text is shared no longer than that
        others_are_served(f"{i} slow clients")
    assert texts() <= 11, descriptors() # 8, and those under way
try:
    assert len(read_all(slow[0])) < len(whole), "the oldest has it all"
except ConnectionResetError:
    pass
for one in slow:
    one.close()

# They go away in the middle.
for i in range(300):
    one = connect(small=True)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0") # by a reset
    one.sendall(GET[:random.randrange(len(GET) + 1)] if i % 2 else GET)
    if i % 6 == 0: # whole requests
        one.recv(random.randrange(1, 99999))
    one.close()
others_are_served("clients that went away")

# Endless headers, garbage, two requests at once.
for text in (b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: %s\r\n" % (b"y" * 100) * 10000,
             b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\n\r\n", os.urandom(100000), b"\r\n" * 1000,
             b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
             b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
             b"GET /metrics HTTP/9.9\r\n\r\n"):
    try:
        answer = ask(text)
        assert not answer.startswith(b"HTTP/1.1 200") or b"HTTP/9.9" in text, (text[:50], answer[:90])
    except (ConnectionResetError, BrokenPipeError):
        pass
others_are_served("garbage")
with connect() as one:
    one.sendall(GET + GET.replace(b"Host: x", b"Host: x\r\nConnection: close"))
    assert read_all(one).count(b"rmm_up 1\n") == 2
eventually(lambda: len(descriptors()) <= before and texts() == 0, "descriptors are left")
END
python3 "$work/clients.py" "$port" "$exporter" "$work/tree" || fail "see above"

# A text that is too long, one that becomes longer, a folder, no permission: rmm_up 0, and why.
last() { tail -n 1 "$work/exporter.log"; }
truncate -s 65M "$work/tree/metrics"
metrics_are 0 && last | grep -q "File too large" || fail "too long: $(last)"
rm "$work/tree/metrics"
mkdir "$work/tree/metrics"
metrics_are 0 && last | grep -q "Is a directory" || fail "a folder: $(last)"
stop_exporter
