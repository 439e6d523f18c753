#!/usr/bin/env bash
# Compares a project that tests its operator on the control plane with one that depends only on kube:
# processor time and wall time of a debug build of the tests from scratch, number of crates, and size
# of the stripped test program.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
cargo=${CARGO:-cargo}
newcomer=$root/crates/test-control-plane/tests/cluster/newcomer.rs
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
export CARGO_INCREMENTAL=0
export CARGO_TARGET_DIR=$work/target

# Prints one row: project NAME [DEPENDENCY…]
project() {
	local name=$1 folder=$work/project
	shift
	rm -rf "$folder" "$CARGO_TARGET_DIR"
	mkdir -p "$folder/src" "$folder/tests"
	cp "$root/Cargo.lock" "$folder"
	cat >"$folder/Cargo.toml" <<-TOML
		[package]
		name = "project"
		edition = "2024"

		[dependencies]
		futures = "0.3"
		k8s-openapi = { version = "0.29", features = ["v1_36"] }
		kube = { version = "5", features = ["derive", "runtime"] }
		schemars = "1"
		serde = { version = "1", features = ["derive"] }
		serde_json = "1"
		tokio = { version = "1", features = ["full", "test-util"] }
		$(printf '%s\n' "$@")
	TOML
	touch "$folder/src/lib.rs"
	if [ $# -gt 0 ]; then
		cp "$newcomer" "$folder/tests/operator.rs"
	else
		# The operator without its test, which needs the control plane.
		sed '/^use kube_test_control_plane/d; /^#\[tokio::test/,$d' "$newcomer" >"$folder/tests/operator.rs"
		cat >>"$folder/tests/operator.rs" <<-'RUST'
			#[tokio::test]
			#[ignore = "needs a cluster"]
			async fn operator_runs() {
			    let _ = PostParams::default();
			    run(Client::try_default().await.unwrap()).await;
			}
		RUST
	fi
	cd "$folder"
	"$cargo" fetch --quiet
	local TIMEFORMAT='%R %U %S' times
	times=$({ time "$cargo" test --quiet --tests --no-run --offline >"$work/log" 2>&1; } 2>&1) || {
		cat "$work/log" >&2
		exit 1
	}
	local wall user system
	read -r wall user system <<<"$times"
	local crates program
	crates=$("$cargo" tree --offline --edges normal,build --prefix none --no-dedupe | sort -u | wc -l)
	program=$(find "$CARGO_TARGET_DIR/debug/deps" -maxdepth 1 -type f -executable -name 'operator-*')
	strip -o "$work/stripped" "$program"
	printf '| %s | %.0f s | %.0f s | %d | %.1f MB |\n' "$name" \
		"$(echo "$user + $system" | bc)" "$wall" "$crates" \
		"$(echo "$(stat -c %s "$work/stripped") / 1000000" | bc -l)"
}

plane="path = \"$root/crates/test-control-plane\""
echo '| project | processor time | wall time | crates | test program |'
echo '|---|---:|---:|---:|---:|'
project 'kube alone'
project 'with the control plane' "kube-test-control-plane = { $plane }"
project 'with the feature `cel`' "kube-test-control-plane = { $plane, features = [\"cel\"] }"
project 'with the features `cel` and `openapi`' \
	"kube-test-control-plane = { $plane, features = [\"cel\", \"openapi\"] }"
