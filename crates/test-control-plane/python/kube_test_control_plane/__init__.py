"""A Kubernetes control plane for tests, which starts within milliseconds.

    with kube_test_control_plane.start() as plane:
        kubernetes.config.load_kube_config(plane.kubeconfig)
"""

import atexit
import os
import subprocess
import tempfile
import time

__all__ = ["PROGRAM", "ControlPlane", "StartError", "start"]

PROGRAM = os.path.join(os.path.dirname(__file__), "bin", "kube-test-control-plane")
"""Path of the program."""

START_MAX = 30.0
"""Default time limit of a start, in seconds."""

STOP_MAX = 10.0
"""Seconds until a program that ignores SIGTERM is killed."""

POLL_INTERVAL = 0.01
"""Seconds between two looks at the output of a starting program."""


class StartError(Exception):
    """The control plane did not start; the message is the program's reason."""


class ControlPlane:
    """A running control plane. As a context manager it stops at the end of the block."""

    kubeconfig: str
    """Path of the administrator's kubeconfig, which exists until the stop."""

    url: str
    """The server's address, such as https://127.0.0.1:41234."""

    def __init__(self, process, folder, url):
        """Use `start`."""
        self._process = process
        self._folder = folder
        self.kubeconfig = _kubeconfig(folder)
        self.url = url
        atexit.register(self.stop)

    def stop(self):
        """Stops the control plane and removes its files. A second call does nothing."""
        atexit.unregister(self.stop)
        _end(self._process)
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start(*flags, timeout=START_MAX):
    """Starts a control plane with a port and a kubeconfig of its own, and waits until it is ready.

    `flags` are the program's, which `python -m kube_test_control_plane --help` lists. Raises
    StartError if it ends early, or isn't ready after `timeout` seconds.
    """
    folder = tempfile.TemporaryDirectory(prefix="kube-test-control-plane-")
    process = None
    try:
        process = _spawn(folder, flags)
        return ControlPlane(process, folder, _wait(process, folder, timeout))
    except BaseException:
        if process:
            _end(process)
        folder.cleanup()
        raise


def _spawn(folder, flags):
    # Its input ends with this process, however that ends.
    own = ["--exit-with-stdin", "--kubeconfig-out", _kubeconfig(folder)]
    with open(_output(folder), "wb") as output, open(_errors(folder), "wb") as errors:
        return subprocess.Popen(
            [PROGRAM, *own, *map(str, flags)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
        )


def _wait(process, folder, timeout):
    """Waits until the control plane is ready; returns its address."""
    end = time.monotonic() + timeout
    while True:
        # Its last words are complete once it has ended.
        code = process.poll()
        for line in _read(_output(folder)).splitlines(keepends=True):
            if line.startswith("ready ") and line.endswith("\n"):
                return line.split()[1]
        if code is not None:
            reason = _read(_errors(folder)).strip() or f"it ended with code {code}"
            raise StartError(reason)
        if time.monotonic() > end:
            raise StartError(f"the control plane was not ready after {timeout} seconds")
        time.sleep(POLL_INTERVAL)


def _end(process):
    process.terminate()
    try:
        process.wait(STOP_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdin.close()


def _read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _kubeconfig(folder):
    return os.path.join(folder.name, "kubeconfig")


def _output(folder):
    return os.path.join(folder.name, "output")


def _errors(folder):
    return os.path.join(folder.name, "errors")
