#!/usr/bin/env bash
# Tests the control plane with another major version of kube than the workspace's, in a package
# outside the workspace: the client calls the control plane as a tower service.
#
#   hack/other-kube.sh [KUBE [K8S_OPENAPI [FEATURE]]]    default: 3 0.27 v1_34
#
# Cargo downloads that version.
set -euo pipefail
cd "$(dirname "$0")/.."

kube=${1:-3}
k8s_openapi=${2:-0.27}
feature=${3:-v1_34}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
package=$target/other-kube

mkdir -p "$package/src" "$package/tests"
cat >"$package/Cargo.toml" <<END
[package]
name = "other-kube"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]
resolver = "3"

[dev-dependencies]
futures = { version = "0.3", default-features = false }
k8s-openapi = { version = "$k8s_openapi", features = ["$feature"] }
kube = { version = "$kube", default-features = false, features = ["client"] }
kube-test-control-plane = { path = "$PWD/crates/test-control-plane", default-features = false }
tokio = { version = "1", features = ["macros", "rt", "test-util"] }
END
echo '//! Holds the test.' >"$package/src/lib.rs"
cp crates/test-control-plane/tests/cluster/any_kube.rs "$package/tests/any_kube.rs"
"${CARGO:-cargo}" test --quiet --manifest-path "$package/Cargo.toml" --target-dir "$target" --test any_kube
