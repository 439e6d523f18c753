#!/usr/bin/env bash
# Builds everything that a release publishes, into target/release-VERSION:
#
#   hack/release.sh VERSION
#
# Settings, all of them optional:
#
#   SOURCE=URL     address of the repository, for labels and the provenance
#   DOWNLOADS=URL  address of the folder that the files will be downloaded from, for krew and Homebrew
#   IMAGES=NAME    registry and path of the images, without the program's name, for the chart
#   RUSTC=PATH     the compiler; hack/release/debian-rust.sh unpacks one with standard libraries for
#                  other platforms
#   JOBS=N         platforms that are built at a time, each with up to 6 GB; by default the processors
#   ALLOW_DIRTY=1  builds uncommitted changes, which no release should
#
# A program is skipped, with one line that says why, if this machine can't build it for a platform;
# MANIFEST lists it as not built. The same commit and compiler give the same bytes in any folder, so
# nothing here reads the time, and the programs aren't trained like those of hack/dist.sh: the counts
# of a run under load differ from run to run.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=hack/release/common.sh
. hack/release/common.sh

[ $# -eq 1 ] || fail 'pass the version: hack/release.sh 0.1.0'
version=$1
stated=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
[ "$version" = "$stated" ] ||
	fail "the workspace has version $stated: pass that one, or change Cargo.toml first"
if [ -z "${ALLOW_DIRTY:-}" ] && [ -n "$(git status --porcelain)" ]; then
	fail 'there are uncommitted changes: commit them, or set ALLOW_DIRTY=1 for a trial'
fi

commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
source=${SOURCE:-https://source.invalid/statefulset}
downloads=${DOWNLOADS:-$source/releases/download/v$version}
out=$target/release-$version
programs=$build/programs
packed=$build/packed

step 'build the programs'
hack/release/programs.sh "$programs"
step 'write the bills of materials'
hack/release/sboms.sh "$programs" "$build/sboms"
step 'write man pages and completions'
hack/release/texts.sh "$programs" "$build/texts"

step 'build the packer'
# Compression takes minutes without optimization.
CARGO_PROFILE_RELEASE_LTO=off $cargo build --release --locked --quiet -p release --target-dir "$target"
packer=$target/release/release
rm -rf "$packed"
mkdir -p "$packed"
step 'pack archives, images, chart and manifests'
"$packer" pack --version "$version" --commit "$commit" --source "$source" \
	--downloads "$downloads" ${IMAGES:+--images "$IMAGES"} --programs "$programs" \
	--sboms "$build/sboms" --texts "$build/texts" "$packed"
# The packages of the control plane for Python and Node.
for kind in wheel npm; do
	step "pack for $kind"
	"hack/release/$kind.py" "$packed" "$programs"/*-linux-gnu/kube-test-control-plane >/dev/null
done
step 'write the provenance, checksums and the manifest'
"$packer" seal --version "$version" --commit "$commit" --source "$source" \
	--compiler "$($rustc --version)" --not-built "$programs/not-built" "$packed"

rm -rf "$out"
mv "$packed" "$out"
step 'done'
cat "$out/MANIFEST"
echo "in $out"
