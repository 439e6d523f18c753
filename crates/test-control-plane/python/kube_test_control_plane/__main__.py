"""Runs the program in place of this process: `python -m kube_test_control_plane`."""

import os
import sys

from . import PROGRAM


def main():
    os.execv(PROGRAM, ["kube-test-control-plane", *sys.argv[1:]])


if __name__ == "__main__":
    main()
