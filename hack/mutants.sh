#!/usr/bin/env bash
# Injects bugs, one at a time, and prints whether the tests catch each.
#
#   hack/mutants.sh handwritten [NAME…]
#                                  the patches in hack/mutants, by default all of them
#   hack/mutants.sh simulate [NAME…]
#                                  the patches in hack/mutants/simulated, and those in hack/mutants
#                                  with the line `Simulated: yes`, under the simulation alone
#   hack/mutants.sh sample [SIZE]  a sample of the mutants of cargo-mutants, by default 150;
#                                  SEED=n draws another sample
#
# A patch begins with a description and the packages whose tests must catch it; with the line
# `Plans: fence` or `Plans: opt-ins` the simulation runs plans of that kind. The script works on
# a copy of the tracked files in target/mutants, and shares the build results.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
cargo=${CARGO:-cargo}
export CARGO_TARGET_DIR
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$CARGO_TARGET_DIR/mutants
tree=$work/tree
packages=(kube-apimachinery statefulset-client statefulset-controller-util statefulset-history
	statefulset-pod-control statefulset-opt-ins statefulset-set-control
	statefulset-controller
	statefulset-controller-manager)

# A mutant may make a test hang, or a simulation.
timeout_seconds=300
simulation_seconds=1200

copy() {
	rm -rf "$tree"
	mkdir -p "$tree"
	# With new times: otherwise cargo takes the last run's mutant for up to date.
	git ls-files -z | tar --null --files-from=- --create |
		tar --extract --touch --directory="$tree"
}

# Prints the packages whose tests must catch these patches.
packages_of() {
	sed -n 's/^Tests: //p' "$@" | tr ' ' '\n' | sort -u
}

# Builds, and runs, the tests of the packages in the copy.
builds() {
	"$cargo" test --quiet --locked --offline --tests --no-run "${@/#/--package=}" >"$work/log" 2>&1
}

pass() {
	timeout "$timeout_seconds" \
		"$cargo" test --quiet --locked --offline --tests "${@/#/--package=}" >"$work/log" 2>&1
}

handwritten() {
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
		echo 'the tests fail without a mutant: fix them first' >&2
		exit 1
	fi
	for patch in "${patches[@]}"; do
		local name
		name=$(basename "$patch" .patch)
		mapfile -t needed < <(packages_of "$patch")
		if ! patch --quiet --strip=1 --fuzz=0 --forward <"$patch"; then
			echo "$name: the patch no longer applies: regenerate it" >&2
			exit 1
		fi
		if ! builds "${needed[@]}"; then
			cat "$work/log"
			survivors=$((survivors + 1))
			echo "INVALID  $name: the mutant does not build: regenerate the patch"
		elif pass "${needed[@]}"; then
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

# Simulates seeds, and then the plans of known bugs. Prints the rules that broke, and the first seed
# or plan that broke one. Fails if none broke, with 2 if the runs don't end: that is no verdict. With
# --fence or --opt-ins the seeds have plans of that kind, and the known bugs' plans are left out.
broken() {
	local done=0 count status rules seed plan kind=${*#--}
	for count in 10 50 150 300; do
		status=0
		timeout "$simulation_seconds" "$CARGO_TARGET_DIR/debug/simulate" seeds --first $((done + 1)) \
			--count $((count - done)) "$@" >"$work/log" 2>&1 || status=$?
		rules=$(sed -n 's/^rule \(.*\) broken in .*/\1/p' "$work/log" | paste -sd, | sed 's/,/, /g')
		seed=$(sed -n 's/^\(simulate: \)\?seed \([0-9]*\)[ :].*/\2/p' "$work/log" | sort -n | head -n 1)
		if [ -n "$seed" ]; then
			echo "${rules:-not counted}; ${kind:+$kind }seed $seed"
			return
		elif [ "$status" -eq 124 ]; then
			echo "no end of seeds $((done + 1)) to $count within $simulation_seconds s"
			return 2
		elif [ "$status" -ne 0 ]; then
			echo "a run crashes; ${kind:+$kind }seed $((done + 1))"
			return
		fi
		done=$count
	done
	[ -z "$kind" ] || return 1
	for plan in "$root"/test/simulation/regressions/*.json; do
		if ! timeout "$simulation_seconds" "$CARGO_TARGET_DIR/debug/simulate" run --plan "$plan" \
			>"$work/log" 2>&1; then
			echo "$(sed -n 's/^\([A-Z]-[0-9]*\) at .*/\1/p' "$work/log" | head -n 1); $(basename "$plan")"
			return
		fi
	done
	return 1
}

# Prints the options of `simulate seeds` for a patch.
plans_of() {
	sed -n 's/^Plans: /--/p' "$1"
}

simulate() {
	local patches=() names=("$@") survivors=0 status found=() kinds=() kind
	if [ $# -eq 0 ]; then
		patches=("$root"/hack/mutants/simulated/*.patch)
		mapfile -t -O "${#patches[@]}" patches < <(grep -l '^Simulated: yes$' "$root"/hack/mutants/*.patch)
	else
		for name in "${names[@]}"; do
			patches+=("$(find "$root/hack/mutants" -name "$name.patch")")
		done
	fi
	export CARGO_INCREMENTAL=1
	copy
	cd "$tree"
	"$cargo" build --quiet --locked --offline --package simulation
	mapfile -t kinds < <(for patch in "${patches[@]}"; do plans_of "$patch" | grep . || echo; done | sort -u)
	for kind in "${kinds[@]}"; do
		status=0
		seed=$(broken ${kind:+"$kind"}) || status=$?
		if [ "$status" -ne 1 ]; then
			echo "the simulation fails without a mutant: $seed" >&2
			exit 1
		fi
	done
	for patch in "${patches[@]}"; do
		local name seed
		name=$(basename "$patch" .patch)
		if ! patch --quiet --strip=1 --fuzz=0 --forward <"$patch"; then
			echo "$name: the patch no longer applies: regenerate it" >&2
			exit 1
		fi
		status=0
		if ! "$cargo" build --quiet --locked --offline --package simulation >"$work/log" 2>&1; then
			cat "$work/log"
			status=1 seed='the mutant does not build: regenerate the patch'
		else
			kind=$(plans_of "$patch")
			seed=$(broken ${kind:+"$kind"}) || status=$?
		fi
		if [ "$status" -eq 0 ]; then
			echo "killed   $name ($seed)"
			found+=("$name | ${seed/; / | }")
		else
			survivors=$((survivors + 1))
			echo "SURVIVED $name${seed:+ ($seed)}"
		fi
		patch --quiet --strip=1 --reverse <"$patch"
	done
	echo "$((${#patches[@]} - survivors)) of ${#patches[@]} killed"
	if [ $# -eq 0 ]; then
		record "${found[@]}"
	fi
	[ "$survivors" -eq 0 ]
}

# Writes the rules and seeds that `make fmt` puts into docs/mutants.md, below the file's comment.
record() {
	local file=$root/hack/mutants/first_seeds.txt
	{
		grep '^#' "$file"
		printf '%s\n' "$@" | LC_ALL=C sort
	} >"$work/first_seeds.txt"
	mv "$work/first_seeds.txt" "$file"
}

# Orders the mutants by a hash of the name under the seed, so that a new or removed one leaves the
# others in the sample. (cargo-mutants also adds one mutant per omitted struct field.)
sample() {
	local size=${1:-150} listed chosen=() options=("${packages[@]/#/--package=}")
	# Test code.
	for path in fake.rs 'fake/**' 'testing/**' 'tests/**'; do
		options+=(--exclude "**/$path")
	done
	listed=$("$cargo" mutants --list "${options[@]}")
	while read -r name; do
		chosen+=(--re "^$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$name")\$")
	done < <(sort --random-sort --random-source=<(yes "${SEED:-1}") <<<"$listed" | head -n "$size")
	# cargo-mutants copies the tree elsewhere, so it cannot share the build results.
	# Some mutants are in code behind a feature.
	env -u CARGO_TARGET_DIR "$cargo" mutants "${options[@]}" "${chosen[@]}" --all-features \
		--no-shuffle --output "$work" --timeout 120 -- --tests
}

mkdir -p "$work"
case ${1:-} in
handwritten | simulate | sample) "$@" ;;
*)
	sed -n '2,/^set/s/^# \?//p' "$0" >&2
	exit 2
	;;
esac
