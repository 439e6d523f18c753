#!/usr/bin/env python3
"""Builds the Python and npm packages of the control plane, installs them and starts it from them.

    hack/test-packages.py [--offline]

Then runs the quick starts of the packages' pages, and the one for Go of the guide, with their
clients, which it downloads; --offline leaves these out. What this machine can't run is left out
with one line that gives the reason.

Environment: BINARIES, folder with the built program (target/debug); GO, NPM (go, npm).
"""

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PROGRAM = Path(os.environ.get("BINARIES", TARGET / "debug")).resolve() / "kube-test-control-plane"
CRATE = ROOT / "crates" / "test-control-plane"
GO = shutil.which(os.environ.get("GO", "go"))
NPM = shutil.which(os.environ.get("NPM", "npm"))

# Time limits of a command and of a quick start, in seconds.
COMMAND_MAX = 600
QUICK_START_MAX = 120

PYTHON_TEST = """
import base64, json, os, ssl, subprocess, sys, urllib.request
import kube_test_control_plane as package

with package.start("--actors", "") as plane:
    with open(plane.kubeconfig) as file:
        authority = json.load(file)["clusters"][0]["cluster"]["certificate-authority-data"]
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    with urllib.request.urlopen(plane.url + "/readyz", context=context) as response:
        assert response.read() == b"ok"
assert not os.path.exists(os.path.dirname(plane.kubeconfig))
plane.stop()
try:
    urllib.request.urlopen(plane.url, context=context)
    sys.exit("the server still listens after the stop")
except OSError:
    pass
try:
    package.start("--actors", "nobody")
    sys.exit("an unknown actor was accepted")
except package.StartError as error:
    assert "nobody" in str(error), error
module = [sys.executable, "-m", "kube_test_control_plane", "--version"]
script = [os.path.join(os.path.dirname(sys.executable), "kube-test-control-plane"), "--version"]
versions = [subprocess.run(it, check=True, capture_output=True).stdout for it in (module, script)]
assert versions[0] == versions[1] and versions[0].startswith(b"kube-test-control-plane "), versions
"""

PYTHON_LEFT_RUNNING = """
import os, signal, kube_test_control_plane
print(kube_test_control_plane.start("--actors", "").url, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

NODE_TEST = """
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { existsSync, readFileSync } = require('node:fs');
const { get } = require('node:https');
const { start } = require('kube-test-control-plane');

const ask = (url, ca) => new Promise((resolve, reject) => {
  get(url, { ca, agent: false }, (response) => {
    let body = '';
    response.on('data', (part) => (body += part)).on('end', () => resolve(body));
  }).on('error', reject);
});

(async () => {
  const plane = await start({ flags: ['--actors', ''] });
  const { cluster } = JSON.parse(readFileSync(plane.kubeconfig, 'utf8')).clusters[0];
  const authority = Buffer.from(cluster['certificate-authority-data'], 'base64');
  assert.equal(await ask(`${plane.url}/readyz`, authority), 'ok');
  await plane.stop();
  assert(!existsSync(plane.kubeconfig));
  await assert.rejects(ask(plane.url, authority), { code: 'ECONNREFUSED' });
  await assert.rejects(start({ flags: ['--actors', 'nobody'] }), /nobody/);
  const run = spawnSync('npx', ['--offline', 'kube-test-control-plane', '--version']);
  assert.match(String(run.stdout), /^kube-test-control-plane /, String(run.stderr));
})();
"""

NODE_LEFT_RUNNING = """
const { writeSync } = require('node:fs');
require('kube-test-control-plane').start({ flags: ['--actors', ''] }).then((plane) => {
  writeSync(1, plane.url);
  process.kill(process.pid, 'SIGKILL');
});
"""

# Time until a control plane has ended after the process that started it, in seconds.
ORPHAN_MAX = 30


class Unavailable(Exception):
    """The machine lacks something; the message says what."""


def run(words, limit=COMMAND_MAX, **options):
    """Runs a command; returns its output. Its failure ends the program."""
    words = [str(word) for word in words]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, timeout=limit, **options)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(words)}: not finished after {limit} seconds")
    if ended.returncode:
        sys.exit(f"{' '.join(words)}: code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def expect_end(words, folder):
    """Runs a program that starts a control plane and kills itself; the control plane must end."""
    url = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=COMMAND_MAX).stdout
    port = int(url.rsplit(":", 1)[1])
    end = time.monotonic() + ORPHAN_MAX
    while time.monotonic() < end:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                return
        time.sleep(0.1)
    sys.exit(f"{url} still runs {ORPHAN_MAX} s after the process that started it was killed")


def built(builder, folder):
    """Builds packages twice, which must have the same bytes; returns their paths."""
    first, second = (
        [Path(line) for line in run([sys.executable, builder, out, PROGRAM]).splitlines()]
        for out in (folder / "first", folder / "second")
    )
    for one, other in zip(first, second):
        if one.read_bytes() != other.read_bytes():
            sys.exit(f"{one.name}: two builds have different bytes")
    return first


def quick_starts(page, language):
    """The programs of a page in a language, each with the output that the next paragraph gives."""
    found = re.findall(rf"```{language}\n(.*?)```\n\nIt prints `(.*?)`\.\n", page.read_text(), re.S)
    if not found:
        sys.exit(f"{page}: no quick start in {language}")
    return found


def compare(name, said, expected):
    if said.strip() != expected:
        sys.exit(f"{name} printed {said!r}, the page says {expected!r}")


def python(folder):
    """Installs the wheel in an environment of its own; returns its interpreter."""
    (wheel,) = built(ROOT / "hack/release/wheel.py", folder)
    venv = folder / "venv"
    if subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True).returncode:
        raise Unavailable("python3 has no module venv with pip")
    interpreter = venv / "bin" / "python"
    run([interpreter, "-m", "pip", "install", "--quiet", "--no-index", wheel])
    run([interpreter, "-c", PYTHON_TEST], cwd=folder)
    expect_end([interpreter, "-c", PYTHON_LEFT_RUNNING], folder)
    return interpreter


def python_quick_starts(folder):
    interpreter = python(folder)
    run([interpreter, "-m", "pip", "install", "--quiet", "kubernetes", "kopf"])
    for code, expected in quick_starts(CRATE / "python" / "README.md", "python"):
        (folder / "quick_start.py").write_text(code)
        said = run([interpreter, "quick_start.py"], QUICK_START_MAX, cwd=folder)
        compare("the quick start for Python", said, expected)


def node(folder):
    """Installs the npm packages in a new project; returns its folder."""
    if not NPM:
        raise Unavailable("npm is missing")
    packages = built(ROOT / "hack/release/npm.py", folder)
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true}\n')
    run([NPM, "install", "--offline", "--no-audit", "--no-fund", *packages], cwd=project)
    (project / "test.js").write_text(NODE_TEST)
    run(["node", "test.js"], cwd=project)
    expect_end(["node", "-e", NODE_LEFT_RUNNING], project)
    return project


def node_quick_starts(folder):
    project = node(folder)
    # The client needs a newer Node than many systems have; the package `node` contains one.
    run([NPM, "install", "--no-audit", "--no-fund", "@kubernetes/client-node", "node@22"], cwd=project)
    for code, expected in quick_starts(CRATE / "node" / "README.md", "js"):
        (project / "quick_start.mjs").write_text(code)
        said = run(["node_modules/.bin/node", "quick_start.mjs"], QUICK_START_MAX, cwd=project)
        compare("the quick start for Node", said, expected)


def go_quick_starts(folder):
    if not GO:
        raise Unavailable("go is missing")
    environment = os.environ | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    for code, expected in quick_starts(CRATE / "GUIDE.md", "go"):
        (folder / "main.go").write_text(code)
        run([GO, "mod", "init", "example.com/quickstart"], cwd=folder)
        if subprocess.run([GO, "mod", "tidy"], cwd=folder, capture_output=True).returncode:
            raise Unavailable("go can't download k8s.io/client-go")
        said = run([GO, "run", "."], cwd=folder, env=environment)
        compare("the quick start for Go", said, expected)


def main():
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is missing: build it, or set BINARIES to the folder of the programs")
    steps = [
        ("Python package", python),
        ("npm packages", node),
        ("quick starts for Python", python_quick_starts),
        ("quick start for Node", node_quick_starts),
        ("quick start for Go", go_quick_starts),
    ]
    for name, step in steps[:2] if "--offline" in sys.argv[1:] else steps[2:]:
        with tempfile.TemporaryDirectory(prefix="test-packages-") as folder:
            try:
                step(Path(folder))
                print(f"{name}: passed")
            except Unavailable as reason:
                print(f"{name}: left out: {reason}")


if __name__ == "__main__":
    main()
