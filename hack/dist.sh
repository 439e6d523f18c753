#!/usr/bin/env bash
# Builds the static program for distribution: target/dist/statefulset-controller-manager. In about a
# quarter of an hour on two cores, it
#
#   1. builds a program that counts its branches, and runs it under load on the test control plane,
#   2. builds the program again, optimized for these counts, with the blocks that never ran split off,
#   3. lists the functions that run, under valgrind, and links the program again with these side by
#      side, so that few pages of it are resident.
#
#   hack/dist.sh            needs valgrind and `rustup component add llvm-tools`
#   hack/dist.sh --plain    only the static program, in 4 minutes
#
# The C library is glibc: musl's allocator and memory functions take a quarter more CPU time.
# RUSTFLAGS have no effect.
set -euo pipefail
cd "$(dirname "$0")/.."

program=statefulset-controller-manager
cargo=${CARGO:-cargo}
case $cargo in
# The same toolchain for rustc.
'cargo +'*) export RUSTUP_TOOLCHAIN=${cargo#cargo +} ;;
esac
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
folder=$target/dist
triple=$(rustc --print host-tuple)
tools=$(rustc --print sysroot)/lib/rustlib/$triple/bin

case ${1:-} in
'') trained=yes ;;
--plain) trained= ;;
*)
	echo "hack/dist.sh: unknown argument '$1': takes none or --plain" >&2
	exit 2
	;;
esac

require() {
	if ! command -v "$1" >/dev/null 2>&1; then
		echo "hack/dist.sh: $(basename "$1") is missing: $2, or build with --plain" >&2
		exit 1
	fi
}

if [ "$(uname -s)" != Linux ] || [ "$(cc -print-file-name=libc.a)" = libc.a ]; then
	echo 'hack/dist.sh: a static program needs Linux and libc.a: install libc6-dev (Debian) or glibc-static (Fedora)' >&2
	exit 1
fi

step() { printf '== %s (%s s)\n' "$1" "$SECONDS"; }

# Arguments before `--` are flags for all crates, those after it for the program alone.
build() {
	local flags=(-C target-feature=+crt-static)
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
		$cargo rustc --release --locked --quiet -p $program --bin $program --target "$triple" \
		--target-dir "$folder" "$@"
}

built=$triple/release/$program

# Runs the built program, with a command in front of it and a flag behind it, as the controller while
# the driver creates, rolls, scales and deletes sets. A relative path needs no quotes.
load() (
	cd "$folder"
	"$target/debug/bench" load --rounds=1 --idle-seconds=1 --controller "${1:+$1 }./$built \
--kubeconfig=\"\$KUBECONFIG\" --secure-port=0 --kube-api-qps=10000 --kube-api-burst=10000 $2" \
		"${@:3}" >load.txt
)

unset LLVM_PROFILE_FILE
mkdir -p "$folder"

if [ -z "$trained" ]; then
	step 'build the program'
	build
else
	require valgrind 'install it, for example with apt-get install valgrind'
	require "$tools/llvm-profdata" 'run rustup component add llvm-tools'
	require "$tools/gcc-ld/ld.lld" 'install Rust with rustup'
	rm -rf "$folder/counts" "$folder/callgrind".*

	step 'build the test control plane and the load driver'
	$cargo build --locked --quiet -p bench -p kube-test-control-plane \
		--features kube-test-control-plane/cli --target-dir "$target"

	step 'build the program with counters'
	build -C "profile-generate=$folder/counts"
	step 'count branches under load'
	load '' --leader-elect=false
	load '' --leader-elect=true --policy=Parallel --sets=20 --replicas=100
	"$tools/llvm-profdata" merge --output="$folder/counts.profdata" "$folder/counts"

	# The counts of inlined code are rounded down, so only a block that never ran is cold.
	optimized=(
		-C "profile-use=$folder/counts.profdata"
		-C llvm-args=-profile-summary-cold-count=0
		-C llvm-args=-enable-split-machine-functions
		-C llvm-args=-mfs-psi-cutoff=0
	)
	step 'build the optimized program'
	build "${optimized[@]}"
	step 'list the functions that run'
	load 'valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=callgrind.%p' \
		--leader-elect=false --sets=40
	"$tools/llvm-nm" --defined-only --print-size "$folder/$built" >"$folder/symbols"
	"$target/debug/bench" function-order "$folder/symbols" "$folder/callgrind".* >"$folder/functions"

	# Links with rustup's lld, because GNU ld cannot order functions.
	step 'link the program with these functions side by side'
	build "${optimized[@]}" -- -C "link-arg=-B$tools/gcc-ld" -C link-arg=-fuse-ld=lld \
		-C link-arg=-Wl,--no-warn-symbol-ordering \
		-C link-arg=-Xlinker -C "link-arg=--symbol-ordering-file=$folder/functions"
fi

# A running program can't be overwritten, but replaced.
cp "$folder/$built" "$folder/$program.new"
mv "$folder/$program.new" "$folder/$program"
step 'done'
"$folder/$program" --version
ls -l "$folder/$program"
