#!/usr/bin/env bash
# Checks that an embedder chooses the Kubernetes version: compiles the embedding example in a
# package of its own, outside of the workspace, with another version feature of k8s-openapi.
#
#   hack/embed-other-version.sh [FEATURE]    FEATURE is v1_34 unless said otherwise
#
# The workspace's Cargo.lock is used, so nothing is fetched where the workspace has been built.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-v1_34}
cargo=${CARGO:-cargo}
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
package=$target/embed-other-version

mkdir -p "$package/src"
cp Cargo.lock "$package/Cargo.lock"
cp crates/controller/examples/embed.rs "$package/src/main.rs"
cat >"$package/Cargo.toml" <<END
[package]
name = "embed-other-version"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]
resolver = "3"

# The versions are those of Cargo.lock.
[dependencies]
anyhow = "*"
k8s-openapi = { version = "*", default-features = false, features = ["$version"] }
statefulset-client = { path = "$root/crates/client" }
statefulset-controller = { path = "$root/crates/controller" }
tokio = { version = "*", features = ["macros", "rt-multi-thread", "signal"] }
tokio-util = "*"
END

cd "$package"
# Cargo has to add the package to the lock, and looks for newer versions then unless it is offline.
offline=--offline
"$cargo" metadata --offline --format-version=1 >/dev/null 2>&1 || offline=
"$cargo" check --quiet $offline --target-dir "$target"
