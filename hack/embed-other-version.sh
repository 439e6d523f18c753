#!/usr/bin/env bash
# Compiles the code of docs/embedding.md and the embedding example with another Kubernetes version,
# in a package outside the workspace with only the page's dependencies.
#
#   hack/embed-other-version.sh [FEATURE]    default: v1_34
#
# It uses the workspace's Cargo.lock, so it downloads nothing after a build of the workspace.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-v1_34}
cargo=${CARGO:-cargo}
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
package=$target/embed-other-version
page=docs/embedding.md

# Prints the code blocks of a language; each Rust block becomes a module, without hidden lines.
blocks() {
    awk -v language="$1" '
        $0 == "```" language || $0 == "```" language ",no_run" { inside = 1; if (language == "rust") print "mod block" ++count " {"; next }
        inside && $0 == "```" { inside = 0; if (language == "rust") print "}"; next }
        inside && !/^# / { print }
    ' "$page"
}

rm -rf "$package/src"
mkdir -p "$package/src"
cp Cargo.lock "$package/Cargo.lock"
cp crates/controller/examples/embed.rs "$package/src/main.rs"
{
    echo '//! The code of the page, never called.'
    echo '#![allow(dead_code)]'
    blocks rust
} >"$package/src/lib.rs"
{
    cat <<END
[package]
name = "embed-other-version"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]
resolver = "3"

END
    blocks toml | sed "s|…/crates|$root/crates|; s|\"v1_[0-9]*\"|\"$version\"|"
    echo 'anyhow = "1" # only for the example'
} >"$package/Cargo.toml"

for needed in "$version" "$root/crates/controller" prometheus; do
    grep -q "$needed" "$package/Cargo.toml" || {
        echo "$page: its dependencies lack $needed" >&2
        exit 1
    }
done
grep -q '^mod block' "$package/src/lib.rs" || { echo "$page: no Rust code blocks" >&2; exit 1; }

cd "$package"
# Adding the package to the lock makes Cargo look for newer versions, unless it is offline.
offline=--offline
"$cargo" metadata --offline --format-version=1 >/dev/null 2>&1 || offline=
"$cargo" check --quiet $offline --target-dir "$target"
