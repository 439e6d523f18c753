#!/usr/bin/env bash
# Checks what docs/embedding.md promises: in a package of its own, outside of the workspace, with
# the page's dependencies and nothing else, but another version of Kubernetes, the page's code and
# the embedding example compile.
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
page=docs/embedding.md

# The blocks of a language on the page; each Rust block is a module, without the lines that the
# page doesn't show.
blocks() {
    awk -v language="$1" '
        $0 == "```" language { inside = 1; if (language == "rust") print "mod block" ++count " {"; next }
        inside && $0 == "```" { inside = 0; if (language == "rust") print "}"; next }
        inside && !/^# / { print }
    ' "$page"
}

rm -rf "$package/src"
mkdir -p "$package/src"
cp Cargo.lock "$package/Cargo.lock"
cp crates/controller/examples/embed.rs "$package/src/main.rs"
{
    echo '//! The code of the page, of which nothing is called.'
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
    echo 'anyhow = "1" # of the example alone'
} >"$package/Cargo.toml"

for needed in "$version" "$root/crates/controller" prometheus; do
    grep -q "$needed" "$package/Cargo.toml" || {
        echo "$page: its dependencies don't name $needed" >&2
        exit 1
    }
done
grep -q '^mod block' "$package/src/lib.rs" || { echo "$page: no code" >&2; exit 1; }

cd "$package"
# Cargo has to add the package to the lock, and looks for newer versions then unless it is offline.
offline=--offline
"$cargo" metadata --offline --format-version=1 >/dev/null 2>&1 || offline=
"$cargo" check --quiet $offline --target-dir "$target"
