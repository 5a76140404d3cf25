#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
usage: docs_run.py SOURCE PREFIX BUILD

What pages show runs. Of each block that no other test runs (RUN of docs_blocks.py), the parts of C
run in a program on the simulated GPU, and the shell commands in a folder with the files that they
name: program, service, train.py, two logs, the scripts of the sources, the mounted tree as /rmm and
BUILD as build/dev. A command that cannot run here is in LEFT, with the reason or the test that runs
it: a new one runs or is listed there, and a line of LEFT that fits no command fails.
"""
import gzip
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from docs_blocks import PRELUDE, RUN, SOURCE, STAGE, blocks

BUILD = pathlib.Path(sys.argv[3])
LOG_LINES = 3001 # a part of a training: what is shown is how a command is used
LONG = "builds or measures for minutes"
GPU = "needs a GPU"
OTHERS = "runs other tests"
HOST = "changes the machine"
LEFT = {  # page: {how a command, or a block of another language, begins: why it is not run}
    "README.md": {
        "tools/demo": "fuse.the_demo_shows_what_it_must",
        "tools/install": "abi.install_preset",
        "tests/run": OTHERS,
    },
    "CONTRIBUTING.md": {
        "tests/run --quick": OTHERS,
        "tests/run  ": OTHERS,
        "cmake --preset dev": OTHERS,
    },
    "docs/diagnostics.md": {
        "rmm-run -- torchrun": "sim.run_job, with a shell as the launcher",
        "rmm-run --report job.json": "sim.run_job, with a shell as the launcher",
    },
    "docs/extending.md": {"for file in include": "abi.recipes"},
    "docs/amd.md": {"$ RMM_DRIVER=hip": "needs an AMD GPU", "ctest": OTHERS},
    "docs/building.md": {
        "cmake --preset install": "abi.install_preset",
        "cmake --build build/install --target site": "abi.site",
        "sudo cmake --install": "abi.install, with another prefix",
    },
    "docs/compute-sanitizer.md": {"compute-sanitizer": GPU},
    "docs/containers.md": {"#include <rmm/rmm.h>": "abi.doc_containers"},
    "docs/howto/pytorch.md": {"import ctypes, torch": GPU, "import torch": GPU,
                              "resource = rmm.mr.Managed": GPU},
    "docs/filesystem.md": {
        "ln -s": "fuse.feeds_a_real_prometheus, in another folder",
        "addr2line": "PATH and OFFSET stand for others",
        "poll = select.poll()": "fuse.wakes_pollers_when_a_counter_changes",
    },
    "docs/from-rmm.md": {"tests/abi/beside_rapids.sh": "abi.beside_rapids, where RAPIDS is"},
    "docs/kubernetes.md": {"# rmmfs --check": "fuse.tells_why_a_program_is_missing"},
    "docs/monitoring.md": {
        "rmm-exporter --mount": "fuse.serves_the_tree_over_http, on another port",
        "curl": "fuse.serves_the_tree_over_http, on another port",
        "rmm-top --once": "fuse.shows_several_nodes_in_rmm_top, on other ports",
    },
    "docs/packages.md": {
        "sudo apt-get": HOST,
        "cmake --preset package": LONG,
        "cd ": "a folder of another command that is not run",
        "cpack": "abi.packages",
        "debootstrap": "needs the network",
        "packaging/bare-tree": "needs the network",
        "packaging/build-source": LONG,
        "conan create": LONG,
        "packaging/release": "abi.release",
        "packaging/repository": "abi.repository",
        "sudo curl": HOST,
        "dpkg-buildpackage": LONG,
        "DEB_BUILD_PROFILES": LONG,
    },
    "docs/performance.md": {
        "rmm-bench  ": LONG,
        "rmm-bench --json": LONG,
        "tests/gpu/run": GPU,
        "RMM_DRIVER=sim tools/bench/measure": LONG,
        "tools/bench/": "reads what tools/bench/measure wrote",
    },
    "docs/internals/performance.md": {
        "cmake --preset nocuda": LONG,
        "tests/bench/instructions": "the step bench of tests/run",
    },
    "docs/python.md": {
        "packaging/build-wheel": "abi.wheel",
        "python3 -m venv": "abi.wheel",
        "~/rmm-venv/bin/pip": "abi.wheel",
        "python3 -m rmm_c.frameworks": "abi.python, another program",
        "torchrun": GPU,
        "rmm-run -- python3 -m rmm_c.frameworks": "abi.python, without rmm-run",
    },
    "docs/testing.md": {
        "tests/run": OTHERS,
        "ctest": OTHERS,
        "tests/gpu/run": GPU,
        "cmake --preset release": LONG,
        "tests/capacity/run": LONG,
        "tests/mutate/run": LONG,
        "tools/bench/plot": "reads what tests/gpu/run wrote",
    },
}
MAIN = """static void part(void);
rmm_resource_t *pool, *counted, *tracked, *logged;
rmm_stream_t stream = RMM_STREAM_DEFAULT;
rmm_status_t status;
void step(void)
{
    void *block;
    status = rmm_resource_alloc(counted, 1000, 0, stream, &block);
    rmm_resource_dealloc(counted, block, 1000, 0, stream);
}
int main(void)
{
    rmm_resource_t *cuda;
    if (rmm_cuda_resource_create(&cuda) || rmm_pool_resource_create(cuda, NULL, &pool) ||
        rmm_statistics_adaptor_create(pool, NULL, &counted)) {
        return 1;
    }
    part();
    return status == RMM_OK && rmm_last_error_message()[0] == '\\0' ? 0 : 2;
}
"""
PROGRAM = """#include <rmm/rmm.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    rmm_resource_t *mr;
    void *block;
    if (rmm_get_current_device_resource(&mr)) {
        return 1;
    }
    do { /* HELD: as a service, until it is killed */
        if (rmm_resource_alloc(mr, 1000, 0, RMM_STREAM_DEFAULT, &block) ||
            rmm_memset_async(block, 1, 1000, RMM_STREAM_DEFAULT)) {
            return 2;
        }
        usleep(1000);
        rmm_resource_dealloc(mr, block, 1000, 0, RMM_STREAM_DEFAULT);
    } while (getenv("HELD") != NULL);
    return 0;
}
"""
TRAIN = "import os\nos.execv('./program', ['./program'])\n"
used = set() # (page, beginning) of LEFT
wrong = []
counts = {"run": 0, "listed": 0}


def left(page, text):
    for beginning in LEFT.get(page, {}):
        if text.startswith(beginning):
            used.add((page, beginning))
            counts["listed"] += 1
            return True
    return False


def parses(text):
    return subprocess.run(["bash", "-n"], input=text, text=True, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def commands(text):
    """Whole commands: loops and continued lines are one."""
    whole = ""
    for line in text.splitlines(keepends=True):
        whole += line
        if not line.endswith("\\\n") and parses(whole):
            yield whole
            whole = ""
    assert not whole, whole


def build(name, source):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "rmm-c"], capture_output=True,
                           text=True, check=True).stdout.split()
    return subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-w", "-x", "c", "-", "-o",
                           name, *flags], input=source, capture_output=True, text=True, check=False)


def run_c(text):
    kept = [line for line in text.splitlines() if line.strip() != "..."]
    outside = [line for line in kept if line.startswith("RMM_DEVICE_ARRAY_DEFINE")]
    inside = [line for line in kept if line not in outside]
    done = build("part", "\n".join([PRELUDE, *outside, MAIN, "static void part(void)", "{", *inside,
                                    "}", ""]))
    if done.returncode == 0:
        done = subprocess.run(["./part"], capture_output=True, text=True, check=False)
    return done.stderr + f"exit status {done.returncode}" if done.returncode else ""


def in_background(line):
    """Held, and waited for until the tree has an allocation of it."""
    found = re.match(r"(.*[^&])&\s*(#.*)?$", line.rstrip("\n"))
    if not found:
        return line
    allocated = "/rmm/proc/$!/gpu0/total_bytes"
    return f"HELD=1 {found[1]} &\nuntil grep -qs '^[1-9]' {allocated}; do sleep 0.05; done\n"


def run_shell(script, tree, pid):
    script = "".join(in_background(line) for line in script.splitlines(keepends=True))
    script = script.replace("/rmm/", f"{tree}/").replace("<pid>", str(pid))
    with open("shell_output", "w", encoding="utf-8") as output:
        started = subprocess.Popen(["bash", "-euc", script], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        status = started.wait()
    try:
        os.killpg(started.pid, signal.SIGKILL) # what it left in the background
    except ProcessLookupError:
        pass
    return pathlib.Path("shell_output").read_text(encoding="utf-8") if status else ""


def check_page(path, name, tree, pid):
    for line, tag, text in blocks(path):
        word = tag.split(" ")[0]
        if (name, tag) in RUN or (name, word) in RUN and word != "sh":
            continue
        problem = ""
        if tag == "sh":
            script = "".join(part for part in commands(text) if not left(name, part))
            if not script.strip():
                continue
            if tree is None and "/rmm/" in script:
                print(f"{name}:{line} is not tried: it needs /dev/fuse and an installed rmmfs")
                continue
            problem = run_shell(script, tree, pid)
        elif tag in ("", "text", "json", "{toctree}") or left(name, text):
            continue
        elif tag == "c":
            problem = run_c(text)
        else:
            problem = f"nothing runs a block of {tag}: list it in LEFT"
        counts["run"] += 1
        if problem:
            wrong.append(f"{name}:{line}: {problem.strip()}")


def prepare(folder):
    for name in ("tests", "tools", "packaging", "include"):
        os.symlink(SOURCE / name, folder / name)
    (folder / "build").mkdir()
    os.symlink(BUILD, folder / "build/dev")
    (folder / "no_gpus").mkdir() # GPUs of this machine would come before the simulated one
    (folder / "run").mkdir(mode=0o700)
    libraries = next(STAGE.rglob("librmm-c.so")).parent
    os.environ.update(
        RMM_DRIVER="sim", RMM_RUNTIME_DIR=str(folder / "run"),
        RMM_NVIDIA_PROC=str(folder / "no_gpus"), PKG_CONFIG_PATH=str(libraries / "pkgconfig"),
        LD_LIBRARY_PATH=str(libraries), PATH=f"{STAGE / 'bin'}:{os.environ['PATH']}")
    os.chdir(folder)
    done = build("program", PROGRAM)
    assert done.returncode == 0, done.stderr
    shutil.copy("program", "service")
    pathlib.Path("train.py").write_text(TRAIN, encoding="utf-8")
    with gzip.open(SOURCE / "tests/data/resnet_train.csv.gz") as whole:
        log = b"".join(itertools.islice(whole, LOG_LINES))
    pathlib.Path("log.csv").write_bytes(log)
    for name in ("trace.csv.gz", "log.csv.gz"):
        pathlib.Path(name).write_bytes(gzip.compress(log))


def check_itself(tree, pid):
    """A block that fails is found, and one that nobody lists."""
    page = pathlib.Path("page.md")
    for text in ("```sh\nrmm-run --summary -- false\n```\n", "```perl\n1;\n```\n",
                 "```c\nstatus = rmm_resource_alloc(pool, 1, 3, stream, &(void *){0});\n```\n"):
        page.write_text(text, encoding="utf-8")
        check_page(page, "page.md", tree, pid)
        assert wrong, text
        wrong.clear()


def check_pages(tree, pid):
    check_itself(tree, pid)
    for path in (SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "examples/README.md",
                 *sorted((SOURCE / "docs").rglob("*.md"))):
        check_page(path, str(path.relative_to(SOURCE)), tree, pid)
    for page, listed in LEFT.items():
        wrong.extend(f"{page}: no command begins with '{beginning}'" for beginning in listed
                     if (page, beginning) not in used)


def with_tree():
    """A mounted tree and a program in it, for the time of the check."""
    if not os.access("/dev/fuse", os.W_OK) or not (STAGE / "bin/rmmfs").exists():
        check_pages(None, 0)
        return
    tree = pathlib.Path("rmm").absolute()
    tree.mkdir()
    subprocess.run(["rmmfs", tree], check=True)
    service = subprocess.Popen(["rmm-run", "--no-summary", "--", "./service"],
                               env={**os.environ, "HELD": "1"})
    try:
        check_pages(tree, service.pid)
    finally:
        service.kill()
        service.wait()
        daemon = (tree / "daemon/pid").read_text(encoding="utf-8").strip()
        if subprocess.run(["umount", tree], stderr=subprocess.DEVNULL, check=False).returncode:
            subprocess.run(["fusermount3", "-u", tree], check=True)
        while pathlib.Path(f"/proc/{daemon}/exe").exists():
            pass


def main():
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder))
        with_tree()
        os.chdir(here)
    print("\n".join(wrong) or f"{counts['run']} blocks run; {counts['listed']} commands are listed")
    return 1 if wrong or counts["run"] < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
