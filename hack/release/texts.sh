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

for program in ${PROGRAMS:-$all_programs}; do
	path=$1/$($rustc --print host-tuple)/$program
	[ -x "$path" ] || fail "$path is missing, and no other one runs here: build it first"
	texts=$2/$program
	mkdir -p "$texts/completions" "$texts/man"
	for shell in bash zsh fish powershell; do
		case $shell in
		bash) file=$program.bash ;;
		zsh) file=_$program ;;
		fish) file=$program.fish ;;
		powershell) file=$program.ps1 ;;
		esac
		case $program in
		kubectl-sts) "$path" completion "$shell" ;;
		*) "$path" "--generate=completion-$shell" ;;
		esac >"$texts/completions/$file"
	done
	case $program in
	kubectl-sts) "$path" man "$texts/man" ;;
	statefulset-controller-manager) "$path" --generate=man >"$texts/man/$program.8" ;;
	*) "$path" --generate=man >"$texts/man/$program.1" ;;
	esac
done
