#!/usr/bin/env bash
# The same lab without namespaces: UDP ports on 127.0.0.1, and quickstart where nothing else is allowed.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

t_up loopback quickstart --loopback
check "a ping right after it came up waits until the NIC sends" "$PHITWIRE_BIN_DIR/phitwire" ping --lab "$LAB" -c 1 nic0 nic7
check "status.sh is content" "$PHW_SCRIPTS/status.sh" --lab "$LAB"
rate_case "messages over loopback ports" 1000 --seconds 0.5
check_fails "impair.sh says that nothing can be impaired there" "loopback" \
    "$PHW_SCRIPTS/impair.sh" --lab "$LAB" all loss 1%
check_fails "Ethernet links are rejected there" "UDP links only" "$PHW_SCRIPTS/up.sh" quickstart --loopback --link ethernet
check "it goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "and leaves nothing" nothing_left "$LAB"

# quickstart.sh as a user without user namespaces: a failing `unshare` stands in for the kernel.
if phw_is_machine_root && id nobody >/dev/null 2>&1 \
    && runuser -u nobody -- test -r "$PHW_SCRIPTS/up.sh" -a -x "$PHITWIRE_BIN_DIR/phitwire"; then
    mkdir "$T_SCRATCH/bin"
    printf '#!/bin/sh\necho "unshare: Operation not permitted" >&2\nexit 1\n' >"$T_SCRATCH/bin/unshare"
    chmod -R a+rx "$T_SCRATCH"
    output=$T_SCRATCH/output
    check "quickstart.sh runs without root and without user namespaces" bash -c '
        runuser -u nobody -- env "PATH=$1:$PATH" XDG_RUNTIME_DIR= HOME=/tmp "$2" --seconds 1 >"$3" 2>&1 \
            || { cat "$3"; exit 1; }' bash "$T_SCRATCH/bin" "$PHW_SCRIPTS/quickstart.sh" "$output"
    check "it reports that" grep -F "over UDP ports on loopback" "$output"
    check "its verdict is clean" grep -E "lost 0 +duplicated 0 +corrupted 0 +misordered 0" "$output"
    check_fails "requested loss is not silently dropped" "--loss needs root or user namespaces" \
        runuser -u nobody -- env "PATH=$T_SCRATCH/bin:$PATH" XDG_RUNTIME_DIR= HOME=/tmp "$PHW_SCRIPTS/quickstart.sh" --loss 2%
else
    skip "quickstart.sh without root and without user namespaces" "needs root, and read access to this directory for the user 'nobody'"
fi
