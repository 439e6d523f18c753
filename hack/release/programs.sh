#!/usr/bin/env bash
# Builds the programs of a release, static on Linux, one folder for each platform:
#
#   hack/release/programs.sh FOLDER     writes FOLDER/TARGET/PROGRAM and FOLDER/not-built
#
# PROGRAMS and TARGETS limit the selection. JOBS platforms are built at a time, by default as many as
# there are processors: the long last step of a program uses one, and up to 6 GB. The profile is the workspace's; for a trial of the scripts,
# CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 is much faster.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=hack/release/common.sh
. hack/release/common.sh

[ $# -eq 1 ] || fail 'pass the folder for the programs'
$rustc --version >/dev/null || fail "the compiler doesn't run: $rustc; choose another with RUSTC"
folder=$1
rm -rf "$folder"
mkdir -p "$folder"
: >"$folder/not-built"
cargo_home=${CARGO_HOME:-$HOME/.cargo}

# The C compiler for a platform.
c_compiler() {
	case $1 in
	"$($rustc --print host-tuple)") echo cc ;;
	aarch64-unknown-linux-gnu) echo aarch64-linux-gnu-gcc ;;
	x86_64-unknown-linux-gnu) echo x86_64-linux-gnu-gcc ;;
	x86_64-pc-windows-gnu) echo x86_64-w64-mingw32-gcc ;;
	*-apple-darwin) [ "$(uname -s)" = Darwin ] && echo cc || echo missing ;;
	esac
}

# Prints why this machine can't build for a platform; nothing if it can.
obstacle() {
	local compiler library
	compiler=$(c_compiler "$1")
	library=$($rustc --print target-libdir --target "$1")
	if [ "$compiler" = missing ]; then
		echo "needs macOS, whose licence ties its libraries to it"
	elif ! compgen -G "$library/libstd-*" >/dev/null; then
		echo "needs Rust's standard library: rustup target add $1, or hack/release/debian-rust.sh"
	elif ! command -v "$compiler" >/dev/null; then
		echo "needs the C compiler $compiler"
	elif [[ $1 == *-linux-gnu ]] && [ "$("$compiler" -print-file-name=libc.a)" = libc.a ]; then
		echo "needs libc.a for $compiler"
	fi
}

# The program has no path of this machine in it, and on Linux needs no library.
build() {
	local program=$1 triple=$2 compiler variable prefix flags=()
	compiler=$(c_compiler "$triple")
	variable=${triple//-/_}
	# A folder for each platform, since cargo builds one at a time in a folder. The last prefix wins.
	local work=$build/cargo-$triple
	for prefix in "$root=." "$target=target" "$work=target" "$cargo_home=cargo"; do
		flags+=("--remap-path-prefix=$prefix")
	done
	local c_flags="${flags[*]/#--remap-path-prefix=/-ffile-prefix-map=}"
	flags+=(-C "linker=$compiler")
	case $triple in
	*-linux-gnu) flags+=(-C target-feature=+crt-static) ;;
	# Its symbols name temporary files, with random names and the folder.
	*-windows-*) flags+=(-C strip=symbols) ;;
	esac
	local features=()
	[ "$program" = kube-test-control-plane ] && features=(--features cli)
	env CARGO_ENCODED_RUSTFLAGS="$(IFS=$'\x1f' && echo "${flags[*]}")" RUSTC="$rustc" \
		"CC_$variable=$compiler" "CFLAGS_$variable=$c_flags" CARGO_INCREMENTAL=0 \
		$cargo build --release --locked --quiet -p "$program" --bin "$program" "${features[@]}" \
		--target "$triple" --target-dir "$work"
	local name=$program
	case $triple in *-windows-*) name+=.exe ;; esac
	mkdir -p "$folder/$triple"
	cp "$work/$triple/release/$name" "$folder/$triple/$name"
}

# Builds these programs for one platform.
build_all() {
	local triple=$1 program
	for program in "${@:2}"; do
		step "$program for $triple"
		build "$program" "$triple"
	done
}

# After a failure the other platforms' next programs aren't begun.
trap 'jobs -p | xargs --no-run-if-empty kill 2>/dev/null' EXIT
running=0
for triple in $linux $other; do
	planned=()
	for program in ${PROGRAMS:-$all_programs}; do
		[[ " $(targets_of "$program") " == *" $triple "* ]] || continue
		if [ -n "${TARGETS:-}" ] && [[ " $TARGETS " != *" $triple "* ]]; then
			reason='not in TARGETS'
		else
			reason=$(obstacle "$triple")
		fi
		if [ -n "$reason" ]; then
			echo "programs.sh: $program for $triple is not built: $reason"
			echo "$program $triple $reason" >>"$folder/not-built"
		else
			planned+=("$program")
		fi
	done
	[ ${#planned[@]} -gt 0 ] || continue
	if [ "$running" -ge "${JOBS:-$(nproc)}" ]; then
		wait -n
		running=$((running - 1))
	fi
	build_all "$triple" "${planned[@]}" &
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
	wait -n
	running=$((running - 1))
done
