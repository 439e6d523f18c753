#!/usr/bin/env bash
# Writes the bill of materials (CycloneDX) of every built program, with the crates of its platform:
#
#   hack/release/sboms.sh PROGRAMS FOLDER     reads PROGRAMS/TARGET, writes FOLDER/TARGET/PROGRAM.cdx.json
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=hack/release/common.sh
. hack/release/common.sh

[ $# -eq 2 ] || fail 'pass the folder of the programs and the one for the bills'
rm -rf "$2"
# The Makefile installs cargo-cyclonedx and knows the folder of each program.
for folder in "$1"/*/; do
	triple=$(basename "$folder")
	mkdir -p "$2/$triple"
	for program in "$folder"*; do
		name=$(basename "${program%.exe}")
		${MAKE:-make} --no-print-directory sbom PROGRAM="$name" SBOM_TARGET="$triple" \
			SBOM="$2/$triple/$name.cdx.json" >/dev/null
	done
done
