#!/usr/bin/env python3
"""Builds the npm packages of the program kube-test-control-plane: one for each program, and the
main package, which depends on the one of the user's platform.

    hack/release/npm.py FOLDER PROGRAM…

Prints the path of each package in FOLDER. The same inputs give the same bytes. Publish the main
package, which is the last one, after the others.
"""

import gzip
import io
import json
import sys
import tarfile

# No compiled copy of the module next to it.
sys.dont_write_bytecode = True

import program  # noqa: E402

SOURCES = program.ROOT / "crates" / "test-control-plane" / "node"
# The time of all files in npm's own packages: 1985-10-26.
TIME = 499162500


def manifest(name, **members):
    common = {"name": name, "version": program.version(), "license": program.LICENSE}
    return json.dumps(common | members, indent=2).encode() + b"\n"


def package(folder, name, files):
    """Writes a package with files by name, each with its mode; returns its path."""
    path = folder / f"{name}-{program.version()}.tgz"
    licence = ((program.ROOT / "LICENSE").read_bytes(), 0o644)
    # No file name and no time in the header.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", program.COMPRESSION, file, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for member, (content, mode) in sorted((files | {"LICENSE": licence}).items()):
                entry = tarfile.TarInfo(f"package/{member}")
                entry.size, entry.mode, entry.mtime = len(content), mode, TIME
                archive.addfile(entry, io.BytesIO(content))
    return path


def platform_package(folder, built):
    """Writes the package with one program; returns its name and path."""
    name = f"{program.NAME}-linux-{built.node_machine}"
    description = f"The program of the package {program.NAME} for Linux on {built.node_machine}."
    limits = {"os": ["linux"], "cpu": [built.node_machine]}
    if not built.is_static:
        limits["libc"] = ["glibc"]
    text = f"# {name}\n\n{description}\nInstall that package instead of this one.\n"
    files = {
        "package.json": (manifest(name, description=description, **limits), 0o644),
        "README.md": (text.encode(), 0o644),
        f"bin/{program.NAME}": (built.content, 0o755),
    }
    return name, package(folder, name, files)


def main_package(folder, platforms):
    """Writes the package that users install; returns its path."""
    members = manifest(
        program.NAME,
        description=program.SUMMARY,
        keywords=program.KEYWORDS,
        main="index.js",
        types="index.d.ts",
        bin={program.NAME: "cli.js"},
        engines={"node": ">=18"},
        optionalDependencies=dict.fromkeys(platforms, program.version()),
    )
    files = {"package.json": (members, 0o644)}
    for name in ["README.md", "index.js", "index.d.ts", "cli.js"]:
        files[name] = ((SOURCES / name).read_bytes(), 0o755 if name == "cli.js" else 0o644)
    return package(folder, program.NAME, files)


def main():
    folder, programs = program.arguments(__doc__)
    platforms = [platform_package(folder, built) for built in programs]
    for _, path in platforms:
        print(path)
    print(main_package(folder, [name for name, _ in platforms]))


if __name__ == "__main__":
    main()
