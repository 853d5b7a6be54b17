#!/usr/bin/env bash
# up.sh TOPOLOGY [options]      brings a lab up and returns when all its links are up
#
# TOPOLOGY is a file, or the name of one in netns-scripts/topologies (quickstart). Every node gets a network
# namespace phw-LAB-NODE and a process in it; every link is a veth pair between two of them.
#
#   --lab NAME            the lab's name; several run side by side ($PHITWIRE_LAB, else "lab")
#   --link udp|ethernet   what carries the link frames (udp)
#   --mtu N               of the interfaces (1500)
#   --io auto|uring|plain how the processes do UDP (auto)
#   --spin US|auto        how long a process looks for frames before it goes to sleep, in microseconds, as long as
#                         that pays: 100 makes single answers come much sooner, and keeps cores busy (auto: 100 where
#                         no more than two processes share a core, else 0)
#   --stay on|off|auto    whether a process stays on one core, that of its neighbours in the network, while it has
#                         little to do (auto: where more than two processes share a core, and none looks for frames)
#   --clock free|paced:N  clock instead of the topology's; paced: an emulated nanosecond takes N real ones
#   --grain flit|packet   what moves through an Aries router at once (packets under a free-running clock, else flits)
#   --ip                  IP over the fabric: a device ip0 in the namespace of every network interface, by puts
#                         on every machine; processor N has the address N + 1 of the subnet, and its node's name in
#                         /etc/hosts there
#   --subnet CIDR         addresses of --ip (10.77.0.0/16)
#   --ip-mtu N            MTU of --ip (65520)
#   --loopback            no namespaces: UDP ports on 127.0.0.1, for where neither root nor user namespaces are
#                         allowed; nothing can be impaired there
#   --timeout S           how long the links may take to come up (30)
#   --keep                leave the lab as it is when they do not, instead of taking it down
#
# Status 1 when a link does not come up; which, and why, is on stderr. When processes end it does not wait for links.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab) topology='' link=udp mtu=1500 io=auto spin=auto stay=auto mode=netns timeout=30 keep=0 clock='' grain=''
ip=0 subnet=10.77.0.0/16 ip_mtu=65520

parse() {
    while (( $# )); do
        case $1 in
            --lab|--link|--mtu|--io|--spin|--stay|--timeout|--clock|--grain)
                (( $# > 1 )) || phw_bad_call "$1 wants a value"
                printf -v "${1#--}" %s "$2"
                shift ;;
            --ip) ip=1 ;;
            --subnet|--ip-mtu)
                (( $# > 1 )) || phw_bad_call "$1 wants a value"
                ip=1
                case $1 in --subnet) subnet=$2 ;; *) ip_mtu=$2 ;; esac
                shift ;;
            --loopback) mode=loopback ;;
            --keep) keep=1 ;;
            -h|--help) phw_usage; exit 0 ;;
            -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
            *) [[ -z $topology ]] || phw_bad_call "more than one topology: $topology and $1"
               topology=$1 ;;
        esac
        shift
    done
    [[ -n $topology ]] || phw_bad_call "which topology? ($(cd "$PHW_SCRIPTS/topologies" 2>/dev/null && echo *.toml))"
    phw_check_lab "$lab"
    [[ $link == udp || $link == ethernet ]] || phw_bad_call "--link is udp or ethernet, not '$link'"
    [[ $mode == netns || $link == udp ]] || phw_bad_call "--loopback has UDP links only"
    (( ! ip )) || [[ $mode == netns ]] || phw_bad_call "--ip needs namespaces: not with --loopback"
    [[ $subnet =~ ^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$ ]] || phw_bad_call "--subnet is a network such as 10.77.0.0/16, not '$subnet'"
    [[ $ip_mtu =~ ^[1-9][0-9]{2,4}$ && $ip_mtu -ge 576 && $ip_mtu -le 65520 ]] || phw_bad_call "--ip-mtu is 576 to 65520, not '$ip_mtu'"
    [[ $mtu =~ ^[1-9][0-9]{2,4}$ && $mtu -ge 576 && $mtu -le 65535 ]] || phw_bad_call "--mtu is 576 to 65535, not '$mtu'"
    [[ $io =~ ^(auto|uring|plain)$ ]] || phw_bad_call "--io is auto, uring or plain, not '$io'"
    [[ $spin =~ ^(auto|[0-9]{1,9})$ ]] || phw_bad_call "--spin is whole microseconds or auto, not '$spin'"
    [[ $stay =~ ^(auto|on|off)$ ]] || phw_bad_call "--stay is on, off or auto, not '$stay'"
    [[ $clock =~ ^(|free|paced:[1-9][0-9]{0,8})$ ]] || phw_bad_call "--clock is free or paced:N, not '$clock'"
    [[ $grain =~ ^(|flit|packet)$ ]] || phw_bad_call "--grain is flit or packet, not '$grain'"
    [[ $timeout =~ ^(0|[1-9][0-9]{0,5})$ ]] || phw_bad_call "--timeout is whole seconds, 999999 at most, not '$timeout'"
    [[ -e $topology || ! -e $PHW_SCRIPTS/topologies/$topology.toml ]] \
        || topology=$PHW_SCRIPTS/topologies/$topology.toml
    [[ -r $topology ]] || phw_die "no such topology: $topology (a file, or one of: $(cd -- "$PHW_SCRIPTS/topologies" \
        && printf '%s\n' *.toml | sed 's/[.]toml$//' | paste -sd ' '))"
}

# Takes the directory, which is also the lock: whoever moves one there has the lab. It comes there with its mark, by
# which down.sh knows that it may be removed, and with this process's id, which down.sh waits for instead of racing it.
claim() {
    local owned="lab '$lab' is up already, or was left behind: down.sh --lab $lab" error
    trap 'finish $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [[ -z $(phw_lab_netns "$lab") ]] || phw_die "$owned"
    phw_make_run_dir
    # An empty one would be moved upon, but somebody has made it.
    [[ ! -e $dir && ! -L $dir && ! -e $half ]] || phw_die "$owned"
    phw_need_room 1
    # A signal may come as soon as it is there. Another lab's down.sh may take an empty run directory away.
    made=1
    mkdir -m 700 -- "$half" 2>/dev/null || { phw_make_run_dir && error=$(mkdir -m 700 -- "$half" 2>&1); } || phw_die "$error"
    phw_write "$half/.up" "$self"$'\n'
    phw_write "$half/.phitwire-lab" ''
    error=$(mv -T -- "$half" "$dir" 2>&1) && return
    [[ ! -e $dir ]] || phw_die "$owned"
    phw_die "$error"
}

finish() {
    local status=$1
    trap '' INT TERM HUP
    trap - EXIT
    [[ -z $waiter ]] || kill "$waiter" 2>/dev/null || true
    (( ! made )) || rm -rf -- "$half"
    [[ -e $dir/.up && $(<"$dir/.up") == "$self" ]] || exit "$status"
    rm -f -- "$dir/.up"
    phw_started || true
    if (( status != 0 )); then
        if (( keep )) && [[ -e $dir/lab.env ]]; then
            phw_note "lab '$lab' is left as it is; down.sh --lab $lab removes it"
        else
            phw_remove_lab "$lab" || true
        fi
    fi
    exit "$status"
}

# A block of 127.0.0.1 ports, two per link, below the range that the kernel hands out by itself.
free_ports() {
    local count=$1 base used
    used=$(awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/udp | while read -r hex; do echo $(( 16#$hex )); done)
    for (( base = 10240 + $$ % 64 * 256; base + count < 32000; base += count + 1 )); do
        awk -v low="$base" -v high=$(( base + count )) '$1 >= low && $1 < high { exit 1 }' <<<"$used" || continue
        echo "$base"
        return
    done
    phw_die "no $count free UDP ports in a row on 127.0.0.1"
}

describe() {
    local error count given=$topology file=$topology input=/dev/null
    # What a shell hands over, as <(phitwire topology generate ...) does, can be read once; the limit is that of the
    # binaries. Anything else they look at first: it may be a device, or longer than there is room.
    case $given in
        /dev/fd/*|/dev/stdin|/proc/self/fd/*)
            topology=$dir/given.toml
            error=$(head -c 8388609 -- "$given" 2>&1 >"$topology") || phw_die "cannot read or write: $error"
            # By standard input, so that files that it names are looked for where this script was started.
            file=- input=$topology ;;
    esac
    # The copy has in it what a description takes from other files.
    phw topology plan --copy "$dir/topology.toml" "$file" <"$input" >"$dir/plan.tsv" || {
        error=$(phw_why_not "$dir") && phw_die "cannot write to $error"
        phw_die "$given: not a usable topology"
    }
    nodes=$(phw_plan_nodes "$lab")
    links=$(phw_plan_links "$lab")
    [[ -n $nodes && -n $links ]] || phw_die "$topology: no nodes or no links in it"
    count=$(wc -l <<<"$nodes")
    phw_need_room "$count"
    # Where many share a core, one that looks keeps it from those that have something to do.
    [[ $spin != auto ]] || spin=$(( count <= 2 * $(nproc) ? 100 : 0 ))
    # Where none looks, one that is woken on its neighbour's core has its frame sooner than on another that has to be woken, too.
    [[ $stay != auto ]] || { stay=off; (( 10#$spin > 0 || count <= 2 * $(nproc) )) || stay=on; }
    local run
    if [[ $mode == loopback ]]; then
        run="--loopback $(free_ports "$(( 2 * $(wc -l <<<"$links") ))")"
    else
        run="--link $link --mtu $mtu"
    fi
    (( ! ip )) || run+=" --ip $subnet"
    [[ $stay == off ]] || run+=" --stay"
    phw_write_env "$lab" MODE "$mode" LINK "$link" MTU "$mtu" TOPOLOGY "$topology" \
        RUN_ARGUMENTS "$run --io $io --spin $spin${clock:+ --clock $clock}${grain:+ --grain $grain}" BIN_DIR "$PHITWIRE_BIN_DIR"
    phw_open_lab "$lab"
}

make_namespaces() {
    local node prefix create=''
    prefix=$(phw_netns "$lab" '')
    for node in $nodes; do
        create+="netns add $prefix$node"$'\n'
    done
    # The directory of all namespaces is for everybody to look at.
    umask 022
    in_batches <<<"${create%$'\n'}"
    umask 077
    # No neighbour discovery, no router solicitation: only frames of ours on the wire.
    [[ -e /proc/net/if_inet6 ]] || return 0
    for node in $nodes; do
        phw_with_us nsenter "--net=/run/netns/$(phw_netns "$lab" "$node")" -- bash -c '
            for which in default all; do echo 1 >"/proc/sys/net/ipv6/conf/$which/disable_ipv6"; done'
    done
}

# Both ends are born in their namespaces: the machine's own namespace never sees them. The hardware addresses
# are ours (locally administered, from the link's number) and every neighbour is known beforehand, so that no
# ARP frame is on the wire to be lost.
make_links() {
    local a b if_a if_b addr_a addr_b mac_a mac_b ns_a ns_b number=0
    local -A setup=()
    local create=''
    while IFS=$'\t' read -r _ a _ b _ if_a if_b addr_a addr_b; do
        printf -v mac_a '02:70:68:%02x:%02x:0a' $(( number >> 8 )) $(( number & 255 ))
        printf -v mac_b '02:70:68:%02x:%02x:0b' $(( number >> 8 )) $(( number & 255 ))
        (( ++number ))
        ns_a=$(phw_netns "$lab" "$a") ns_b=$(phw_netns "$lab" "$b")
        create+="link add $if_a address $mac_a mtu $mtu netns $ns_a type veth"
        create+=" peer name $if_b address $mac_b mtu $mtu netns $ns_b"$'\n'
        setup[$ns_a]+=$(end_commands "$if_a" "${addr_a%/*}" "${addr_b%/*}" "$mac_b")$'\n'
        setup[$ns_b]+=$(end_commands "$if_b" "${addr_b%/*}" "${addr_a%/*}" "$mac_a")$'\n'
    done <<<"$links"
    in_batches <<<"${create%$'\n'}"
    for ns_a in "${!setup[@]}"; do
        phw_with_us ip -n "$ns_a" -batch - <<<"link set lo up"$'\n'"${setup[$ns_a]}"
    done
}

# A device for each network interface, which its process opens, each time that it starts.
make_tuns() {
    local node
    [[ -c /dev/net/tun ]] || phw_die "--ip needs /dev/net/tun (modprobe tun)"
    [[ -r /dev/net/tun && -w /dev/net/tun ]] || phw_die "--ip needs /dev/net/tun, which is not ours to open (root: chmod 666 /dev/net/tun)"
    for node in $(phw_plan_nics "$lab"); do
        phw_with_us ip -n "$(phw_netns "$lab" "$node")" -batch - <<<"tuntap add dev ip0 mode tun"$'\n'"link set ip0 mtu $ip_mtu txqueuelen 100"
    done
}

# Addresses follow from the numbers of processors, which the processes know. Names are in the namespaces' own
# /etc/hosts, as `ip netns exec` finds it, where we may write there.
address_tuns() {
    local node number names='' numbered=()
    for node in $(phw_plan_nics "$lab"); do
        number=$(phw ctl --lab "$lab" "$node" info --json | jq 'select(.spare | not) | .processor // empty')
        [[ -n $number ]] || continue
        numbered+=("$node $(address "$number")")
        names+="$(address "$number") $node"$'\n'
    done
    for node in "${numbered[@]}"; do
        number=${node#* } node=$(phw_netns "$lab" "${node% *}")
        phw_with_us ip -n "$node" -batch - <<<"link set ip0 up"$'\n'"addr add $number/${subnet#*/} dev ip0"
        [[ -w /etc ]] || continue
        (umask 022 && mkdir -p "$PHW_ETC_NETNS/$node" && { cat /etc/hosts; printf '%s' "$names"; } >"$PHW_ETC_NETNS/$node/hosts") \
            || phw_die "cannot write $PHW_ETC_NETNS/$node/hosts"
    done
    [[ -w /etc ]] || phw_note "no names in /etc/hosts: it cannot be written here"
}
# address N: that of processor N.
address() {
    local a b c d place
    IFS=. read -r a b c d <<<"${subnet%/*}"
    place=$(( (a << 24) + (b << 16) + (c << 8) + d + 1 + $1 ))
    printf '%d.%d.%d.%d\n' $(( place >> 24 & 255 )) $(( place >> 16 & 255 )) $(( place >> 8 & 255 )) $(( place & 255 ))
}

# Commands for `ip`, few enough at a time that their descriptors suffice: it keeps one for each namespace that a command
# names, and a link has two.
in_batches() {
    local most lines
    most=$(ulimit -Sn)
    [[ $most != unlimited ]] && (( most < 1024 )) || most=1024
    most=$(( most > 64 ? (most - 32) / 2 : 16 ))
    while mapfile -n "$most" lines && (( ${#lines[@]} )); do
        printf %s "${lines[@]}" | phw_with_us ip -batch -
    done
}

end_commands() {
    printf 'addr add %s/31 dev %s\nlink set %s up\nneigh replace %s lladdr %s nud permanent dev %s\n' \
        "$2" "$1" "$1" "$3" "$4" "$1"
}

exec_with_us() { exec setpriv --pdeathsig KILL -- "$@"; }

# In the background, so that a signal to this script is answered at once, and so is the end of a process: no link of it
# will come up.
wait_for_links() {
    local status=0 ended=0
    # Without a shell in between, which would outlive this script if it is killed.
    exec_with_us "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$lab" --timeout "$timeout" &
    waiter=$!
    while kill -0 "$waiter" 2>/dev/null; do
        # shellcheck disable=SC2086  # a list
        phw_ended "$lab" $nodes
        # What ends others is likely to end more: they are told together.
        (( ${#PHW_ENDED[@]} == 0 || ${#PHW_ENDED[@]} > ended )) || kill "$waiter" 2>/dev/null || true
        ended=${#PHW_ENDED[@]}
        sleep 0.1
    done
    wait "$waiter" || status=$?
    waiter=''
    (( status == 0 )) && return 0
    # shellcheck disable=SC2086  # a list
    phw_ended "$lab" $nodes
    if (( ${#PHW_ENDED[@]} )); then
        phw_last_words "$lab" "${PHW_ENDED[@]}"
        phw_note "lab '$lab' did not come up"
    else
        phw_note "lab '$lab' did not come up within $timeout s"
    fi
    return 1
}

main() {
    parse "$@"
    if [[ $mode == netns ]]; then
        phw_is_root || phw_die "needs root for namespaces: sudo, or a shell of '$PHW_SCRIPTS/rootless.sh bash', where labs work as for" \
            "root until it ends; or --loopback, which needs neither"
        phw_need_lab_tools
    else
        phw_need setsid:util-linux setpriv:util-linux jq:jq pgrep:procps column:bsdextrautils
    fi
    phw_binaries
    umask 077
    dir=$(phw_lab_dir "$lab") half=$(phw_run_dir)/.new-$lab.$$ self="$$ $(phw_start_time $$)"
    waiter='' nodes='' links='' made=0
    claim
    describe
    if [[ $mode == netns ]]; then
        make_namespaces
        make_links
        (( ! ip )) || make_tuns
    fi
    # New wires carry nothing that an earlier lab of this name has sent; ports on loopback are anybody's.
    # shellcheck disable=SC2034  # read by phw_start_nodes
    [[ $mode == loopback ]] || PHW_FIRST=--first
    # shellcheck disable=SC2086  # a list
    phw_start_nodes "$lab" $nodes
    wait_for_links
    (( ! ip )) || address_tuns
    phw_note "lab '$lab' is up: $(wc -w <<<"$nodes") nodes, $(wc -l <<<"$links") links over $link"
}

main "$@"
