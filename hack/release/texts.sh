#!/usr/bin/env bash
# Lets the programs of this machine's platform print their man pages and completions:
#
#   hack/release/texts.sh PROGRAMS FOLDER     reads PROGRAMS/TARGET, writes FOLDER/PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=hack/release/common.sh
. hack/release/common.sh

[ $# -eq 2 ] || fail 'pass the folder of the programs and the one for the texts'
rm -rf "$2"

# Prints a text of a program: a man page, or the completions for a shell.
text() {
	local program
	program=$1/$($rustc --print host-tuple)/$2
	[ -x "$program" ] || fail "$program is missing, and no other one runs here: build it first"
	case $2 in
	kubectl-sts) "$program" "${@:3}" ;;
	*) "$program" "--generate=$(IFS=- && echo "${*:3}")" ;;
	esac
}

for program in statefulset-controller-manager kubectl-sts; do
	folder=$2/$program
	mkdir -p "$folder/completions" "$folder/man"
	text "$1" $program completion bash >"$folder/completions/$program.bash"
	text "$1" $program completion zsh >"$folder/completions/_$program"
	text "$1" $program completion fish >"$folder/completions/$program.fish"
	text "$1" $program completion powershell >"$folder/completions/$program.ps1"
done
text "$1" statefulset-controller-manager man >"$2/statefulset-controller-manager/man/statefulset-controller-manager.8"
rmdir --ignore-fail-on-non-empty "$2"/*/man
