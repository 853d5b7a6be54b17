#!/usr/bin/env bash
# rootless.sh COMMAND...      runs COMMAND where labs work without root
#
# COMMAND is root of a new user, network and mount namespace with an empty /run: up.sh, impair.sh and the rest
# work there as for root, and everything ends with COMMAND. Start a shell in it to keep a lab:
# rootless.sh bash. Status 4 where user namespaces are forbidden.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

case ${1:-} in
    ''|-h|--help) phw_usage; exit $(( $# == 0 ? 2 : 0 )) ;;
esac

phw_need unshare:util-linux ip:iproute2

# The binaries are built out here: in there, the build would run as a root that is none. Where PHITWIRE_BIN_DIR says that
# there is nothing to build, whoever runs them looks for them: not every COMMAND does.
[[ -n ${PHITWIRE_BIN_DIR:-} || ${1##*/} == with-netem.sh ]] || phw_binaries

# Only the real thing tells: some systems allow the namespace but take its capabilities away.
if ! reason=$(unshare -Urnm bash -c 'mount -t tmpfs tmpfs /run && ip link add p0 type veth peer name p1' 2>&1); then
    phw_note "user namespaces are forbidden here: ${reason:-unshare failed}"
    limit=$(sysctl -n kernel.apparmor_restrict_unprivileged_userns 2>/dev/null || true)
    [[ $limit != 1 ]] || phw_note "the switch is: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    limit=$(sysctl -n kernel.unprivileged_userns_clone 2>/dev/null || true)
    [[ $limit != 0 ]] || phw_note "the switch is: sysctl kernel.unprivileged_userns_clone=1"
    phw_skip "no user namespaces; use root, or up.sh --loopback"
fi

# The namespace's first process outlives COMMAND only to end what COMMAND left running.
exec unshare -Urnm --pid --fork --kill-child --mount-proc bash -c '
    mount -t tmpfs -o mode=755 tmpfs /run
    ip link set lo up
    unset PHITWIRE_RUN_DIR XDG_RUNTIME_DIR
    export PHITWIRE_ROOTLESS=1
    # Not the last command: bash would become it, and as the first process of the namespace it would be deaf to Ctrl-C.
    "$@"
    exit $?' bash "$@"
