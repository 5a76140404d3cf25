# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser without a screen, for tests."""
import os
import shutil
import subprocess

BROWSERS = ("chromium-headless-shell", "chromium")


def dump(test, page, profile):
    """The document that a browser has made of a page, as HTML; profile: a folder of its own."""
    browser = next(filter(shutil.which, BROWSERS), None)
    if browser is None:
        if os.environ.get("CI"):
            test.fail("no browser; the step setup of tests/run installs one")
        test.skipTest("needs a browser: " + " or ".join(BROWSERS))
    result = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--window-size=1200,1000", "--user-data-dir=" + profile, "--dump-dom",
         "file://" + page], capture_output=True, text=True, check=False, timeout=300)
    test.assertEqual(result.returncode, 0, result.stderr)
    return result.stdout
