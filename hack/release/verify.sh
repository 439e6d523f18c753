#!/usr/bin/env bash
# Verifies downloaded files of a release: their signature, their digests, and that the provenance names
# each of them.
#
#   verify.sh FOLDER PUBLIC_KEY     with a key: FOLDER holds SHA256SUMS.sig
#   verify.sh FOLDER                after a keyless verification of SHA256SUMS with cosign
#
# FOLDER holds SHA256SUMS, provenance.intoto.json and any of the other files. Needs sha256sum, and with a
# key openssl and base64. The signature is that of `cosign sign-blob --key`: ECDSA on P-256, as base64.
set -euo pipefail

fail() {
	echo "verify.sh: $1" >&2
	exit 1
}

case $# in
1 | 2) cd "$1" 2>/dev/null || fail "there is no folder $1" ;;
*) fail 'pass a folder, and a public key unless cosign has verified SHA256SUMS' ;;
esac
[ -f SHA256SUMS ] || fail "$1 has no SHA256SUMS: download it"
key=${2:-}
if [ -n "$key" ]; then
	case $key in /*) ;; *) key=$OLDPWD/$key ;; esac
	[ -f "$key" ] || fail "there is no key $2"
	[ -f SHA256SUMS.sig ] || fail "$1 has no SHA256SUMS.sig: download it"
	openssl dgst -sha256 -verify "$key" -signature <(base64 --decode SHA256SUMS.sig) SHA256SUMS \
		>/dev/null 2>&1 || fail 'the signature of SHA256SUMS is not one of this key: trust none of the files'
fi
[ -f provenance.intoto.json ] || fail "$1 has no provenance.intoto.json: download it"
sha256sum --check --ignore-missing --strict --quiet SHA256SUMS ||
	fail 'the files above differ from SHA256SUMS: download them again'

# The digests are signed, so the provenance is, and each of its lines must repeat one.
count=0
while read -r digest name; do
	[ -f "$name" ] || continue
	count=$((count + 1))
	[ "$name" = provenance.intoto.json ] || grep --quiet "\"sha256\": \"$digest\"" provenance.intoto.json ||
		fail "the provenance does not name $name"
done <SHA256SUMS
echo "$count files verified${key:+ with $2}"
