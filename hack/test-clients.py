#!/usr/bin/env python3
"""Runs the tests of public clients against the test control plane.

    hack/test-clients.py [CLIENT…]

The clients are the rows of docs/clients.md, which also lists the tests that can't pass. The run
fails if another test fails, or if fewer tests pass than the page says. Packages are downloaded
into the target folder; tests that no package contains are left out without CLIENT_SOURCES.

Environment: BINARIES, folder with the built program (target/debug); CLIENT_SOURCES, folder with
checkouts of the clients' repositories; KUBECTL (kubectl).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "hack" / "clients"
PAGE = ROOT / "docs" / "clients.md"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
FOLDER = TARGET / "clients"
PROGRAM = Path(os.environ.get("BINARIES", TARGET / "debug")).resolve() / "kube-test-control-plane"
SOURCES = os.environ.get("CLIENT_SOURCES")
KUBECTL = shutil.which(os.environ.get("KUBECTL", "kubectl"))

# Time limits of the program's start, of a test, and of a client's tests, in seconds.
START_MAX = 30
TEST_MAX = 120
SUITE_MAX = 1800

# Runs of a test that fails: several tests watch the clock, or the collection of garbage.
ATTEMPTS = 3

# The runner of the Python clients' tests, and its plug-ins.
PYTEST = ["pytest==9.2.0", "pytest-asyncio==1.5.0", "pytest-timeout", "pytest-rerunfailures"]


@dataclass
class Client:
    """A client, and how to run its tests."""

    name: str
    # Packages besides the client's own.
    requires: list
    # Runs the tests in a prepared folder; returns their outcomes by name.
    run: object
    # The checkout with the tests, if no package contains them.
    checkout: str = ""
    # Contents of the row of the page.
    version: str = ""
    passing: int = 0
    # Reasons by the ends of the tests' names.
    failing: dict = field(default_factory=dict)

    @property
    def folder(self):
        return FOLDER / self.name.replace(" ", "-")

    @property
    def package(self):
        return self.name.split(" ")[0]

    @property
    def python(self):
        return self.folder / "venv" / "bin" / "python"

    @property
    def site_packages(self):
        return next((self.folder / "venv" / "lib").glob("python3*/site-packages"))

    @property
    def sources(self):
        return Path(SOURCES) / self.checkout

    def install(self):
        """Installs the client, with the runner of its tests, in an environment of its own."""
        if not self.python.exists():
            command([sys.executable, "-m", "venv", self.python.parent.parent])
        wanted = [f"{self.package}=={self.version}", *PYTEST, *self.requires]
        command([self.python, "-m", "pip", "install", "--quiet", *wanted])

    def unpack(self):
        """Downloads the package with the sources, and returns the folder with them."""
        name = f"{self.package}-{self.version}"
        sources = self.folder / name
        if not sources.exists():
            package = f"{self.package}=={self.version}"
            options = ["--quiet", "--no-deps", "--no-binary", self.package]
            command([self.python, "-m", "pip", "download", *options, package, "-d", self.folder])
            with tarfile.open(self.folder / f"{name}.tar.gz") as archive:
                archive.extractall(self.folder, filter="data")
        return sources

    def pytest(self, folder, arguments):
        """Runs tests with pytest; returns their outcomes by name."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        options = ["--quiet", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        options += [f"--timeout={TEST_MAX}", f"--reruns={ATTEMPTS - 1}"]
        # Python's collection of forgotten sockets is no matter of the server.
        options += ["-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
        with open(self.folder / "log", "w") as log:
            run = [self.python, "-m", "pytest", *options, *arguments]
            subprocess.run(run, cwd=folder, stdout=log, stderr=log, timeout=SUITE_MAX, check=False)
        return outcomes(report)


def command(words, **options):
    """Runs a command, whose failure ends the program."""
    subprocess.run([str(word) for word in words], check=True, **options)


def outcomes(report):
    """The outcomes in a JUnit report by the tests' names: passed, skipped or failed."""
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        if "skipped" in kinds:
            outcome = "skipped"
        found[f"{case.get('classname')}.{case.get('name')}"] = outcome
    return found


def kr8s(client):
    """kr8s's own tests, which look for a cluster of kind."""
    sources = client.unpack()
    kind = sources / ".pytest-kind" / "pytest-kind"
    kind.mkdir(parents=True, exist_ok=True)
    program = kind / "kind-v0.17.0"
    program.write_text("#!/bin/sh\necho pytest-kind\n")
    program.chmod(0o755)
    for name, target in [
        ("kubectl-v1.25.3", KUBECTL),
        ("kubeconfig", os.environ["KUBECONFIG"]),
    ]:
        (kind / name).unlink(missing_ok=True)
        (kind / name).symlink_to(target)
    return client.pytest(sources, ["-o", "addopts=", "--keep-cluster", "kr8s"])


def kopf(client):
    """kopf's tests of its examples."""
    # A library of the tests can't read the versions of OpenSSL that have two digits.
    for module in client.site_packages.glob("oscrypto/_openssl/_libcrypto_c*.py"):
        module.write_text(module.read_text().replace(r"(\\d\\.\\d\\.\\d[", r"(\\d+\\.\\d+\\.\\d+["))
    return client.pytest(client.unpack(), ["--only-e2e", "tests/e2e", "examples"])


def python_dynamic(client):
    """The tests of a Python client's dynamic client, which the package contains."""
    modules = []
    for folder in ["kubernetes", "kubernetes/aio", "kubernetes_asyncio"]:
        package = client.site_packages / folder
        names = ["client_test.py", "discovery_test.py", "test_client.py", "test_discovery.py"]
        tests = [test for test in (package / "dynamic" / name for name in names) if test.exists()]
        if tests:
            shutil.copytree(DATA / "e2e_test", package / "e2e_test", dirs_exist_ok=True)
            modules += [test.relative_to(client.site_packages) for test in tests]
    return client.pytest(client.site_packages, modules)


def python_e2e(client):
    """The end-to-end tests of a Python client."""
    folders = []
    for folder in ["kubernetes/e2e_test", "kubernetes/aio/e2e_test", "kubernetes_asyncio/e2e_test"]:
        if (client.sources / folder).exists() and (client.site_packages / folder).parent.exists():
            tests = client.site_packages / folder
            shutil.copytree(client.sources / folder, tests, dirs_exist_ok=True)
            folders.append(folder)
    return client.pytest(client.site_packages, folders)


def lightkube(client):
    """lightkube's end-to-end tests."""
    return client.pytest(client.sources / "e2e-tests", ["--rootdir=.", "test_client.py"])


def node(client):
    """The integration tests of the Node client, each a function without arguments."""
    folder = client.folder
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}\n')
    wanted = [f"{client.package}@{client.version}", *client.requires]
    command(["npm", "install", "--silent", "--no-audit", "--no-fund", *wanted], cwd=folder)
    tests = folder / "src" / "test" / "integration"
    shutil.copytree(client.sources / "src/test/integration", tests, dirs_exist_ok=True)
    # The tests import the modules of the sources.
    for name in ["index", "cache", "cp", "portforward", "watch"]:
        text = f"export * from '{client.package}';\n"
        (folder / "src" / f"{name}.ts").write_text(text)
    found = {}
    with open(folder / "log", "w") as log:
        for test in re.findall(r"from '\./(\w+)\.js'", (tests / "index.ts").read_text()):
            call = f"await (await import('./src/test/integration/{test}.ts')).default();"
            (folder / "one.ts").write_text(call + "\nprocess.exit(0);\n")
            run = ["npx", "tsx", "one.ts"]
            ended = subprocess.run(run, cwd=folder, stdout=log, stderr=log, timeout=SUITE_MAX)
            found[test] = "failed" if ended.returncode else "passed"
    return found


CLIENTS = [
    Client(
        "kr8s",
        # Later versions of the Python client have no modules of single models. Later versions of
        # httpx-ws raise the client's errors in groups.
        ["httpx-ws==0.7.2", "pytest-kind", "pytest-cov", "trio", "lightkube", "kubernetes==35.0.0"]
        + ["pykube-ng", "kubernetes-asyncio", "kubernetes-validate"],
        kr8s,
    ),
    Client(
        "kopf",
        ["certbuilder", "certvalidator", "pytest-aiohttp", "pytest-mock", "looptime", "kmock"]
        + ["freezegun", "pyngrok", "kubernetes", "pykube-ng"],
        kopf,
    ),
    Client("kubernetes dynamic", ["aiohttp", "aiohttp-retry", "pydantic"], python_dynamic),
    Client("kubernetes_asyncio dynamic", [], python_dynamic),
    Client(
        "kubernetes e2e",
        ["aiohttp", "aiohttp-retry", "pydantic"],
        python_e2e,
        "python",
    ),
    Client("kubernetes_asyncio e2e", [], python_e2e, "kubernetes_asyncio"),
    Client("lightkube", [], lightkube, "lightkube"),
    Client("@kubernetes/client-node", ["node@22", "tsx@4"], node, "javascript"),
]


def rows(heading):
    """The rows of the page's table below a heading, as lists of cells without backticks."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table]


def clients(names):
    """The clients with the contents of the page, all of them if there are no names."""
    known = {client.name: client for client in CLIENTS}
    for name, version, _, _, passing in rows("Results"):
        known[name].version, known[name].passing = version, int(passing)
    for name, test, reason in rows("Tests that can't pass"):
        known[name].failing[test] = reason
    return [known[name] for name in names or known]


class ControlPlane:
    """A new control plane, with all actors and the objects of a new cluster."""

    def __init__(self, folder):
        self.kubeconfig = folder / "kubeconfig"
        self.ready = folder / "ready"
        self.folder = folder

    def __enter__(self):
        flags = ["--start-delay", "200ms", "--kubeconfig-out", self.kubeconfig]
        flags += ["--fault-plan-file", DATA / "network.json"]
        flags += ["--pod-rules-file", DATA / "pods.yaml"]
        with open(self.ready, "w") as out, open(self.folder / "errors", "w") as errors:
            self.process = subprocess.Popen([PROGRAM, *flags], stdout=out, stderr=errors)
        end = time.monotonic() + START_MAX
        while not any(line.startswith("ready ") for line in self.ready.read_text().splitlines()):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                sys.exit(f"the control plane did not start: {self.folder / 'errors'}")
            time.sleep(0.1)
        os.environ["KUBECONFIG"] = str(self.kubeconfig)
        command([KUBECTL, "create", "-f", DATA / "cluster.yaml"], stdout=subprocess.DEVNULL)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def report(client, found):
    """Prints the results of a client; returns true if they are as good as the page says."""
    by = {kind: [test for test, it in found.items() if it == kind] for kind in found.values()}
    passed, failed = by.get("passed", []), by.get("failed", [])
    for test in failed:
        ends = (end for end in client.failing if test.endswith(end))
        known = next(ends, None)
        reason = client.failing[known] if known else "not in docs/clients.md"
        print(f"failed: {test}: {reason}")
    for end in client.failing:
        if any(test.endswith(end) for test in passed):
            print(f"passed, but listed in docs/clients.md: {end}")
    print(
        f"{client.name}: {len(passed)} of {len(found)} passed,"
        f" {len(by.get('skipped', []))} skipped by the client, version {client.version}"
    )
    unknown = [test for test in failed if not any(test.endswith(end) for end in client.failing)]
    if len(passed) < client.passing:
        print(f"{client.name}: docs/clients.md says that {client.passing} pass")
    return not unknown and len(passed) >= client.passing


def main():
    # The control plane ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not KUBECTL:
        sys.exit("kubectl not found: set KUBECTL")
    is_good = True
    for client in clients(sys.argv[1:]):
        if client.checkout and not (SOURCES and client.sources.exists()):
            print(f"{client.name}: left out: its tests need CLIENT_SOURCES/{client.checkout}")
            continue
        client.folder.mkdir(parents=True, exist_ok=True)
        if client.run is not node:
            client.install()
        with ControlPlane(client.folder):
            found = client.run(client)
        is_good &= report(client, found)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
