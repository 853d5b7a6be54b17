#!/usr/bin/env bash
# up.sh TOPOLOGY [options]      brings up a lab, and returns when all its links are up
#
# TOPOLOGY is a file, or the name of one in netns-scripts/topologies (quickstart). Every node is a process in its own
# network namespace phw-LAB-NODE; every link is a veth pair between two namespaces.
#
#   --lab NAME            lab name; several labs can run side by side ($PHITWIRE_LAB, else "lab")
#   --link udp|ethernet   transport of the link frames (udp)
#   --mtu N               MTU of the interfaces (1500)
#   --io auto|uring|plain how the processes do UDP (auto)
#   --spin US|auto        microseconds for which a process polls for frames before it sleeps, if that pays off: 100
#                         shortens single round trips a lot, and keeps cores busy (auto: 100 where at most two
#                         processes share a core, else 0)
#   --stay on|off|auto    whether a nearly idle process stays on one core, shared with its neighbours in the
#                         network (auto: where more than two processes share a core, and none polls)
#   --clock free|paced:N  clock, instead of the topology's; paced: an emulated nanosecond takes N real ones
#   --grain flit|packet   unit that moves through an Aries or T3E router (packet under a free-running clock, else
#                         flit)
#   --cut-through frames|phits  when a YARC passes on the phits of a frame: with the whole frame, checked, or as they
#                         arrive (frames under a free-running clock, else phits)
#   --ip                  IP over the fabric: a device ip0 in the namespace of every NIC, carried by puts on every
#                         machine; processor N has address N + 1 of the subnet, and its node's name in /etc/hosts
#                         there
#   --subnet CIDR         addresses for --ip (10.77.0.0/16)
#   --ip-mtu N            MTU for --ip (65520)
#   --loopback            no namespaces: UDP ports on 127.0.0.1, where neither root nor user namespaces are
#                         available; links cannot be impaired
#   --virtual             no namespaces, and one process for all nodes, in virtual time: time stands still while programs
#                         at the doors compute (docs/guide/src/virtual-labs.md); needs no root
#   --seed N              --virtual: seed of everything random (1)
#   --links encoded       --virtual: links carry frames (the only kind so far)
#   --timeout S           how long to wait for the links to come up (30)
#   --keep                on failure, leave the lab as it is instead of taking it down
#
# Status 1 if a link does not come up; stderr says which, and why. If a process ends, the script does not wait for
# links.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

lab=$(phw_default_lab) topology='' link=udp mtu=1500 io=auto spin=auto stay=auto mode=netns timeout=30 keep=0 clock='' grain='' cut_through=''
seed='' links_kind=''
ip=0 subnet=10.77.0.0/16 ip_mtu=65520

parse() {
    local name
    while (( $# )); do
        case $1 in
            --lab|--link|--mtu|--io|--spin|--stay|--timeout|--clock|--grain|--cut-through)
                (( $# > 1 )) || phw_bad_call "$1 needs a value"
                name=${1#--}
                printf -v "${name//-/_}" %s "$2"
                shift ;;
            --ip) ip=1 ;;
            --subnet|--ip-mtu)
                (( $# > 1 )) || phw_bad_call "$1 needs a value"
                ip=1
                case $1 in --subnet) subnet=$2 ;; *) ip_mtu=$2 ;; esac
                shift ;;
            --loopback) [[ $mode != virtual ]] || phw_bad_call "--loopback excludes --virtual"; mode=loopback ;;
            --virtual) [[ $mode != loopback ]] || phw_bad_call "--virtual excludes --loopback"; mode=virtual ;;
            --seed|--links)
                (( $# > 1 )) || phw_bad_call "$1 needs a value"
                case $1 in --seed) seed=$2 ;; *) links_kind=$2 ;; esac
                shift ;;
            --keep) keep=1 ;;
            -h|--help) phw_usage; exit 0 ;;
            -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
            *) [[ -z $topology ]] || phw_bad_call "more than one topology: $topology and $1"
               topology=$1 ;;
        esac
        shift
    done
    [[ -n $topology ]] || phw_bad_call "specify a topology ($(cd "$PHW_SCRIPTS/topologies" 2>/dev/null && echo *.toml))"
    phw_check_lab "$lab"
    [[ $link == udp || $link == ethernet ]] || phw_bad_call "--link must be udp or ethernet, not '$link'"
    if [[ $mode == virtual ]]; then
        [[ $links_kind != direct ]] || phw_bad_call "--links direct: programs need encoded links so far; omit the option"
        [[ $links_kind =~ ^(|encoded)$ ]] || phw_bad_call "--links must be encoded, not '$links_kind'"
        [[ $seed =~ ^(|0|[1-9][0-9]{0,18})$ ]] || phw_bad_call "--seed must be a number, not '$seed'"
        [[ $link$mtu$io$spin$stay$clock$grain$cut_through$ip == udp1500autoautoauto0 ]] \
            || phw_bad_call "--virtual has no wires of the machine: it excludes the options of links, processes and --ip"
    else
        [[ -z $seed$links_kind ]] || phw_bad_call "--seed and --links need --virtual"
    fi
    [[ $mode != loopback || $link == udp ]] || phw_bad_call "--loopback supports UDP links only"
    (( ! ip )) || [[ $mode == netns ]] || phw_bad_call "--ip needs namespaces, so it excludes --loopback"
    [[ $subnet =~ ^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$ ]] || phw_bad_call "--subnet must be a network such as 10.77.0.0/16, not '$subnet'"
    [[ $ip_mtu =~ ^[1-9][0-9]{2,4}$ && $ip_mtu -ge 576 && $ip_mtu -le 65520 ]] || phw_bad_call "--ip-mtu must be 576 to 65520, not '$ip_mtu'"
    [[ $mtu =~ ^[1-9][0-9]{2,4}$ && $mtu -ge 576 && $mtu -le 65535 ]] || phw_bad_call "--mtu must be 576 to 65535, not '$mtu'"
    [[ $io =~ ^(auto|uring|plain)$ ]] || phw_bad_call "--io must be auto, uring or plain, not '$io'"
    [[ $spin =~ ^(auto|[0-9]{1,9})$ ]] || phw_bad_call "--spin must be whole microseconds or auto, not '$spin'"
    [[ $stay =~ ^(auto|on|off)$ ]] || phw_bad_call "--stay must be on, off or auto, not '$stay'"
    [[ $clock =~ ^(|free|paced:[1-9][0-9]{0,8})$ ]] || phw_bad_call "--clock must be free or paced:N, not '$clock'"
    [[ $grain =~ ^(|flit|packet)$ ]] || phw_bad_call "--grain must be flit or packet, not '$grain'"
    [[ $cut_through =~ ^(|frames|phits)$ ]] || phw_bad_call "--cut-through must be frames or phits, not '$cut_through'"
    [[ $timeout =~ ^(0|[1-9][0-9]{0,5})$ ]] || phw_bad_call "--timeout must be whole seconds, at most 999999, not '$timeout'"
    [[ -e $topology || ! -e $PHW_SCRIPTS/topologies/$topology.toml ]] \
        || topology=$PHW_SCRIPTS/topologies/$topology.toml
    [[ -r $topology ]] || phw_die "no such topology: $topology (expected a file, or one of: $(cd -- "$PHW_SCRIPTS/topologies" \
        && printf '%s\n' *.toml | sed 's/[.]toml$//' | paste -sd ' '))"
}

# Creates the lab's directory, which is also the lock: the script that moves a directory there owns the lab. It arrives
# with its mark, which lets down.sh remove it, and with this process's id, which lets down.sh wait for this process
# instead of racing it.
claim() {
    local owned="lab '$lab' is up already, or was left behind: down.sh --lab $lab" error
    trap 'finish $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [[ -z $(phw_lab_netns "$lab") ]] || phw_die "$owned"
    phw_make_run_dir
    # mv would replace an empty directory, but it belongs to another script.
    [[ ! -e $dir && ! -L $dir && ! -e $half ]] || phw_die "$owned"
    phw_need_room 1
    # A signal may arrive as soon as it exists. Another lab's down.sh may remove an empty run directory.
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

# A block of 127.0.0.1 ports, two per link, below the kernel's ephemeral range.
free_ports() {
    local count=$1 base used
    used=$(awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/udp | while read -r hex; do echo $(( 16#$hex )); done)
    for (( base = 10240 + $$ % 64 * 256; base + count < 32000; base += count + 1 )); do
        awk -v low="$base" -v high=$(( base + count )) '$1 >= low && $1 < high { exit 1 }' <<<"$used" || continue
        echo "$base"
        return
    done
    phw_die "cannot find $count consecutive free UDP ports on 127.0.0.1"
}

describe() {
    local error count given=$topology file=$topology input=/dev/null
    # An input from the shell, such as <(phitwire topology generate ...), can be read only once; the limit is that of
    # the binaries. The binaries examine anything else first: it may be a device, or too large.
    case $given in
        /dev/fd/*|/dev/stdin|/proc/self/fd/*)
            topology=$dir/given.toml
            error=$(head -c 8388609 -- "$given" 2>&1 >"$topology") || phw_die "cannot read or write: $error"
            # Use standard input, so that relative file names in it start at this script's working directory.
            file=- input=$topology ;;
    esac
    # The copy includes the contents of other files that the description uses.
    phw topology plan --copy "$dir/topology.toml" "$file" <"$input" >"$dir/plan.tsv" || {
        error=$(phw_why_not "$dir") && phw_die "cannot write to $error"
        phw_die "$given: not a usable topology"
    }
    nodes=$(phw_plan_nodes "$lab")
    links=$(phw_plan_links "$lab")
    [[ -n $nodes && -n $links ]] || phw_die "$topology: expected at least one node and one link"
    count=$(wc -l <<<"$nodes")
    phw_need_room "$count"
    # Where many processes share a core, polling would starve those that have work.
    [[ $spin != auto ]] || spin=$(( count <= 2 * $(nproc) ? 100 : 0 ))
    # Where none polls, a process on its neighbour's core gets its frame sooner than on a core that must wake up first.
    [[ $stay != auto ]] || { stay=off; (( 10#$spin > 0 || count <= 2 * $(nproc) )) || stay=on; }
    local run
    if [[ $mode == virtual ]]; then
        run="--seed ${seed:-1}" link=virtual
        phw_write_env "$lab" MODE "$mode" LINK "$link" MTU "$mtu" TOPOLOGY "$topology" RUN_ARGUMENTS "$run" \
            BIN_DIR "$PHITWIRE_BIN_DIR"
        phw_open_lab "$lab"
        return
    elif [[ $mode == loopback ]]; then
        run="--loopback $(free_ports "$(( 2 * $(wc -l <<<"$links") ))")"
    else
        run="--link $link --mtu $mtu"
    fi
    (( ! ip )) || run+=" --ip $subnet"
    [[ $stay == off ]] || run+=" --stay"
    phw_write_env "$lab" MODE "$mode" LINK "$link" MTU "$mtu" TOPOLOGY "$topology" \
        RUN_ARGUMENTS "$run --io $io --spin $spin${clock:+ --clock $clock}${grain:+ --grain $grain}${cut_through:+ --cut-through $cut_through}" \
        BIN_DIR "$PHITWIRE_BIN_DIR"
    phw_open_lab "$lab"
}

make_namespaces() {
    local node prefix create=''
    prefix=$(phw_netns "$lab" '')
    for node in $nodes; do
        create+="netns add $prefix$node"$'\n'
    done
    # Everyone may list the directory of all namespaces.
    umask 022
    in_batches <<<"${create%$'\n'}"
    umask 077
    # Disable neighbour discovery and router solicitation, so that only our frames are on the wire.
    [[ -e /proc/net/if_inet6 ]] || return 0
    for node in $nodes; do
        phw_with_us nsenter "--net=/run/netns/$(phw_netns "$lab" "$node")" -- bash -c '
            for which in default all; do echo 1 >"/proc/sys/net/ipv6/conf/$which/disable_ipv6"; done'
    done
}

# Both ends are created in their namespaces, so that the machine's own namespace never sees them. Hardware addresses are
# ours (locally administered, derived from the link's number), and every neighbour is static, so that there are no ARP
# frames to lose.
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

# A device for each NIC; its process opens it on every start.
make_tuns() {
    local node
    [[ -c /dev/net/tun ]] || phw_die "--ip needs /dev/net/tun, which does not exist (modprobe tun)"
    [[ -r /dev/net/tun && -w /dev/net/tun ]] || phw_die "--ip needs /dev/net/tun, which this user cannot open (as root: chmod 666 /dev/net/tun)"
    for node in $(phw_plan_nics "$lab"); do
        phw_with_us ip -n "$(phw_netns "$lab" "$node")" -batch - <<<"tuntap add dev ip0 mode tun"$'\n'"link set ip0 mtu $ip_mtu txqueuelen 100"
    done
}

# Addresses follow from processor numbers, which the processes have. Names go to the namespaces' own /etc/hosts, which
# `ip netns exec` uses, if we may write there.
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
    [[ -w /etc ]] || phw_note "node names are not in /etc/hosts: /etc is not writable here"
}
# address N: the address of processor N.
address() {
    local a b c d place
    IFS=. read -r a b c d <<<"${subnet%/*}"
    place=$(( (a << 24) + (b << 16) + (c << 8) + d + 1 + $1 ))
    printf '%d.%d.%d.%d\n' $(( place >> 24 & 255 )) $(( place >> 16 & 255 )) $(( place >> 8 & 255 )) $(( place & 255 ))
}

# Splits commands for `ip` into batches that its descriptors suffice for: it keeps one open for each namespace that a
# command names, and a link has two.
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

# Starts the process that hosts all nodes. It removes the lab's directory when it ends.
start_virtual() {
    local started
    # shellcheck disable=SC2086  # a list
    setsid "$PHITWIRE_BIN_DIR/phitwire" virtual "$dir/topology.toml" --lab "$lab" --remove $PHW_LAB_RUN_ARGUMENTS \
        </dev/null >>"$dir/virtual.log" 2>&1 &
    started=$(phw_start_time $!) || started=0
    phw_write "$dir/virtual.process" "$! $started"$'\n'
}

exec_with_us() { exec setpriv --pdeathsig KILL -- "$@"; }

# Waits in the background, so that a signal to this script is handled at once, and so is the end of a process, whose
# links will not come up.
wait_for_links() {
    local status=0 ended=0
    # Exec without a shell in between, which would outlive this script if it is killed.
    exec_with_us "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$lab" --timeout "$timeout" &
    waiter=$!
    while kill -0 "$waiter" 2>/dev/null; do
        # shellcheck disable=SC2086  # a list
        phw_ended "$lab" $processes
        # The cause that ended one process is likely to end more: report them together.
        (( ${#PHW_ENDED[@]} == 0 || ${#PHW_ENDED[@]} > ended )) || kill "$waiter" 2>/dev/null || true
        ended=${#PHW_ENDED[@]}
        sleep 0.1
    done
    wait "$waiter" || status=$?
    waiter=''
    (( status == 0 )) && return 0
    # shellcheck disable=SC2086  # a list
    phw_ended "$lab" $processes
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
        phw_is_root || phw_die "namespaces need root: use sudo, or a shell of '$PHW_SCRIPTS/rootless.sh bash', where labs work as for" \
            "root until the shell exits; or --loopback, which needs neither"
        phw_need_lab_tools
    else
        phw_need setsid:util-linux setpriv:util-linux jq:jq pgrep:procps column:bsdextrautils
    fi
    phw_binaries
    umask 077
    dir=$(phw_lab_dir "$lab") half=$(phw_run_dir)/.new-$lab.$$ self="$$ $(phw_start_time $$)"
    waiter='' nodes='' links='' processes='' made=0
    claim
    describe
    if [[ $mode == netns ]]; then
        make_namespaces
        make_links
        (( ! ip )) || make_tuns
    fi
    # New wires carry nothing from an earlier lab of this name; loopback ports might.
    # shellcheck disable=SC2034  # read by phw_start_nodes
    [[ $mode != netns ]] || PHW_FIRST=--first
    if [[ $mode == virtual ]]; then
        processes=virtual
        start_virtual
    else
        processes=$nodes
        # shellcheck disable=SC2086  # a list
        phw_start_nodes "$lab" $nodes
    fi
    wait_for_links
    (( ! ip )) || address_tuns
    phw_note "lab '$lab' is up: $(wc -w <<<"$nodes") nodes, $(wc -l <<<"$links") links over $link"
}

main "$@"
