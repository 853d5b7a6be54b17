#!/usr/bin/env bash
# rootless.sh COMMAND...      runs COMMAND in a user namespace, where labs work without root
#
# COMMAND is root of a new user, network and mount namespace with an empty /run: up.sh, impair.sh and the other scripts
# work there as for root, and everything ends with COMMAND. To keep a lab, start a shell: rootless.sh bash. Status 4 if
# user namespaces are forbidden.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

case ${1:-} in
    ''|-h|--help) phw_usage; exit $(( $# == 0 ? 2 : 0 )) ;;
esac

phw_need unshare:util-linux ip:iproute2

# Build the binaries outside: inside, the build would run as a root without privileges. If PHITWIRE_BIN_DIR forbids
# building, the scripts that run the binaries look for them: not every COMMAND does.
[[ -n ${PHITWIRE_BIN_DIR:-} || ${1##*/} == with-netem.sh ]] || phw_binaries

# Only a real attempt shows whether it works: some systems allow the namespace but remove its capabilities.
if ! reason=$(unshare -Urnm bash -c 'mount -t tmpfs tmpfs /run && ip link add p0 type veth peer name p1' 2>&1); then
    phw_note "user namespaces are forbidden here: ${reason:-unshare failed}"
    limit=$(sysctl -n kernel.apparmor_restrict_unprivileged_userns 2>/dev/null || true)
    [[ $limit != 1 ]] || phw_note "to allow them: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    limit=$(sysctl -n kernel.unprivileged_userns_clone 2>/dev/null || true)
    [[ $limit != 0 ]] || phw_note "to allow them: sysctl kernel.unprivileged_userns_clone=1"
    phw_skip "no user namespaces: use root, or up.sh --loopback"
fi

# The namespace's first process outlives COMMAND only to end its leftover processes.
exec unshare -Urnm --pid --fork --kill-child --mount-proc bash -c '
    mount -t tmpfs -o mode=755 tmpfs /run
    ip link set lo up
    unset PHITWIRE_RUN_DIR XDG_RUNTIME_DIR
    export PHITWIRE_ROOTLESS=1
    # Not the last command: bash would exec it, and as the first process of the namespace it would ignore Ctrl-C.
    "$@"
    exit $?' bash "$@"
