#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at index.html and map.svg, also in a browser; for shows_the_node_in_a_browser.sh.

usage: page_checks.py PAGE MAP_SVG FOLDER
"""
import base64
import hashlib
import html.parser
import http.server
import itertools
import os
import re
import subprocess
import sys
import threading
import unittest
import xml.dom.minidom

FOLDER, MAP, PAGE = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
VOID = {"meta", "input", "br", "link", "img"}
BROWSERS = ("chromium-headless-shell", "chromium")


def read(path):
    with open(path, encoding="ascii") as file:  # nothing of a program is anything else
        return file.read()


class Elements(html.parser.HTMLParser):
    """Whether all are closed in their order, their ids, and texts of a few."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.ids, self.texts, self.attributes = [], [], {}, set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop() == tag, tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] in ("style", "script"):
            self.texts.setdefault(self.stack[-1], []).append(data)


# --- colours: WCAG's contrast, and what people see who lack a kind of cone ------------------------

def linear(text):
    parts = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(rgb):
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(left, right):
    low, high = sorted((luminance(linear(left)), luminance(linear(right))))
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira and Fernandes 2009, severity 1.
EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                 (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                (0.004733, 0.691367, 0.303900)),
}


def lab(rgb):
    """CIE L*a*b* of linear sRGB, D65."""
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    f = []
    for row, full in zip(matrix, white, strict=True):
        share = sum(a * b for a, b in zip(row, rgb, strict=True)) / full
        f.append(share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def distance(left, right, eyes):
    seen = []
    for colour in (left, right):
        rgb = linear(colour)
        mixed = [sum(a * b for a, b in zip(row, rgb, strict=True)) for row in EYES[eyes]]
        seen.append(lab([min(max(part, 0), 1) for part in mixed]))
    return sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5


def themes(css):
    """The variables of the style sheet: light, and dark."""
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    variables = re.compile(r"--([a-z]+): (#[0-9a-f]{6});")
    return {"light": dict(variables.findall(light)), "dark": dict(variables.findall(dark))}


class Texts(unittest.TestCase):
    def setUp(self):
        self.page = read(PAGE)
        self.elements = Elements(self.page)

    def test_each_element_is_closed_and_no_id_is_there_twice(self):
        self.assertEqual(self.elements.stack, [])
        self.assertEqual(len(self.elements.ids), len(set(self.elements.ids)))
        self.assertFalse([name for name in self.elements.attributes
                          if name.startswith("on") or name in ("src", "style")])

    def test_the_policy_names_the_one_script_and_the_one_style(self):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', self.page).group(1)
        for kind, directive in (("script", "script-src"), ("style", "style-src")):
            (text,) = ["".join(self.elements.texts[kind])]
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{directive} 'sha256-{digest}'", policy)
            self.assertEqual(self.page.count(f"<{kind}"), 1)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_texts_can_be_read_in_both_themes(self):
        for name, colours in themes("".join(self.elements.texts["style"])).items():
            for ground in ("ground", "panel"):
                for text in ("text", "dim", "warn", "link"):
                    self.assertGreaterEqual(contrast(colours[text], colours[ground]), 4.5,
                                            (name, text, ground))

    def test_parts_of_memory_differ_for_all_eyes(self):
        for name, colours in themes("".join(self.elements.texts["style"])).items():
            for eyes in EYES:
                for left, right in itertools.combinations(
                        ("used", "inside", "others", "free"), 2):
                    self.assertGreater(distance(colours[left], colours[right], eyes), 20,
                                       (name, eyes, left, right))
            # What is in use stands out from what is free, by lightness alone.
            for part in ("used", "others", "graph", "lost"):
                self.assertGreaterEqual(contrast(colours[part], colours["free"]), 2.9,
                                        (name, part))
            self.assertGreaterEqual(contrast(colours["used"], colours["inside"]), 2.5, name)

    def test_the_map_is_a_picture_in_the_same_colours(self):
        text = read(MAP)
        document = xml.dom.minidom.parseString(text)
        self.assertEqual(document.documentElement.tagName, "svg")
        (style,) = document.getElementsByTagName("style")
        light, dark = style.firstChild.data.split("@media(prefers-color-scheme:dark)")
        page = themes("".join(self.elements.texts["style"]))
        for part, theme in ((light, "light"), (dark, "dark")):
            fills = dict(re.findall(r"[.}](\w+)\{fill:(#\w+)\}", part))
            self.assertEqual(len(fills), 6)
            for name, colour in fills.items():
                self.assertEqual(colour, page[theme]["free" if name == "ground" else name])


class Browser(unittest.TestCase):
    """The script, in a copy that has another one: it does what a reader would."""

    def setUp(self):
        page = re.sub(r'<meta http-equiv="Content-Security[^>]*>', "", read(PAGE))
        self.assertIn("<main>", page)
        self.first = re.search(r'<details id="(p[^"]*)"', page).group(1)
        self.page = page.replace("</body>", f"""<script>
if (history.state === null) {{
    document.getElementById("{self.first}").open = true;
    document.getElementById("seconds").value = "2";
    document.getElementById("filter").value = "no such program";
    document.getElementById("filter").dispatchEvent(new Event("input"));
}}
if (history.state !== null && location.protocol === "file:") {{
    document.getElementById("seconds").value = "0"; // else it would never come to rest
}}
document.documentElement.dataset.loads = 1 + Number(sessionStorage.loads || 0);
sessionStorage.loads = document.documentElement.dataset.loads;
</script></body>""")

    def look(self, url):
        for browser in BROWSERS:
            try:
                result = subprocess.run(
                    [browser, "--headless", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage", f"--user-data-dir={FOLDER}/profile",
                     "--virtual-time-budget=15000", "--dump-dom", url],
                    capture_output=True, text=True, check=False, timeout=120)
            except FileNotFoundError:
                continue
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout
        if os.environ.get("CI"):
            self.fail("no browser; the step setup of tests/run installs one")
        return self.skipTest("needs a browser")

    def assert_kept(self, document):
        self.assertIn(f'<details id="{self.first}" open="" hidden="">', document)
        self.assertEqual(re.findall(r'<details id="[^"]*" open=""', document),
                         [f'<details id="{self.first}" open=""'])

    def serve(self, answers):
        """Gives the answers one after the other, and the last one for ever."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    def later(self, page=None):
        """The page as it would be some time after."""
        return re.sub(r'(<time id="time">)[^<]*', r"\g<1>a later time", page or self.page)

    def test_its_policy_lets_its_own_script_refresh_and_no_other_run(self):
        page = read(PAGE).replace("</main>", "<script>document.title = 'mine'</script>"
                                  "<img src=x onerror=\"document.title = 'mine'\"></main>")
        document = self.look(self.serve([(200, page), (200, self.later(page))]))
        self.assertIn('<time id="time">a later time</time>', document)
        self.assertIn("<title>GPU memory of ", document)

    def test_a_refresh_keeps_what_is_open_and_the_filter(self):
        document = self.look(self.serve([(200, self.page), (200, self.later())]))
        self.assertIn('data-loads="1"', document)  # it was not loaded anew
        self.assertIn('<time id="time">a later time</time>', document)
        self.assertIn('<span id="stale" hidden="">', document)
        self.assert_kept(document)

    def test_an_answer_that_is_no_page_leaves_the_last_one(self):
        for status, body in ((503, "the daemon does not answer\n"), (200, "what is this\n")):
            document = self.look(self.serve(
                [(200, self.page), (200, self.later()), (status, body)]))
            self.assertIn('<time id="time">a later time</time>', document)
            self.assertIn('<span id="stale">no answer since then</span>', document)
            self.assert_kept(document)

    def test_a_file_is_loaded_anew_and_keeps_what_is_open(self):
        copy = os.path.join(FOLDER, "copy.html")
        with open(copy, "w", encoding="ascii") as file:
            file.write(self.page)
        document = self.look("file://" + copy)
        self.assertNotIn('data-loads="1"', document)
        self.assert_kept(document)


if __name__ == "__main__":
    unittest.main()
