#!/usr/bin/env bash
# Runs the suites with the test control plane as a stand-in for a real API server: once as the
# kube-apiserver of KUBEBUILDER_ASSETS, once as an existing cluster. Both use real time, so all
# integration tests run, but only a few e2e tests. Exactly the tests that need the embedded control
# plane must skip themselves.
#
#   hack/stand-ins.sh    BINARIES=folder with the built programs, default: target/debug
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO=${CARGO:-cargo}
program=$(realpath "${BINARIES:-${CARGO_TARGET_DIR:-target}/debug}/kube-test-control-plane")
tests=(claims:: ordinals:: pods:: replicas:: test_deleting_pod test_recreate_stateful_set_update
	test_should_have_a_working_scale)

folder=$(mktemp -d)
plane=
finish() {
	if [ -n "$plane" ]; then
		kill "$plane" 2>/dev/null || true
		wait "$plane" 2>/dev/null || true
	fi
	rm -rf "$folder"
}
trap finish EXIT

run_tests() {
	env "$@" hack/test-integration.sh "${tests[@]}" | tee "$folder/output"
	local expected
	expected=$(grep --recursive --no-filename 'embedded_only!(' test/integration/tests | wc -l)
	if [ "$(tail -n 1 "$folder/output")" != "$expected tests were left out: they need the embedded control plane" ]; then
		echo "expected $expected skipped tests, those with embedded_only!" >&2
		exit 1
	fi
}

echo '== as kube-apiserver and etcd'
mkdir "$folder/bin"
# Passes on the flags of kube-apiserver that the program has too, and runs no actors.
cat >"$folder/bin/kube-apiserver" <<EOF
#!/bin/sh
for flag in "\$@"; do
	shift
	case \$flag in
	--secure-port=* | --bind-address=* | --tls-* | --client-ca-file=* | --authorization-mode=* | \\
		--feature-gates=*) set -- "\$@" "\$flag" ;;
	esac
done
exec '$program' --actors '' "\$@"
EOF
printf '#!/bin/sh\nexec sleep 3600\n' >"$folder/bin/etcd"
chmod +x "$folder/bin/kube-apiserver" "$folder/bin/etcd"
run_tests KUBEBUILDER_ASSETS="$folder/bin"

echo '== as an existing cluster'
mkfifo "$folder/said"
"$program" --secure-port=0 --actors '' --feature-gates=MaxUnavailableStatefulSet=true \
	--kubeconfig-out "$folder/kubeconfig" >"$folder/said" &
plane=$!
exec 3<"$folder/said"
read -r -u 3 _
run_tests USE_EXISTING_CLUSTER=true KUBECONFIG="$folder/kubeconfig"
