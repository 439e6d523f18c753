#!/usr/bin/env bash
# Runs kube-rs's own tests that need a cluster against the test control plane: the ignored ones of the
# version in Cargo.lock, in their published sources. Downloads the tests' dependencies; needs
# the headers of OpenSSL, and port 10250 of the loopback address, where the tests expect a kubelet.
#
#   hack/kube-rs-tests.sh    BINARIES=folder with the built program, default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=$(realpath "${CARGO_TARGET_DIR:-target}")
program=$(realpath "${BINARIES:-$target/debug}/kube-test-control-plane")
folder=$target/kube-rs
crates=(kube kube-client kube-core kube-derive kube-runtime)
features=(
	kube/derive kube/runtime kube/ws
	kube-client/{jsonpatch,kubelet-debug,oauth,oidc,openssl-tls,rustls-tls,unstable-client,ws}
)

plane=
finish() {
	if [ -n "$plane" ]; then
		kill "$plane" 2>/dev/null || true
		wait "$plane" 2>/dev/null || true
	fi
}
trap finish EXIT

fail() {
	echo "$1" >&2
	exit 1
}

# A workspace of the published sources, with the versions of Cargo.lock.
version=$(sed -n '/^name = "kube"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)
metadata=$("$cargo" metadata --locked --format-version 1)
mkdir -p "$folder"
cp Cargo.lock "$folder/"
{
	printf '[workspace]\nresolver = "2"\nmembers = ["kube*"]\nexclude = ["target"]\n'
	printf '[profile.dev]\ndebug = false\nincremental = false\n[patch.crates-io]\n'
	for crate in "${crates[@]}"; do
		printf '%s = { path = "%s" }\n' "$crate" "$crate"
	done
} >"$folder/Cargo.toml"
for crate in "${crates[@]}"; do
	manifest=$(grep -o "\"manifest_path\":\"[^\"]*/$crate-$version/Cargo.toml\"" <<<"$metadata" | cut -d'"' -f4)
	[ -n "$manifest" ] || fail "cargo knows no sources of $crate $version"
	rm -rf "${folder:?}/$crate"
	cp -r "$(dirname "$manifest")" "$folder/$crate"
	rm -f "$folder/$crate/Cargo.lock"
done
# Published manifests lack this dependency of the tests.
for crate in kube-client kube-runtime; do
	printf '\n[dev-dependencies.kube]\nversion = "=%s"\nfeatures = ["client", "derive", "runtime", "ws"]\n' \
		"$version" >>"$folder/$crate/Cargo.toml"
done

# The ignored tests: name, and whether the published source has it commented out.
tests=$(find "$folder"/kube*/src -name '*.rs' -exec awk '
	/#\[ignore/ { wanted = 1; if (before ~ /\/\/ *#\[tokio::test/) off = 1 }
	wanted && match($0, /fn [a-z0-9_]+/) {
		print substr($0, RSTART + 3, RLENGTH - 3), (off ? "off" : "on")
		wanted = off = 0
	}
	{ before = $0 }' {} +)
tested=()
for crate in "${crates[@]}"; do
	if grep -qr '#\[ignore' "$folder/$crate/src"; then
		tested+=(-p "$crate")
	fi
done
export CARGO_TARGET_DIR=$folder/target
run() {
	(cd "$folder" && "$cargo" test --lib "${tested[@]}" --features "$(IFS=,; echo "${features[*]}")" "$@")
}
run --no-run

# Pods take a moment to start, as in a cluster: the tests wait for changes that they see.
"$program" --kubelet-port 10250 --start-delay 200ms --kubeconfig-out "$folder/kubeconfig" \
	>"$folder/ready" &
plane=$!
until grep -q '^ready ' "$folder/ready"; do
	kill -0 "$plane" 2>/dev/null || fail "the control plane did not start"
	sleep 0.1
done
log=$folder/log
KUBECONFIG=$folder/kubeconfig run --no-fail-fast -- --ignored --test-threads=1 2>&1 | tee "$log" || true

passed=0 failed=0 left_out=()
while read -r name state; do
	if grep -qE "^test ([a-z0-9_:]+::)?$name \.\.\. ok$" "$log"; then
		passed=$((passed + 1))
	elif [ "$state" = off ]; then
		left_out+=("$name: commented out in the published source")
	else
		echo "failed: $name"
		failed=$((failed + 1))
	fi
done <<<"$tests"
for reason in "${left_out[@]}"; do
	echo "left out: $reason"
done
echo "kube-rs $version: $passed passed, $failed failed, ${#left_out[@]} left out"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
