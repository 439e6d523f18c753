"""What the packages of the control plane say about the program that they contain."""

import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "kube-test-control-plane"
SUMMARY = "A Kubernetes control plane for tests, which starts within milliseconds."
KEYWORDS = ["kubernetes", "testing", "apiserver", "controller", "operator"]
LICENSE = "Apache-2.0"

# More takes twice as long, and saves one percent.
COMPRESSION = 6

# Machines in ELF headers, by the names that the tags of wheels and Node use.
MACHINES = {62: ("x86_64", "x64"), 183: ("aarch64", "arm64")}
# Type of the header that names the dynamic loader.
PT_INTERP = 3


@dataclass(frozen=True)
class Program:
    """A program for Linux."""

    content: bytes
    # The names of its machine for Python and for Node.
    python_machine: str
    node_machine: str
    # A static program runs under every C library.
    is_static: bool


def read(path):
    """Reads a program, whose header tells the machine that runs it."""
    content = Path(path).read_bytes()
    # 64 bits, little-endian.
    if content[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"{path}: not a program for 64-bit Linux")
    (machine,) = struct.unpack_from("<H", content, 18)
    if machine not in MACHINES:
        sys.exit(f"{path}: a program for machine {machine}: known are {sorted(MACHINES)}")
    (first,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    headers = [struct.unpack_from("<I", content, first + size * at)[0] for at in range(count)]
    return Program(content, *MACHINES[machine], PT_INTERP not in headers)


def arguments(usage):
    """The folder for the packages and the programs, from the command line."""
    if len(sys.argv) < 3:
        sys.exit(usage)
    folder = Path(sys.argv[1])
    programs = [read(path) for path in sys.argv[2:]]
    if len({built.node_machine for built in programs}) < len(programs):
        sys.exit("two programs are for the same machine")
    folder.mkdir(parents=True, exist_ok=True)
    return folder, programs


def version():
    """The version of the workspace's packages."""
    manifest = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^\[workspace\.package\]\nversion = "(.+)"$', manifest, re.M)[1]
