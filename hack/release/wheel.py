#!/usr/bin/env python3
"""Builds wheels with the program kube-test-control-plane, one for each program.

    hack/release/wheel.py FOLDER PROGRAM…

Prints the path of each wheel in FOLDER. The same inputs give the same bytes. A wheel with a static
program has tags for every Linux distribution; one with a dynamically linked program is only for
machines like this one, and PyPI rejects it.
"""

import base64
import hashlib
import re
import sys
import zipfile

# No compiled copy of the module next to it.
sys.dont_write_bytecode = True

import program  # noqa: E402

MODULE = "kube_test_control_plane"
SOURCES = program.ROOT / "crates" / "test-control-plane"
# The earliest time of an archive.
TIME = (1980, 1, 1, 0, 0, 0)


def version():
    """The version in Python's form: 0.2.0-rc.1 is 0.2.0rc1."""
    return re.sub(r"-(alpha|beta|rc)\.?", lambda it: {"alpha": "a", "beta": "b"}.get(it[1], "rc"), program.version())


def tags(built):
    """The platforms of a wheel with this program."""
    machine = built.python_machine
    if not built.is_static:
        return [f"linux_{machine}"]
    return [f"{it}_{machine}" for it in ("manylinux2014", "manylinux_2_17", "musllinux_1_1")]


def metadata():
    return f"""Metadata-Version: 2.4
Name: {program.NAME}
Version: {version()}
Summary: {program.SUMMARY}
Keywords: {",".join(program.KEYWORDS)}
License-Expression: {program.LICENSE}
License-File: LICENSE
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Testing
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{(SOURCES / "python" / "README.md").read_text()}"""


def contents(built):
    """The files of the wheel by name, except for the list of files."""
    info = f"{MODULE}-{version()}.dist-info"
    module = SOURCES / "python" / MODULE
    names = ["__init__.py", "__main__.py", "py.typed"]
    files = {f"{MODULE}/{name}": (module / name).read_bytes() for name in names}
    files[f"{MODULE}/bin/{program.NAME}"] = built.content
    tagged = "".join(f"Tag: py3-none-{tag}\n" for tag in tags(built))
    wheel = f"Wheel-Version: 1.0\nGenerator: {program.NAME}\nRoot-Is-Purelib: false\n{tagged}"
    script = f"[console_scripts]\n{program.NAME} = {MODULE}.__main__:main\n"
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/entry_points.txt"] = script.encode()
    files[f"{info}/licenses/LICENSE"] = (program.ROOT / "LICENSE").read_bytes()
    return info, files


def record(info, files):
    """The list of files with their digests and sizes."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        lines.append(f"{name},sha256={digest.decode()},{len(content)}\n")
    return "".join([*lines, f"{info}/RECORD,,\n"])


def build(folder, built):
    """Writes the wheel with a program; returns its path."""
    info, files = contents(built)
    files[f"{info}/RECORD"] = record(info, files).encode()
    wheel = folder / f"{MODULE}-{version()}-py3-none-{'.'.join(tags(built))}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            mode = 0o755 if "/bin/" in name else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3  # Unix, also if this runs elsewhere
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, program.COMPRESSION)
    return wheel


def main():
    folder, programs = program.arguments(__doc__)
    for built in programs:
        print(build(folder, built))


if __name__ == "__main__":
    main()
