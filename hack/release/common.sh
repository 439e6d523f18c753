# Settings shared by the scripts of a release; they run in the repository's root.
# shellcheck shell=bash

cargo=${CARGO:-cargo}
rustc=${RUSTC:-rustc}
case $cargo in
# The same toolchain for rustc.
'cargo +'*) export RUSTUP_TOOLCHAIN=${cargo#cargo +} ;;
esac
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
# shellcheck disable=SC2034
build=$target/release-build
root=$PWD

step() { printf '== %s (%s s)\n' "$1" "$SECONDS"; }

fail() {
	echo "$(basename "$0"): $1" >&2
	exit 1
}

# Programs with the platforms for which they are built.
linux='x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu'
other='x86_64-pc-windows-gnu x86_64-apple-darwin aarch64-apple-darwin'
targets_of() {
	case $1 in
	kubectl-sts) echo "$linux $other" ;;
	*) echo "$linux" ;;
	esac
}
# shellcheck disable=SC2034
all_programs='statefulset-controller-manager kubectl-sts kube-test-control-plane'
