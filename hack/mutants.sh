#!/usr/bin/env bash
# Makes mistakes on purpose, one at a time, and tells which of them the tests notice.
#
#   hack/mutants.sh made [NAME…]   those kept in hack/mutants, all of them unless named
#   hack/mutants.sh sample [SIZE]  a sample of what cargo-mutants thinks of, 150 unless said
#                                  otherwise; SEED=n draws another one
#
# A mistake is a patch, under what it stands for and the packages whose tests must notice it. The
# work is done on a copy of what git tracks, in target/mutants; the results of builds are shared.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
cargo=${CARGO:-cargo}
export CARGO_TARGET_DIR
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$CARGO_TARGET_DIR/mutants
tree=$work/tree
packages=(kube-apimachinery statefulset-client statefulset-controller-util statefulset-history
	statefulset-pod-control statefulset-set-control statefulset-controller
	statefulset-controller-manager)

# A mistake may keep a test from ending.
timeout_seconds=300

copy() {
	rm -rf "$tree"
	mkdir -p "$tree"
	git ls-files -z | tar --null --files-from=- --create | tar --extract --directory="$tree"
}

# The packages whose tests must notice the mistakes of these patches.
packages_of() {
	sed -n 's/^Tests: //p' "$@" | tr ' ' '\n' | sort -u
}

# In the copy: whether the tests of the packages build, and whether they pass.
builds() {
	"$cargo" test --quiet --locked --offline --tests --no-run "${@/#/--package=}" >"$work/log" 2>&1
}

pass() {
	timeout "$timeout_seconds" \
		"$cargo" test --quiet --locked --offline --tests "${@/#/--package=}" >"$work/log" 2>&1
}

made() {
	local patches=() names=("$@") needed survivors=0
	if [ $# -eq 0 ]; then
		patches=("$root"/hack/mutants/*.patch)
	else
		patches=("${names[@]/#/$root/hack/mutants/}")
		patches=("${patches[@]/%/.patch}")
	fi
	mapfile -t needed < <(packages_of "${patches[@]}")
	copy
	cd "$tree"
	if ! builds "${needed[@]}" || ! pass "${needed[@]}"; then
		cat "$work/log"
		echo 'the tests fail without any mistake: mend them first' >&2
		exit 1
	fi
	for patch in "${patches[@]}"; do
		local name
		name=$(basename "$patch" .patch)
		mapfile -t needed < <(packages_of "$patch")
		if ! patch --quiet --strip=1 --fuzz=0 --forward <"$patch"; then
			echo "$name: the patch no longer fits the code: renew it" >&2
			exit 1
		fi
		if ! builds "${needed[@]}"; then
			cat "$work/log"
			echo "$name: the mistake doesn't build: renew the patch" >&2
			exit 1
		fi
		if pass "${needed[@]}"; then
			survivors=$((survivors + 1))
			echo "SURVIVED $name"
		else
			echo "killed   $name"
		fi
		patch --quiet --strip=1 --reverse <"$patch"
	done
	echo "$((${#patches[@]} - survivors)) of ${#patches[@]} killed"
	[ "$survivors" -eq 0 ]
}

# The order is that of a hash of each name under the seed, so that a mistake that comes or goes
# leaves the others in the sample. (cargo-mutants adds all fields that it leaves out of structs.)
sample() {
	local size=${1:-150} listed chosen=() options=("${packages[@]/#/--package=}")
	# What is there for tests only.
	for path in fake.rs 'fake/**' 'testing/**' 'upstream/**'; do
		options+=(--exclude "**/$path")
	done
	listed=$("$cargo" mutants --list "${options[@]}")
	while read -r name; do
		chosen+=(--re "^$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$name")\$")
	done < <(sort --random-sort --random-source=<(yes "${SEED:-1}") <<<"$listed" | head -n "$size")
	# The build's results can't be shared with a tree that another tool copies.
	# Without its features a package lacks what a mistake is made in.
	env -u CARGO_TARGET_DIR "$cargo" mutants "${options[@]}" "${chosen[@]}" --all-features \
		--no-shuffle --output "$work" --timeout 120 -- --tests
}

mkdir -p "$work"
case ${1:-} in
made | sample) "$@" ;;
*)
	sed -n '2,/^set/s/^# \?//p' "$0" >&2
	exit 2
	;;
esac
