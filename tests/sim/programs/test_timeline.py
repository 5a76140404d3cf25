#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rmm-run and rmm-timeline write of a program, or a log, whose truth is known.

usage: test_timeline.py RMM_RUN RMM_TIMELINE PROGRAM DATA
PROGRAM is timeline_program, DATA the folder tests/data.
"""
import collections
import gzip
import html
import html.parser
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import browser

DATA = sys.argv.pop()
PROGRAM = sys.argv.pop()
TIMELINE = sys.argv.pop()
RUN = sys.argv.pop()


def refuse(text):
    raise ValueError(text + " is no JSON")


def check_event(test, event):
    """What the Trace Event Format asks of an event by itself."""
    test.assertIs(type(event["name"]), str)
    for key in ("pid", "tid"):
        test.assertIs(type(event[key]), int)
    test.assertIn(type(event["ts"]), (int, float))
    test.assertGreaterEqual(event["ts"], 0)
    test.assertIs(type(event.get("args", {})), dict)
    phase = event["ph"]
    if phase == "M":
        test.assertIn(event["name"], ("process_name", "thread_name", "thread_sort_index"))
    elif phase == "C":
        test.assertTrue(event["args"])
        test.assertTrue(all(type(figure) is int and figure >= 0
                            for figure in event["args"].values()), event)
    elif phase == "i":
        test.assertIn(event["s"], ("g", "p", "t"))
    else:
        test.assertIn(phase, ("b", "e"))
        test.assertRegex(event["id"], "^0x[0-9a-f]+$")
        test.assertTrue(event["cat"])


def check_trace(test, path):
    """Loads a trace and checks what every trace keeps; the events by phase."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_constant=refuse)
    test.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
    phases = collections.defaultdict(list)
    slices, counters = {}, {}
    for event in trace["traceEvents"]:
        check_event(test, event)
        phases[event["ph"]].append(event)
        if event["ph"] in "be":
            slices.setdefault((event["cat"], event["id"]), []).append(event)
        if event["ph"] == "C":  # a figure stays until the next of its name
            test.assertLessEqual(counters.get(event["name"], 0), event["ts"])
            counters[event["name"]] = event["ts"]
    for pair in slices.values():
        test.assertEqual([event["ph"] for event in pair], ["b", "e"])
        test.assertLessEqual(pair[0]["ts"], pair[1]["ts"])
        for key in ("name", "pid", "tid"):
            test.assertEqual(pair[0][key], pair[1][key])
    named = {event["tid"]: event["args"]["name"] for event in phases["M"]
             if event["name"] == "thread_name"}
    test.assertEqual(len({event["pid"] for event in trace["traceEvents"]}), 1)
    test.assertEqual({event["tid"] for event in trace["traceEvents"]} - set(named), {0})
    return phases


def counter(phases, name):
    return [event["args"]["bytes"] for event in phases["C"] if event["name"] == name]


class Scripts(html.parser.HTMLParser):
    """The scripts of a page, and every address that it names."""

    def __init__(self):
        super().__init__()
        self.scripts, self.addresses, self.open = [], [], False

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self.open = True
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.open = self.open and tag != "script"

    def handle_data(self, data):
        if self.open:
            self.scripts[-1] += data


def check_page(test, path):
    """Loads a page, which needs nothing else; its data."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = Scripts()
    page.feed(text)
    test.assertEqual(page.addresses, [])
    test.assertNotRegex(text, r"https?://|@import|@DATA@|@STYLE@|@SCRIPT@")
    test.assertEqual(len(page.scripts), 2)
    data = json.loads(page.scripts[0])
    for location in data["locations"]:
        held = sum(holder[0] for holder in location["holders"]) + location["others"][0]
        count = sum(holder[1] for holder in location["holders"]) + location["others"][1]
        test.assertEqual(held, location["peak_bytes"])
        test.assertEqual(count, location["peak_count"])
        test.assertEqual(max(location["line"]), location["peak_bytes"])
    total = sum(size for _, size in data["regions"])
    for begin, end, place, size, *_ in data["blocks"]:
        test.assertTrue(0 <= begin <= end <= data["span"])
        test.assertTrue(0 <= place and place + size <= total)
    test.assertEqual(len(data["blocks"]) + data["together"], data["block_count"])
    test.assertEqual(sum(call[3] for call in data["calls"]), data["call_count"])
    return data


def probe(part):
    """A script of the test's that runs in a page."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, f"probe_{part}.js"), encoding="utf-8") as file:
        return file.read()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rmm-timeline.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.runtime = self.path("runtime")
        os.mkdir(self.runtime, 0o700)
        self.out = self.path("out")
        os.mkdir(self.out)
        self.page, self.trace = self.path("out/page.html"), self.path("out/trace.json")

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *command, **more):
        environment = {**os.environ, "RMM_DRIVER": "sim", "RMM_RUNTIME_DIR": self.runtime}
        return subprocess.run(command, env=environment, capture_output=True, text=True,
                              check=False, timeout=300, **more)

    def draw(self, *program, options=()):
        return self.call(RUN, *options, "--timeline", self.page, "--trace", self.trace, "--",
                         *program)

    def look(self, *searches):
        """What a browser shows of the page, also of searches, without an error of a script."""
        probed = self.path("probed.html")
        with open(self.page, encoding="utf-8") as page, \
                open(probed, "w", encoding="utf-8") as file:
            file.write(re.sub(r"<meta http-equiv[^>]*>", "", page.read())
                       .replace("<html ", "<html data-searches=\""
                                f"{html.escape(json.dumps(searches))}\" ", 1)
                       .replace("<head>", f"<head><script>{probe('begin')}</script>", 1)
                       .replace("</body>", "<pre id=\"probe\"></pre>"
                                f"<script>{probe('end')}</script></body>"))
        document = browser.dump(self, probed, self.path("browser"))
        text = re.search(r'<pre id="probe">(.*?)</pre>', document, re.DOTALL).group(1)
        self.assertNotEqual(text, "")
        shown = json.loads(html.unescape(text))
        self.assertEqual(shown["errors"], [])
        return shown

    def assert_refused(self, result, status, line):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, line)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertEqual(os.listdir(self.out), [])


class Programs(Case):
    def test_the_files_have_the_programs_figures(self):
        result = self.draw(PROGRAM, "plain")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        phases = check_trace(self, self.trace)
        # what the program does stands in its source
        self.assertEqual(max(counter(phases, "live bytes, device 0")), 5000)
        self.assertEqual(counter(phases, "live bytes, device 0")[-1], 3000)
        blocks = [event["args"] for event in phases["b"]]
        self.assertEqual(sorted(block["bytes"] for block in blocks),
                         [1000, 1500, 2000, 2000, 3000])
        lives = {block["bytes"]: block for block in blocks}
        self.assertEqual(lives[1000]["first used by"], "fill")
        self.assertEqual(lives[1000]["last used by"], "scale")
        self.assertEqual(lives[3000]["first used by"], "scale")
        self.assertEqual(lives[3000]["freed"], "never")
        self.assertNotIn("freed", lives[1000])
        self.assertNotIn("first used by", lives[1500])
        self.assertEqual({block["location"] for block in blocks}, {"device 0"})
        self.assertEqual([event["name"] for event in phases["i"] if event.get("cat") == "call"],
                         ["fill", "scale", "fill", "memset_async"])
        (peak,) = [event for event in phases["i"] if event["name"] == "peak of device 0"]
        self.assertEqual(peak["args"], {"bytes": 5000, "blocks": 2})

    def test_the_page_says_what_held_the_peak(self):
        self.assertEqual(self.draw(PROGRAM, "plain").returncode, 0)
        data = check_page(self, self.page)
        self.assertEqual((data["block_count"], data["call_count"]), (5, 4))
        (location,) = data["locations"]
        self.assertEqual((location["name"], location["peak_bytes"]), ("device 0", 5000))
        held = [(size, count, data["names"][name], size_class)
                for size, count, _, name, size_class in location["holders"]]
        self.assertEqual(held, [(3000, 1, "scale", 11), (2000, 1, "fill", 10)])

    def test_a_browser_draws_what_the_page_has(self):
        self.assertEqual(self.draw(PROGRAM, "plain").returncode, 0)
        shown = self.look()
        self.assertRegex(shown["title"], r"^/.*rmm_timeline_program \(pid \d+\)$")
        self.assertRegex(shown["summary"], "^5 blocks, 4 launches and copies in [0-9.]+ [mu]?s$")
        self.assertRegex(shown["peak"], "^What held the peak of device 0: 4.9 KiB in 2 blocks at ")
        self.assertEqual(shown["holders"], [
            ["60.0 %", "2.9 KiB", "1", "from 2.0 KiB", "resource 2 (pool)", "scale"],
            ["40.0 %", "2.0 KiB", "1", "from 1.0 KiB", "resource 2 (pool)", "fill"]])
        self.assertEqual(shown["locations"], ["device 0"])
        self.assertEqual(shown["chosen"], "first")  # kernels are known
        self.assertEqual(set(shown["colours"]["first"]), {"fill", "scale", "none"})
        self.assertEqual(shown["ticks"], 4)
        self.assertEqual(shown["drawn"]["map"], 5 + len(check_page(self, self.page)["regions"]))
        self.assertTrue(any(re.match(r"2.9 KiB \(3000\) at 0x[0-9a-f]+\n"
                                     r"resource 2 \(pool\), default stream\n"
                                     r"allocated at .*, not freed\nfirst used by scale\n", tip)
                            for tip in shown["tips"]), shown["tips"])
        self.assertTrue(any(re.match(r"(fill|scale|memset_async)\n", tip)
                            for tip in shown["tips"]), shown["tips"])
        self.assertTrue(any(tip.endswith("\nat most 4.9 KiB") for tip in shown["tips"]))

    def test_a_browser_zooms_into_many_blocks(self):
        self.assertEqual(self.draw(PROGRAM, "many").returncode, 0)
        shown = self.look()
        whole = 2001 + len(check_page(self, self.page)["regions"])
        self.assertEqual((shown["drawn"]["map"], shown["whole"]), (whole, whole))
        self.assertLess(shown["zoomed"], whole)
        self.assertEqual(shown["ticks"], 2000)

    def test_names_cannot_leave_their_string(self):
        self.assertEqual(self.draw(PROGRAM, "names").returncode, 0)
        evil = "</script><b>\"'\\\u00e4?&<!--"
        phases = check_trace(self, self.trace)
        self.assertIn(evil, [event["name"] for event in phases["i"]])
        self.assertIn(evil, check_page(self, self.page)["names"])

    def test_each_stream_has_a_track(self):
        self.assertEqual(self.draw(PROGRAM, "streams").returncode, 0)
        phases = check_trace(self, self.trace)
        tracks = {event["name"]: event["tid"] for event in phases["i"] if event["tid"] > 0}
        self.assertEqual(sorted(tracks), ["on_first", "on_second"])
        self.assertNotEqual(tracks["on_first"], tracks["on_second"])
        named = {event["tid"]: event["args"]["name"] for event in phases["M"]
                 if event["name"] == "thread_name"}
        blocks = {event["args"]["bytes"]: event["tid"] for event in phases["b"]}
        self.assertEqual(tracks["on_first"], blocks[1000])  # by id, although events have handles
        self.assertEqual(tracks["on_second"], blocks[2000])
        self.assertRegex(named[blocks[1000]], r"^stream \d+$")

    def test_a_program_that_was_killed_is_shown(self):
        result = self.draw(PROGRAM, "plain", "kill")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assertEqual(result.stderr, "")
        phases = check_trace(self, self.trace)
        self.assertEqual(max(counter(phases, "live bytes, device 0")), 5000)
        self.assertEqual(check_page(self, self.page)["block_count"], 5)

    def test_the_programs_status_stays(self):
        self.assertEqual(self.draw(PROGRAM, "plain", "7").returncode, 7)

    def test_the_ring_is_gone_afterwards(self):
        self.assertEqual(self.draw(PROGRAM, "plain").returncode, 0)
        self.assertEqual([name for name in os.listdir(self.runtime) if "timeline" in name], [])

    def test_a_program_without_a_block_has_no_timeline(self):
        self.assert_refused(self.draw(PROGRAM, "nothing"), 125,
                            "^rmm-run: no timeline: nothing was recorded: the program allocated no "
                            "block$")

    def test_a_full_ring_shows_the_end_and_says_what_is_missing(self):
        self.assertEqual(
            self.draw(PROGRAM, "many", options=["--timeline-events", "100"]).returncode, 0)
        phases = check_trace(self, self.trace)
        data = check_page(self, self.page)
        # 2000 rounds of an allocation, a launch and a free, beside one block of 1 MiB
        self.assertEqual(data["note"], "begins late: the first 3901 events were replaced by "
                         "newer ones. ")
        self.assertEqual(data["call_count"] + data["block_count"], 99 + 1)
        self.assertEqual(max(counter(phases, "live bytes, device 0")), (1 << 20) + 256 + 1999)
        self.assertEqual(data["locations"][0]["peak_bytes"], (1 << 20) + 256 + 1999)

    def test_without_room_the_ring_is_smaller(self):
        result = self.in_tmpfs(self.runtime, "6m", RUN, "--trace", self.trace, "--", PROGRAM,
                               "plain")
        self.assertEqual(result.returncode, 0, result.stderr)
        phases = check_trace(self, self.trace)
        self.assertEqual(max(counter(phases, "live bytes, device 0")), 5000)

    def test_a_full_disk_leaves_nothing(self):
        small = self.path("small")
        os.mkdir(small)
        result = self.in_tmpfs(small, "16k", "sh", "-c",
                               f"{RUN} --timeline {small}/page --trace {small}/trace -- "
                               f"{PROGRAM} plain; echo $?; ls -A {small}")
        self.assertEqual(result.stdout, "125\ntrace\n", result.stderr)
        self.assertEqual(result.stderr, f"rmm-run: --timeline: cannot write {small}/page: "
                         "No space left on device\n")

    def in_tmpfs(self, place, size, *command):
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("needs a mount namespace")
        return self.call(*unshare, "sh", "-c",
                         f'mount -t tmpfs -o size={size},mode=700 none {place} && exec "$@"',
                         "sh", *command)

    def test_what_recorded_nothing_is_an_error(self):
        self.assert_refused(
            self.draw("/bin/true"), 125,
            "^rmm-run: no timeline: nothing was recorded: the program left no segment")

    def test_what_cannot_be_written_is_said_before_the_program_runs(self):
        touched = self.path("touched")
        self.trace = "/proc/nowhere/trace"
        self.assert_refused(
            self.draw("/usr/bin/touch", touched), 125,
            "^rmm-run: --trace: cannot write /proc/nowhere/trace: No such file or directory$")
        self.assertFalse(os.path.exists(touched))
        self.trace = self.out
        self.assert_refused(self.draw("/bin/true"), 125, "^rmm-run: --trace: cannot write .*: "
                            "Is a directory$")

    def test_a_program_that_cannot_run_leaves_nothing(self):
        self.assert_refused(self.draw("/proc/nowhere"), 127, "^rmm-run: cannot run /proc/nowhere")

    def test_bad_numbers_of_events_are_refused(self):
        for number in ("0", "15", "4194305", "many"):
            self.assert_refused(
                self.draw("/bin/true", options=["--timeline-events", number]), 2,
                f"^rmm-run: --timeline-events: \"{number}\" is not a number of events from 16 to "
                "4194304$")

    def test_a_file_that_was_there_stays_if_there_is_no_new_one(self):
        with open(self.page, "w", encoding="utf-8") as file:
            file.write("old")
        self.assertEqual(self.draw("/bin/true").returncode, 125)
        with open(self.page, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")


class Logs(Case):
    def show(self, log, *options, **more):
        return self.call(TIMELINE, "--timeline", self.page, "--trace", self.trace, *options, log,
                         **more)

    def write(self, rows):
        log = self.path("log.csv.gz")
        with gzip.open(log, "wt", encoding="utf-8") as file:
            file.write("Thread,Time,Action,Pointer,Size,Stream\n")
            file.writelines(rows)
        return log

    def test_a_small_log_has_its_figures(self):
        log = self.write([
            "1,23:59:59.999999,allocate,0x1000,1000,0\n",
            "1,00:00:00.000001,allocate,0x2000,500,0xabc\n",
            "2,00:00:00.000001,free,0x1000,1000,0\n",  # before what has the same time
            "2,00:00:00.000001,allocate,0x1000,700,0\n",
            "1,00:00:00.000003,free,0x2000,500,0xabc\n"])
        result = self.show(log)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        phases = check_trace(self, self.trace)
        self.assertEqual(max(counter(phases, "live bytes, device 0")), 1500)
        self.assertEqual([(event["ts"], event["args"]["bytes"]) for event in phases["b"]],
                         [(0, 1000), (2, 500), (2.002, 700)])
        self.assertEqual([event["ts"] for event in phases["e"]], [2.001, 4, 4])  # the last is left
        data = check_page(self, self.page)
        self.assertEqual(data["streams"], ["default stream", "stream 0xabc"])
        self.assertEqual(data["regions"], [["0x1000", 0x2000 + 500 - 0x1000]])

    def test_a_browser_paints_each_block_at_its_time_and_address(self):
        self.assertEqual(self.show(self.write([
            "1,10:00:00.000000,allocate,0x10000,1000,0\n",
            "1,10:00:00.000004,allocate,0x10400,3000,0\n",
            "1,10:00:00.000006,free,0x10000,1000,0\n",
            "1,10:00:00.000008,free,0x10400,3000,0\n",
            "1,10:00:00.000009,allocate,0x10000,100,0\n",
            "1,10:00:00.000012,free,0x10000,100,0\n"])).returncode, 0)
        shown = self.look("log", "0x10400", "0x10bb8", "nothing")
        self.assertEqual(set(shown["colours"]["size"]),
                         {"from 512 bytes", "from 2.0 KiB", "from 64 bytes"})
        # The axes: round numbers, from the first to the last; sizes of two powers.
        self.assertEqual(shown["chosen"], "size")
        for axis in ("axis", "map-axis"):
            self.assertEqual(shown["scales"][axis], [f"{i} us" for i in range(0, 13, 2)])
        self.assertEqual(shown["scales"]["line-scale"], ["0", "2 KiB", "4 KiB"])
        self.assertIn("2 KiB", shown["scales"]["map-scale"])
        # A search leaves what it finds as it is, and the rest pale.
        found = {text: (count, [centre[3] for centre in centres])
                 for text, (count, centres) in shown["searches"].items()}
        self.assertEqual(found["log"], ("3 of 3 blocks, 0 of 0 launches", [255] * 3))
        self.assertEqual(found["0x10400"][0], "1 of 3 blocks, 0 of 0 launches")
        self.assertEqual([alpha == 255 for alpha in found["0x10400"][1]], [False, True, False])
        self.assertEqual(found["0x10bb8"], found["0x10400"])  # an address inside of it
        self.assertEqual(found["nothing"][0], "0 of 3 blocks, 0 of 0 launches")
        self.assertEqual(len(set(shown["colours"]["size"].values())), 3)
        for centre, size in zip(shown["centres"],
                                ["from 512 bytes", "from 2.0 KiB", "from 64 bytes"], strict=True):
            self.assertEqual(f"rgb({centre[0]}, {centre[1]}, {centre[2]})",
                             shown["colours"]["size"][size])
            self.assertEqual(centre[3], 255)
        self.assertEqual(shown["free"][3], 0)

    def test_a_real_log_has_its_peak(self):
        result = self.show(os.path.join(DATA, "resnet_train.csv.gz"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        phases = check_trace(self, self.trace)
        self.assertEqual(max(counter(phases, "live bytes, device 0")), 5648896016)
        self.assertEqual(check_page(self, self.page)["locations"][0]["peak_bytes"], 5648896016)

    def test_a_huge_log_makes_a_page_of_bounded_size(self):
        numbers, live, rows, clock, most = random.Random(1), {}, [], 0, 0
        for step in range(90000):
            clock += numbers.randrange(20)
            time = f"{clock // 3600000000:02}:{clock // 60000000 % 60:02}:" \
                   f"{clock // 1000000 % 60:02}.{clock % 1000000:06}"
            if len(live) > 500 and numbers.random() < 0.5:
                address = numbers.choice(list(live)[:500])
                rows.append(f"1,{time},free,{address:#x},{live.pop(address)},0\n")
                continue
            address = 0x7f0000000000 + step * 4096 * (1 if step % 100 else 10000)
            live[address] = numbers.randrange(1, 4096)
            most = max(most, sum(live.values())) if step % 1000 == 0 else most
            rows.append(f"1,{time},allocate,{address:#x},{live[address]},0\n")
        result = self.show(self.write(rows))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        data = check_page(self, self.page)
        self.assertEqual(len(data["blocks"]), 20000)
        self.assertLessEqual(len(data["regions"]), 1000)
        self.assertEqual(len(data["grid"]), 2 * data["columns"] * data["rows"])
        self.assertRegex(data["grid"], "[1-9a-f]")
        self.assertGreater(self.look()["drawn"]["map"], 20000)
        self.assertLess(os.path.getsize(self.page), 6000000)
        self.assertGreaterEqual(data["locations"][0]["peak_bytes"], most)
        check_trace(self, self.trace)

    def test_rows_that_cannot_be_read_are_told(self):
        log = self.write(["1,10:00:00,allocate,0x1000,10,0\n", "1,10:00:00,free,0x9000,1,0\n"])
        result = self.show(log)
        self.assertEqual(result.returncode, 0)
        self.assertIn("free of an address that is not allocated", result.stderr)
        self.assertIn("1 rows of the log are not shown", check_page(self, self.page)["note"])
        for path in (self.page, self.trace):
            os.unlink(path)
        result = self.show(log, "--strict")
        self.assert_refused(result, 1, "free of an address that is not allocated")

    def test_what_is_no_log_is_an_error(self):
        self.assert_refused(self.show("/proc/nowhere"), 1, "cannot read /proc/nowhere")
        self.assert_refused(self.show(self.write([])), 1, "the log has no operation")
        self.assert_refused(self.show(self.write(["junk\n"] * 30)), 1, "not an allocation log")

    def test_what_cannot_be_written_leaves_nothing(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        log = self.write(["1,10:00:00,allocate,0x1000,10,0\n"] +
                         [f"1,10:00:00,allocate,{i:#x},10,0\n" for i in range(8192, 8292)])
        result = self.show(log, preexec_fn=limit)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("cannot write"), 2)
        self.assertEqual(os.listdir(self.out), [])

    def test_a_device_is_written_to_as_it_is(self):
        log = self.write(["1,10:00:00,allocate,0x1000,10,0\n"])
        result = self.call(TIMELINE, "--trace", "/dev/stdout", log)
        self.assertEqual(len([event for event in json.loads(result.stdout)["traceEvents"]
                              if event["ph"] == "b"]), 1)
        result = self.call(TIMELINE, "--trace", "/dev/full", log)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "^rmm-timeline: --trace: cannot write /dev/full: No space")

    def test_a_link_stays_a_link(self):
        target = self.path("target")
        os.symlink(target, self.trace)
        with open(target, "w", encoding="utf-8") as file:
            file.write("old")
        self.assertEqual(self.show(self.write(
            ["1,10:00:00,allocate,0x1000,10,0\n"])).returncode, 0)
        self.assertTrue(os.path.islink(self.trace))
        check_trace(self, target)

    def test_a_snapshot_of_pytorch_is_a_log_too(self):
        result = self.show(os.path.join(DATA, "torch", "snapshot.json"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        slices = check_trace(self, self.trace)["b"]
        self.assertEqual([event["args"]["bytes"] for event in slices], [1024, 4096])

    def test_wrong_usage_is_one_line(self):
        for arguments in ([], ["a", "b"], ["a"], ["--trace", "", "a"], ["--other", "a"]):
            result = self.call(TIMELINE, *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, r"\Armm-timeline: [^\n]+\n\Z")
        self.assertIn("more than one log is named", self.call(TIMELINE, "a", "b").stderr)
        self.assertIn("--trace FILE", self.call(TIMELINE, "--help").stdout)
        self.assertRegex(self.call(TIMELINE, "--version").stdout, r"^rmm-timeline \d")


if __name__ == "__main__":
    unittest.main()
