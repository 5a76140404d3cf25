#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rmm-top over programs that run on the simulated GPU: printed, as JSON, as a page, and live in
tmux.

usage: test_top.py RMM_TOP RMM_REPLAY DATA
DATA is the folder tests/data.
"""
import fcntl
import html.parser
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

import browser

DATA = sys.argv.pop()
REPLAY = sys.argv.pop()
TOP = sys.argv.pop()
FORGE = os.path.join(DATA, "..", "fuse", "forge_findings.py")
LOG = os.path.join(DATA, "resnet_train.csv.gz")
# What the log leaves allocated, and its peak.
CURRENT, PEAK = 214499816, 5648896016
UTF8 = "C.UTF-8"


class Programs(unittest.TestCase):
    """Programs that hold memory, in a runtime directory of their own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rmm-top-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.environment = dict(os.environ, RMM_DRIVER="sim", RMM_RUNTIME_DIR=self.runtime,
                                LC_ALL=UTF8, TERM="screen")
        for name in ("NO_COLOR", "COLUMNS", "RMM_PUBLISH"):
            self.environment.pop(name, None)

    def start(self, *options, name=REPLAY):
        """A program that has done its work, and keeps what it has."""
        program = self.run_program(name, *options, "--hold", "600")
        self.wait_for(lambda: self.figures(program.pid) == (CURRENT, PEAK))
        return program

    def start_busy(self):
        """A program that allocates and frees all the time."""
        program = self.run_program(REPLAY, "--repeat", "1000000")
        self.wait_for(lambda: (self.figures(program.pid) or (0, 0))[1] > 0)
        return program

    def run_program(self, name, *options, log=LOG):
        program = subprocess.Popen(
            [name, "--json", *options, log], executable=REPLAY, env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def wait_for(self, condition):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not happen")
            time.sleep(0.05)

    def call(self, *arguments, **changes):
        return subprocess.run([TOP, *arguments], env=dict(self.environment, **changes),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              encoding="utf-8", check=False)

    def json(self):
        result = self.call("--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def figures(self, pid):
        """What a program has now, and its peak; None: it is not listed."""
        for process in self.json()["processes"]:
            if process["pid"] == pid and process["devices"]:
                return (process["devices"][0]["current_bytes"],
                        process["devices"][0]["peak_bytes"])
        return None


class Printed(Programs):
    def test_json_has_devices_programs_and_resources(self):
        programs = [self.start(), self.start()]
        found = self.json()
        self.assertEqual(found["schema_version"], 1)
        self.assertEqual([device["device"] for device in found["devices"]], ["gpu0", "host"])
        self.assertEqual(found["devices"][0]["current_bytes"], 2 * CURRENT)
        self.assertIsNone(found["devices"][0]["peak_bytes"])
        self.assertEqual({process["pid"] for process in found["processes"]},
                         {program.pid for program in programs})
        for process in found["processes"]:
            self.assertEqual(process["uid"], os.getuid())
            self.assertIn("--hold 600", process["command"])
            resources = {each["type"]: each for each in process["resources"]}
            self.assertEqual(resources["pool"]["upstream_id"], resources["cuda"]["instance_id"])
            self.assertEqual(resources["pool"]["current_bytes"], CURRENT)
        for key in ("unreadable_programs", "implausible_programs", "left_out_programs"):
            self.assertEqual(found[key], 0)

    def test_gpus_have_the_numbers_of_the_drivers_list(self):
        listed = os.path.join(self.folder, "gpus")
        for bus, text in (("0000:5E:00.0", "Model: \t Two\nGPU UUID: \t GPU-two\n"),
                          ("0000:3B:00.0", "Model: \t One\nGPU UUID: \t GPU-????\n")):
            os.makedirs(os.path.join(listed, bus))
            with open(os.path.join(listed, bus, "information"), "w", encoding="utf-8") as file:
                file.write(text)
        self.environment["RMM_NVIDIA_PROC"] = listed
        self.start()
        self.assertEqual(
            [(device["device"], device["model"], device["uuid"], device["current_bytes"])
             for device in self.json()["devices"]],
            [("gpu0", "One", None, 0), ("gpu1", "Two", "GPU-two", 0),
             ("gpu2", "Simulated GPU", "SIM-0", CURRENT), ("host", None, None, 0)])

    def test_once_prints_the_page(self):
        program = self.start()
        result = self.call("--once", COLUMNS="120")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "rmm-top  1 program")
        self.assertRegex(lines[2], r"^gpu0     204\.6M     6\.0G .* 80\.0G  \[█▒+ +\]$")
        self.assertRegex(lines[-1], rf"^rmm-replay .* {program.pid} .* 204\.6M     6\.2G     5\.3G")
        self.assertEqual(self.call("--once", "--filter", "none", COLUMNS="120").stdout
                         .splitlines()[-1], "no program matches the filter")
        narrow = self.call("--once", COLUMNS="40").stdout.splitlines()
        self.assertLessEqual(max(map(len, narrow)), 40)
        ascii_lines = self.call("--once", COLUMNS="120", LC_ALL="C").stdout
        self.assertTrue(ascii_lines.isascii())
        self.assertIn("[#=", ascii_lines)

    def test_the_name_is_first_at_each_width(self):
        folder = "/srv/environments/of-somebody-with-a-long-name/training-2026/bin/"
        for name in ("preprocess", "train", "evaluate"):
            self.start(name=folder + name)
        for width, first, last in ((60, "COMMAND", "PEAK"), (80, "COMMAND", "ALLOC/S"),
                                   (120, "COMMAND", "ALLOC/S"), (200, "COMMAND", "LINE")):
            lines = self.call("--once", COLUMNS=str(width)).stdout.splitlines()
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertEqual((lines[-4].split()[0], lines[-4].split()[-1]), (first, last))
            self.assertEqual({line.split()[0] for line in lines[-3:]},
                             {"preprocess", "train", "evaluate"})
            self.assertEqual(width == 200, folder in lines[-1])

    def test_a_page_is_as_wide_as_columns_says(self):
        self.start(name="n" * 200)
        self.assertIn("n" * 200, self.call("--once", COLUMNS="1000").stdout)
        for columns in ("1001", "0", "-1", "wide", ""):
            lines = self.call("--once", COLUMNS=columns).stdout.splitlines()
            self.assertEqual(max(map(len, lines)), 100, columns)

    def test_without_programs_it_says_so(self):
        result = self.call("--once")
        self.assertEqual(result.returncode, 0)
        self.assertIn("no program uses the library now", result.stdout)
        self.assertEqual(self.json()["processes"], [])

    def test_what_ended_is_not_listed(self):
        program = self.start()
        program.kill()
        program.wait()
        self.assertEqual(self.json()["processes"], [])

    def test_files_that_are_no_segment_are_counted(self):
        name = os.path.join(self.runtime, f"{os.getuid()}.0123456789abcdef")
        with open(name, "wb") as file:
            file.write(b"x" * 4096)
        with open(os.path.join(self.runtime, "other"), "wb") as file:
            file.write(b"x" * 4096)
        found = self.json()
        self.assertEqual((found["implausible_programs"], found["unreadable_programs"]), (1, 0))

    @unittest.skipIf(os.getuid() != 0, "only root can become another user")
    def test_programs_of_others_are_counted(self):
        os.chmod(self.folder, 0o755)
        self.start()
        os.chmod(self.runtime, 0o755)
        for name in os.listdir(self.runtime):
            os.chmod(os.path.join(self.runtime, name), 0o600)
        result = subprocess.run(
            [TOP, "--once"], env=dict(self.environment, COLUMNS="120"), user=65534,
            capture_output=True, text=True, encoding="utf-8", check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[0],
                         "rmm-top  0 programs  1 program of another user cannot be read")

    def test_wrong_usage_is_one_line(self):
        for arguments in (["--other"], ["a"], ["--once", "--json"], ["--interval", "0"],
                          ["--interval", "nan"], ["--sort", "none"], [],
                          ["--html"], ["--html", ""], ["--html", "a", "--json"],
                          ["--record", "a", "--once"], ["--record", "a", "--replay", "b"]):
            result = self.call(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertRegex(result.stderr, r"\Armm-top: [^\n]+\n\Z")
        for arguments in (["--filter", "x" * 64], ["--interval", "0.09"], ["--interval", "3601"]):
            self.assertEqual(self.call("--once", *arguments).returncode, 2, arguments)
        for arguments in (["--filter", "x" * 63], ["--interval", "0.1"], ["--interval", "3600"]):
            self.assertEqual(self.call("--once", *arguments).returncode, 0, arguments)
        self.assertIn("use --once", self.call().stderr)
        self.assertIn('unexpected argument "a"; see --help', self.call("a").stderr)
        self.assertIn("--sort COLUMN", self.call("a", "--help").stdout)
        self.assertRegex(self.call("--version").stdout, r"^rmm-top \d")

    def test_what_cannot_be_is_one_line(self):
        result = self.call("--json", RMM_RUNTIME_DIR="/proc/none/none")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Armm-top: [^\n]+\n\Z")
        result = subprocess.run([TOP, "--once", "--replay", "/dev/stdin"], env=self.environment,
                                input="", capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (
            1, "rmm-top: /dev/stdin: a pipe cannot be replayed: it is read twice\n"))
        nowhere = os.path.join(self.folder, "none", "page.html")
        result = self.call("--html", nowhere)
        self.assertEqual((result.returncode, result.stderr), (
            1, f"rmm-top: cannot write {nowhere}: No such file or directory\n"))
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TOP, "--once"], env=self.environment, stdout=full,
                                    stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Armm-top: cannot write to standard output: [^\n]+\n\Z")


class Elements(html.parser.HTMLParser):
    """The elements of a page: name and attributes, the depth of those that are open, and texts."""

    VOID = {"meta"}

    def __init__(self, text):
        super().__init__()
        self.found, self.stack, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)

    def of_class(self, name):
        return [attributes for _, attributes in self.found if attributes.get("class") == name]


class Page(Programs):
    """rmm-top --html."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "node.html")

    def write(self, **changes):
        result = self.call("--html", self.path, **changes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        elements = Elements(text)
        self.assertEqual(elements.stack, [])  # all closed, in their order
        return text, elements

    def write_with_blocks(self):
        """Once more where the program's report came too late, as on a busy machine."""
        def write():
            result = subprocess.run([TOP, "--html", self.path], env=self.environment,
                                    capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            with open(self.path, encoding="utf-8") as file:
                return "Blocks of" in file.read()
        self.wait_for(write)

    def test_it_has_all_that_is_known_and_needs_nothing_else(self):
        program = self.start()
        text, elements = self.write()
        self.assertTrue(text.startswith("<!DOCTYPE html>\n"))
        self.assertLess(len(text), 15000)
        self.assertFalse({"script", "link", "img", "iframe", "object", "base", "form"} &
                         {tag for tag, _ in elements.found})
        for _, attributes in elements.found:
            self.assertFalse({"src", "href", "onload", "onclick"} & set(attributes))
        words = " ".join(" ".join(elements.texts).split())
        self.assertIn(f"{program.pid} ", words)
        self.assertIn("2.pool pool gpu0 1 204.6 MiB 6.2 GiB 5.3 GiB", words)
        self.assertIn(f"{CURRENT} bytes",
                      [attributes.get("title") for _, attributes in elements.found])
        # The GPU, the program and the pool have a bar; what is used is a share of the whole.
        used = [int(bar["width"]) for bar in elements.of_class("used") if "x" in bar]
        self.assertEqual(used, [round(CURRENT / whole * 1000)
                                for whole in (80 << 30, 80 << 30, 6612320256)])

    def test_blocks_of_a_program_that_allocates_are_drawn(self):
        """Once more where the program was at the start of its log, with one block or two."""
        self.start_busy()

        def blocks_are_drawn():
            text, elements = self.write()
            if "Blocks of 2.pool" not in text:
                return False
            self.assertEqual(len(elements.of_class("map")), 1)
            self.assertLess(len(text), 600000)
            return len([tag for tag, attributes in elements.found
                        if tag == "rect" and attributes.get("class") == "used"]) > 10
        self.wait_for(blocks_are_drawn)

    def test_an_earlier_page_stays_where_a_tree_cannot_be_read_again(self):
        """It is read when it is opened, and for the page: then its file is empty."""
        tree = os.path.join(self.folder, "tree")
        os.mkdir(tree)
        with open(os.path.join(tree, "version"), "w", encoding="ascii") as file:
            file.write("1\n")
        pipe = os.path.join(tree, "json")
        os.mkfifo(pipe)
        with open(self.path, "w", encoding="ascii") as file:
            file.write("earlier")
        top = subprocess.Popen([TOP, "--html", self.path, "--mount", tree], env=self.environment,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(top.kill)
        with open(pipe, "w", encoding="ascii") as file:
            file.write('{"schema_version": 1, "devices": [{"device": "host"}], "processes": []}')
        while top.poll() is None:
            try:
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # nobody reads now
                pass
            time.sleep(0.01)
        self.assertEqual((top.returncode, top.communicate()[1]), (1, "rmm-top: json is damaged\n"))
        with open(self.path, encoding="ascii") as file:
            self.assertEqual(file.read(), "earlier")
        self.assertEqual(sorted(os.listdir(self.folder)), ["node.html", "run", "tree"])

    def test_texts_of_programs_stay_texts(self):
        evil = "<script>document.title='x'</script>\"'&amp;<img src=x onerror=alert(1)>\u202e"
        self.start(name=evil)
        text, elements = self.write()
        self.assertEqual([], [tag for tag, _ in elements.found if tag in ("script", "img")])
        self.assertIn(evil.replace("\u202e", "???"), "".join(elements.texts))
        self.assertTrue(text.isascii())

    def test_a_browser_shows_it(self):
        self.start(name="<script>document.title='x'</script>")
        self.start_busy()
        self.write_with_blocks()
        profile = os.path.join(self.folder, "browser")
        document = browser.dump(self, self.path, profile)
        self.assertIn(f"<title>GPU memory of {os.uname().nodename}</title>", document)
        # It lets no script run: so this one measures a copy that may.
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        script = ("<script>for (const row of document.querySelectorAll('details')) {"
                  " row.open = true; } document.body.dataset.bars = JSON.stringify(Array.from("
                  "document.querySelectorAll('svg.bar rect, figure svg'), e => "
                  "e.getBoundingClientRect().width))</script></body>")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(page.replace("</body>", script))
        self.assertNotIn("data-bars", browser.dump(self, self.path, profile))
        copy = re.sub(r"<meta http-equiv[^>]*>", "", page)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(copy.replace("</body>", script))
        document = browser.dump(self, self.path, profile)
        widths = json.loads(re.search(r'data-bars="\[([^"]*)\]"', document)
                            .group(0)[len('data-bars="'):-1])
        self.assertGreater(len(widths), 4)
        self.assertTrue(all(width > 0 for width in widths), widths)
        self.assertGreater(max(widths), 800)  # the picture of the blocks, in 1200 pixels

    def test_many_programs_are_on_it(self):
        for _ in range(6):
            self.start()
        text, elements = self.write()
        programs = [attributes for tag, attributes in elements.found if tag == "details"]
        self.assertEqual(["open" in attributes for attributes in programs], [False] * 6)
        self.assertEqual(text.count("2.pool"), 6)

    @unittest.skipIf(os.getuid() != 0, "only root can become another user")
    def test_another_user_sees_no_blocks(self):
        os.chmod(self.folder, 0o777)
        os.chmod(self.runtime, 0o755)
        self.start_busy()
        for name in os.listdir(self.runtime):
            os.chmod(os.path.join(self.runtime, name), 0o644)
        self.write_with_blocks()
        other = os.path.join(self.folder, "other.html")
        result = subprocess.run([TOP, "--html", other], env=self.environment, user=65534,
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(other, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("Blocks of", text)
        self.assertIn("2.pool", text)

    def test_what_cannot_be_written_leaves_what_was_there(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("before")
        for path in (os.path.join(self.folder, "none", "a.html"), self.folder, "/dev/full"):
            result = self.call("--html", path)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"\Armm-top: cannot write [^\n]+\n\Z")
        result = self.call("--html", self.path, RMM_RUNTIME_DIR="/proc/none")
        self.assertEqual(result.returncode, 1)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "before")
        self.assertEqual(sorted(os.listdir(self.folder)), ["node.html", "run"])


class Bare(Programs):
    """A terminal that only takes what is written."""

    def open(self, rows=24, columns=80, **changes):
        self.ours, theirs = pty.openpty()
        self.resize(rows, columns)
        top = subprocess.Popen([TOP, "--interval", "0.1"], env=dict(self.environment, **changes),
                               stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True)
        self.addCleanup(top.wait)
        self.addCleanup(top.stderr.close)
        self.addCleanup(top.kill)
        os.close(theirs)
        return top

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_end(self, top):
        """Its exit status, and what it says then; the terminal shows all until then."""
        threading.Thread(target=self.read_all, args=[self.ours], daemon=True).start()
        return top.wait(timeout=60), top.stderr.read()

    @staticmethod
    def read_all(descriptor):
        try:
            while os.read(descriptor, 65536):
                pass
        except OSError:  # nobody has the other end any more
            os.close(descriptor)

    def test_it_ends_with_its_terminal(self):
        top = self.open()
        self.assertTrue(os.read(self.ours, 1))  # the first screen
        os.close(self.ours)
        self.assertEqual(top.wait(timeout=60), 0)

    def test_no_size_is_too_small_or_too_large(self):
        for rows, columns, name in ((1, 1, "screen"), (0, 0, "screen"), (2, 40000, "linux"),
                                    (65535, 65535, "screen")):
            top = self.open(rows, columns, TERM=name)
            self.assertTrue(os.read(self.ours, 1))
            os.write(self.ours, b"q")
            self.assertEqual(self.wait_end(top), (0, ""), (rows, columns))

    def wait_shown(self, text):
        """Until the terminal gets this."""
        shown = b""
        while text not in shown:
            self.assertTrue(select.select([self.ours], [], [], 60)[0], text)
            shown += os.read(self.ours, 65536)

    def test_it_follows_every_size(self):
        clear = b"\x1b[H\x1b[J"  # at the begin and for a new size only
        top = self.open()
        self.wait_shown(clear)
        for rows, columns in ((1, 1), (24, 32768), (32768, 80), (65535, 65535), (0, 0), (24, 80)):
            self.resize(rows, columns)
            top.send_signal(signal.SIGWINCH)  # as it would come if this were its session's
            if rows > 0:
                self.wait_shown(clear)
            else:  # not a size: the last one stays, and has room for the help
                os.write(self.ours, b"h")
                self.wait_shown(b"select a row")
            self.assertIsNone(top.poll(), (rows, columns))
        os.write(self.ours, b"hq")
        self.assertEqual(self.wait_end(top), (0, ""))

    def test_it_draws_on_no_printer(self):
        for name in ("dumb", "no-such-terminal", ""):
            top = self.open(TERM=name)
            self.assertEqual(self.wait_end(top), (
                1, f'rmm-top: cannot use the terminal "{name}": set TERM, or use --once\n'))


@unittest.skipIf(shutil.which("tmux") is None, "no tmux")
class Live(Programs):
    """The screen, driven through tmux."""

    def setUp(self):
        super().setUp()
        self.socket = None

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", "-u", *arguments],
                              env=self.environment, capture_output=True, text=True,
                              encoding="utf-8", check=True).stdout

    def open(self, *options, width=100, height=24, user=None, **changes):
        """rmm-top in a shell, which says how it ended."""
        become = f"setpriv --reuid {user} --clear-groups -- " if user is not None else ""
        self.environment.update(changes)
        self.socket = tempfile.mktemp(dir=self.folder)  # one that closes refuses others
        self.errors = os.path.join(self.folder, "errors")
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height),
                  f"{become}'{TOP}' --interval 0.1 {' '.join(options)} 2>'{self.errors}'; "
                  # a killed rmm-top leaves the terminal raw: a new line begins in any column
                  "printf '\\r\\nended with %d' $?; exec sleep 600")
        self.addCleanup(self.close, self.socket)

    def close(self, socket):
        """Kills rmm-top before its terminal goes: that sends SIGCONT, which makes the leak
        checker of a sanitizer, at the end of a program that SIGHUP ended, wait for ever."""
        listed = subprocess.run(["tmux", "-S", socket, "list-panes", "-F", "#{pane_pid}"],
                                check=False, capture_output=True, text=True)
        for pid in listed.stdout.split():
            subprocess.run(["pkill", "-KILL", "-P", pid, "-x", "rmm-top"], check=False)
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False,
                       stderr=subprocess.DEVNULL)

    def quit(self):
        self.keys("q")
        self.wait_text("ended with 0")

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options).rstrip("\n").split("\n")

    def wait_text(self, text, height=None):
        """The screen that has this regular expression, and so many lines."""
        deadline = time.monotonic() + 60
        while True:
            lines = self.screen()
            if re.search(text, "\n".join(lines)) and height in (None, len(lines)):
                return lines
            self.assertLess(time.monotonic(), deadline, f"{text}\n" + "\n".join(lines))
            time.sleep(0.05)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def pid_of_top(self):
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(subprocess.run(["pgrep", "-P", shell, "-x", "rmm-top"], capture_output=True,
                                  text=True, check=True).stdout)

    def test_keys_and_sizes(self):
        program = self.start()
        self.open()
        lines = self.wait_text(rf"{program.pid} .* 204\.6M .* 0$|{program.pid} .* 204\.6M .* 0\n")
        self.assertEqual(lines[0], "rmm-top  1 program")
        self.assertIn("q quit", lines[23])
        self.keys("s")
        self.wait_text(r"\*RESERVED")
        self.keys("Enter")
        lines = self.wait_text("└ 2.pool")
        self.assertRegex("\n".join(lines), "gpu0 .* █+ +▁+\n")
        self.keys("h")
        self.wait_text("sort by the next column")
        self.keys("x")
        self.wait_text("└ 2.pool")
        self.keys("Escape")
        self.wait_text("COMMAND")
        self.keys("/", "nothing")
        self.wait_text("filter: nothing")
        self.wait_text("no program matches")
        self.keys("Escape")
        self.wait_text(str(program.pid))
        self.keys("Space")
        self.wait_text("FROZEN")
        for width, height in ((80, 24), (200, 50), (20, 5)):
            self.resize(width, height)
            lines = self.wait_text(r"(?s)\Armm-top.*\nq quit [^\n]*\Z", height)
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertIn(str(program.pid), "\n".join(lines))
            self.assertTrue([line for line in lines if line.startswith("rmm-replay ")], lines)
        self.quit()

    def test_programs_come_and_are_killed(self):
        first = self.start()
        self.open()
        self.wait_text(f"{first.pid} ")
        second = self.start()
        self.wait_text("2 programs")
        self.keys("Enter")
        lines = self.wait_text("pid ")
        shown = int(re.search(r"pid (\d+)", "\n".join(lines)).group(1))
        (first if shown == first.pid else second).kill()
        self.wait_text("this program has ended")
        self.keys("Escape")
        lines = self.wait_text("1 program$|1 program\n")
        self.assertNotIn(f"{shown} ", "\n".join(lines))
        self.quit()

    def segment(self):
        """That of the only program."""
        found = [name for name in os.listdir(self.runtime)
                 if re.fullmatch(r"\d+\.[0-9a-f]{16}", name)]
        self.assertEqual(len(found), 1)
        return os.path.join(self.runtime, found[0])

    def test_a_program_whose_segment_is_removed_is_not_listed(self):
        program = self.start()
        self.open()
        self.wait_text(f"{program.pid} ")
        os.remove(self.segment())
        self.wait_text("no program uses the library now")
        self.assertIsNone(program.poll())
        self.quit()

    def test_a_program_in_detail(self):
        self.environment["RMM_LOG_LEVEL"] = "debug"
        program = self.start_busy()
        subprocess.run([sys.executable, FORGE, self.segment() + ".diag", "12", "5:1"], check=True)
        self.open(width=120, height=40)
        self.wait_text(f"{program.pid} ")
        self.keys("Enter")
        self.wait_text("└ 2.pool")
        self.keys("Down")
        text = "\n".join(self.wait_text("BLOCKS of 2, 0 s ago .*\n[█▒░]{120}\n"))
        self.assertRegex(text, r"FINDINGS of the diagnosis: 12\n.* by cuMemsetD8Async.* 5 times\n")
        self.assertRegex(text, r"LOG *\n\d\d:\d\d:\d\d (debug|info) ")
        self.wait_text("CURRENT OVER TIME.* ALLOC/S OVER TIME *\ngpu0 .*[▁-█]+ +[▁-█]+\n")
        for width, height in ((80, 24), (200, 50), (30, 8)):
            self.resize(width, height)
            self.wait_text(r"(?s)\Armm-top.*2.pool.*\nq quit [^\n]*\Z", height)
        program.kill()
        self.wait_text("this program has ended")
        self.quit()

    def start_small(self):
        """A program whose pool once had 1 GiB, and that then allocates little, often."""
        log = os.path.join(self.folder, "small.csv")
        with open(log, "w", encoding="utf-8") as file:
            file.write("Thread,Time,Action,Pointer,Size,Stream\n")
            rows = [("allocate", 1, 1 << 30), ("free", 1, 1 << 30)]
            for _ in range(20000):
                rows += [("allocate", 2, 4096), ("free", 2, 4096)]
            for i, (action, address, size) in enumerate(rows):
                second, micro = divmod(i * 5000, 1000000)
                file.write(f"1,00:{second // 60:02}:{second % 60:02}.{micro:06},{action},"
                           f"{address:#x},{size},0x0\n")
        program = self.run_program(REPLAY, "--speed", "1", log=log)
        self.wait_for(lambda: (self.figures(program.pid) or (0, 0))[1] == 1 << 30)
        return program

    def pool(self):
        """The figures of the only program's pool."""
        return [resource for resource in self.json()["processes"][0]["resources"]
                if resource["type"] == "pool"][0]

    def trim_until_it_answers(self):
        """A loaded machine may not run the program within the 0.1 s after which it is withdrawn."""
        for _ in range(20):
            self.keys("t")
            self.wait_text(r"trim 2.pool: return its unused memory\?")
            self.keys("y")
            shown = self.wait_text("2.pool (has returned its unused memory|is not trimmed)")
            if "has returned" in "\n".join(shown):
                return
        self.fail("20 times the program did not allocate within 0.1 s")

    def test_a_peak_is_reset_a_limit_set_a_pool_trimmed(self):
        self.start_small()
        self.open()
        self.wait_text("1 program")
        self.keys("Enter")
        self.wait_text("└ 2.pool")
        self.keys("Down", "p")
        self.wait_text("peak of 2.pool: reset at its next allocation")
        self.wait_for(lambda: self.pool()["peak_bytes"] <= 4096)
        self.assertEqual(self.json()["processes"][0]["devices"][0]["peak_bytes"], 1 << 30)
        self.keys("P")
        self.wait_text("peak of the program on gpu0: reset")
        self.wait_for(lambda: self.json()["processes"][0]["devices"][0]["peak_bytes"] <= 4096)

        self.assertGreaterEqual(self.pool()["reserved_bytes"], 1 << 30)
        self.keys("t")
        self.wait_text(r"trim 2.pool: return its unused memory\?")
        self.keys("n")
        self.wait_text("l limit  t trim")
        self.assertGreaterEqual(self.pool()["reserved_bytes"], 1 << 30)
        self.trim_until_it_answers()
        self.wait_for(lambda: self.pool()["reserved_bytes"] < 1 << 30)

        self.keys("l", "1000x", "Enter")
        self.wait_text('"1000x" is not a limit')
        self.keys("l", "1000", "Enter")  # less than the program takes at once
        self.wait_text("limit of 2.pool: 1000B")
        self.wait_text("limit of 2: 1000B, of the program on its device: max")
        self.wait_for(lambda: self.pool()["oom_count"] > 0)
        self.keys("L", "1GiB", "Enter")
        self.wait_text("limit of 2: 1000B, of the program on its device: 1.0G")
        self.keys("l", "max", "Enter")
        self.wait_text("2.pool has no limit now")
        refused = self.pool()["oom_count"]
        self.wait_for(lambda: self.pool()["current_bytes"] > 0)
        self.assertLessEqual(self.pool()["oom_count"], refused + 5)
        self.quit()

    def test_an_idle_program_is_not_trimmed(self):
        program = self.start()
        self.open()
        self.wait_text("1 program")
        self.keys("Enter", "t", "y")
        self.wait_text(
            "is not trimmed: the program did not allocate within 0.1 s: request withdrawn")
        os.kill(program.pid, signal.SIGSTOP)
        self.keys("T", "y")
        self.wait_text("the program on gpu0 is not trimmed")
        self.keys("Space")
        self.wait_text("FROZEN")
        program.kill()
        program.wait()
        self.keys("p")
        self.wait_text("is not reset: the program has ended")

    def test_a_trim_that_was_withdrawn_does_not_happen_later(self):
        """With a limit a program looks at requests at each allocation."""
        program = self.start_small()
        os.kill(program.pid, signal.SIGSTOP)
        self.open()
        self.wait_text("1 program")
        self.keys("Enter", "L", "2GiB", "Enter")
        self.wait_text("limit of the program on gpu0: 2.0G")
        self.keys("Down", "t", "y")
        self.wait_text("2.pool is not trimmed: the program did not allocate within 0.1 s")
        count = self.pool()["total_count"]
        os.kill(program.pid, signal.SIGCONT)
        self.wait_for(lambda: self.pool()["total_count"] > count + 10)
        self.assertGreaterEqual(self.pool()["reserved_bytes"], 1 << 30)
        self.quit()

    @unittest.skipIf(os.getuid() != 0, "only root can become another user")
    def test_the_programs_of_others_cannot_be_controlled(self):
        os.chmod(self.folder, 0o777)
        os.chmod(self.runtime, 0o755)
        self.start()
        for name in os.listdir(self.runtime):  # whatever the modes are
            os.chmod(os.path.join(self.runtime, name), 0o666)
        self.open(user=65534)
        self.wait_text("1 program")
        self.keys("Enter")
        self.wait_text("log, findings and blocks are shown to the program's user and root")
        for keys, word in (("p", "reset"), ("ty", "trimmed"), ("P", "reset")):
            self.keys(*keys)
            self.wait_text(f"is not {word}: only the program's user and root may")
        self.keys("L", "1", "Enter")
        self.wait_text("is not limited: only the program's user and root may")

    def test_what_was_recorded_is_shown_again(self):
        path = os.path.join(self.folder, "recording")
        first = self.start()
        self.open("--record", path)
        self.wait_text(f"RECORDS(?s:.*){first.pid} ")
        second = self.start()
        self.wait_text(f"2 programs(?s:.*){second.pid} ")
        time.sleep(0.5)
        os.kill(self.pid_of_top(), signal.SIGKILL)  # in the middle, or not
        self.wait_text("ended with 137")
        for program in (first, second):
            program.kill()
            program.wait()
        self.assertEqual(self.json()["processes"], [])

        found = self.call("--once", "--replay", path, RMM_RUNTIME_DIR="/proc/none")
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertRegex(found.stdout, f"2 programs(?s:.*){second.pid} .*204.6M")
        found = json.loads(self.call("--json", "--replay", path).stdout)
        self.assertEqual([process["pid"] for process in found["processes"]],
                         [first.pid, second.pid] if found["processes"][0]["pid"] == first.pid
                         else [second.pid, first.pid])
        page = os.path.join(self.folder, "page.html")
        self.assertEqual(self.call("--html", page, "--replay", path).returncode, 0)
        with open(page, encoding="utf-8") as file:
            self.assertIn(f'<b class="t">{second.pid}</b>', file.read())

        self.open("--replay", path)
        self.wait_text(f"RECORDING \\d+ of \\d+(?s:.*){first.pid} ")
        lines = self.wait_text(r"2 programs  RECORDING (\d+) of \1")  # and stays at the end
        self.assertIn(f"{second.pid} ", "\n".join(lines))
        self.keys("Enter", "p")
        self.wait_text("a recording cannot be changed")
        self.quit()

        with open(path, "ab") as file:
            file.write(b"{}\n")
        self.open("--replay", path)
        self.wait_text("ended with 1")
        with open(self.errors, encoding="utf-8") as file:
            self.assertRegex(
                file.read(), r"\Armm-top: .*: line \d+ is not a snapshot of rmm-top\n\Z")

    def test_a_recording_that_ends_early_says_so(self):
        self.start()
        self.open("--record", "/dev/full")
        self.wait_text("RECORDING ENDED: No space left on device")
        self.wait_text("204.6M")
        self.keys("q")
        self.wait_text("ended with 1")
        with open(self.errors, encoding="utf-8") as file:
            self.assertEqual(
                file.read(), "rmm-top: the recording has ended early: No space left on device\n")

    def reads_of(self, pid):
        """The system calls by which it has read anything."""
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("syscr"))

    def test_it_reads_little_with_200_programs(self):
        """An update a second, at the window's two sizes: 15 reads of a program, which are most of
        the cost. How much time they take depends on the machine."""
        small = os.path.join(DATA, "replay", "small.csv")
        for _ in range(200):
            self.run_program(REPLAY, "--hold", "600", log=small)
        self.wait_for(lambda: len(self.json()["processes"]) == 200)
        for width, height in ((80, 24), (200, 60)):
            self.open("--interval", "1", width=width, height=height)
            self.wait_text("rmm-top  200 programs")
            pid = self.pid_of_top()
            before, begin = self.reads_of(pid), time.monotonic()
            time.sleep(4)
            updates = time.monotonic() - begin + 1  # one more may have begun
            reads = (self.reads_of(pid) - before) / 200 / updates
            self.assertLess(reads, 16)
            self.assertGreater(reads, 1)  # it was live
            self.quit()

    def test_frozen_figures_stay(self):
        program = self.start()
        self.open()
        self.wait_text(f"{program.pid} ")
        self.keys("Space")
        self.wait_text("FROZEN")
        program.kill()
        program.wait()
        self.keys("Enter")
        self.wait_text("└ 2.pool")
        self.keys("Escape", "Space")
        self.wait_text("no program uses the library now")

    def test_the_mouse_selects(self):
        programs = [self.start(), self.start(), self.start()]
        self.open()
        self.wait_text("3 programs")
        lines = self.wait_text(f"{programs[2].pid} ")
        rows = [y for y, line in enumerate(lines) if line.startswith("rmm-replay ")]
        self.assertEqual(len(rows), 3)
        wanted = re.search(r" (\d+) \S+ +gpu0 ", lines[rows[1]]).group(1)
        # A press and a release of the first button, as xterm sends them (SGR is off here).
        self.keys("-l", "\033[M" + chr(32) + chr(32 + 5) + chr(32 + rows[1] + 1))
        self.keys("-l", "\033[M" + chr(32 + 3) + chr(32 + 5) + chr(32 + rows[1] + 1))
        self.keys("Enter")
        self.wait_text(f"pid {wanted} ")

    def colors(self):
        return "\n".join(self.screen("-e"))

    def test_no_color(self):
        self.start()
        colored = re.compile(r"\033\[[0-9;]*3[1-7]m")
        for options, changes, expected in (
                ([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False)):
            self.environment.pop("NO_COLOR", None)
            self.environment["TERM"] = "screen-256color"
            self.environment.update(changes)
            self.open(*options)
            self.wait_text(r"204\.6M")
            self.assertEqual(colored.search(self.colors()) is not None, expected, options)
            self.quit()

    def test_signals_leave_a_clean_terminal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.open()
            self.wait_text("no program uses the library now")
            self.assertEqual(self.tmux("display-message", "-p", "#{alternate_on}").strip(), "1")
            os.kill(self.pid_of_top(), number)
            self.wait_text("ended with 0")
            self.assertEqual(self.tmux("display-message", "-p",
                                       "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")
                             .strip(), "0 1 0")

    def test_ascii_and_odd_terminals(self):
        self.start()
        self.open(LC_ALL="C")
        lines = self.wait_text(r"\[#=+\.+\]")
        self.assertTrue("\n".join(lines).isascii())
        self.quit()
        self.open("--help >/dev/null;", "TERM=none-such", f"'{TOP}'")
        self.wait_text("ended with 1")
        with open(self.errors, encoding="utf-8") as file:
            self.assertRegex(
                file.read(), r"\Armm-top: cannot use the terminal \"none-such\"[^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main()
