#!/usr/bin/env bash
# Runs the integration tests and upstream's e2e tests against the API server selected by the
# environment, and counts the tests that skip themselves there.
#
#   hack/test-integration.sh [FILTER…]   limits upstream's tests to these names
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Each skipped test prints one line to standard error.
run() {
	{ "$cargo" test --locked "$@" 2>&1 >&3 | tee -a "$log" >&2; } 3>&1
}

if [ $# -eq 0 ]; then
	run -p integration
	run -p e2e --test upstream --test basic_identity
else
	run -p integration --lib --test api_server --test crash --test leader_election \
		--test lifecycle --test plans --test protobuf --test rights --test scenarios --test shards \
		--test takeover --test unknown_members
	run -p integration -p e2e --test upstream -- "$@"
fi

if left_out=$(grep -c 'left out: ' "$log"); then
	echo "$left_out tests were left out: they need the embedded control plane"
fi
