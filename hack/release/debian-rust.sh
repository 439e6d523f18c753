#!/usr/bin/env bash
# Unpacks Debian's Rust into target/tools/debian-rust, with the standard libraries of the platforms of
# a release, and prints the path of its compiler. For machines whose rustup can't download standard
# libraries:
#
#   make release VERSION=0.1.0 RUSTC=$(hack/release/debian-rust.sh)
#
# Needs Debian 12 or later on amd64 with its ordinary package sources. Installs nothing: it changes no
# file outside that folder. The C compilers and libraries are separate packages: gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross and gcc-mingw-w64-x86-64.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=hack/release/common.sh
. hack/release/common.sh

folder=$target/tools/debian-rust
tree=$folder/tree
library=$tree/usr/lib/rustlib
compiler=$folder/rustc
windows=x86_64-pc-windows-gnu

if ! [ -e "$folder/complete" ]; then
	command -v apt-get >/dev/null || fail 'apt-get is missing: this needs Debian'
	rm -rf "$folder"
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/packages" "$tree"
	# Package lists of its own, so that the machine's know nothing of the other architecture.
	cat >"$folder/apt.conf" <<-CONF
		APT::Architectures { "amd64"; "arm64"; };
		APT::Sandbox::User "root";
		Dir::State::lists "$folder/lists";
		Dir::Cache "$folder/cache";
	CONF
	export APT_CONFIG=$folder/apt.conf
	apt-get update --quiet=2 >&2
	# On Debian 12 the packages of the newest compiler are named -web.
	web=$(apt-cache search --names-only '^rustc-web$' | grep -q . && echo -web || true)
	version=$(apt-cache show --no-all-versions "rustc$web" | sed -n 's/^Version: //p')
	release=$(cut -d. -f1-2 <<<"${version%%+*}")
	(
		cd "$folder/packages"
		apt-get download --quiet=2 "rustc$web" "rust$web-src" \
			"libstd-rust$web-dev:amd64" "libstd-rust$web-dev:arm64" \
			"libstd-rust$web-$release:amd64" "libstd-rust$web-$release:arm64"
		llvm=$(dpkg-deb --field libstd-rust*"$release"_*_amd64.deb Depends | grep -o 'libllvm[0-9]*')
		apt-get download --quiet=2 "$llvm:amd64"
	) >&2
	for package in "$folder"/packages/*.deb; do
		dpkg-deb --extract "$package" "$tree"
	done
	cat >"$compiler" <<-SCRIPT
		#!/bin/sh
		export LD_LIBRARY_PATH="$tree/usr/lib/x86_64-linux-gnu\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
		exec "$tree/usr/bin/rustc" "\$@"
	SCRIPT
	chmod +x "$compiler"

	# Debian has no standard library for Windows, but its source. The two objects begin and end every
	# program, and a program is optimized as a whole with the library's bitcode.
	if command -v x86_64-w64-mingw32-gcc >/dev/null; then
		mkdir -p "$folder/std/src" "$library/$windows/lib"
		printf '[package]\nname = "std-only"\nedition = "2024"\n[workspace]\n' >"$folder/std/Cargo.toml"
		: >"$folder/std/src/lib.rs"
		export RUSTC_BOOTSTRAP=1
		(
			cd "$folder/std"
			env -u CARGO_ENCODED_RUSTFLAGS RUSTC="$compiler" RUSTFLAGS="-C embed-bitcode=yes \
				--remap-path-prefix=$folder=. --remap-path-prefix=$tree/usr/src=/usr/src" \
				$cargo build --release --quiet -Z build-std=std,panic_unwind --target $windows \
				--target-dir target
			rm target/$windows/release/deps/libstd_only-*
		) >&2
		cp "$folder/std/target/$windows/release/deps/"*.rlib "$library/$windows/lib/"
		for object in rsbegin rsend; do
			"$compiler" --target $windows --edition=2024 --emit=obj -A warnings \
				-C panic=abort \
				-o "$library/$windows/lib/$object.o" "$library/src/rust/library/rtstartup/$object.rs"
		done
		rm -rf "$folder/std"
	fi
	rm -rf "$folder/lists" "$folder/cache" "$folder/packages" "$tree/usr/share"
	touch "$folder/complete"
fi
echo "$compiler"
