#!/usr/bin/env bash
# ip.sh [netem] [TOPOLOGY,FROM,TO]...      ordinary programs communicate over the fabric
#
# Links lose one frame in twenty; with `netem`, which runs inside netns-scripts/with-netem.sh, they also delay each by 1
# ms with jitter. The machines share the datagram code: an Aries runs every case, the others pings, UDP and a file by
# TCP. PHITWIRE_LONG=1: every case on larger labs of all machines, a file of 256 MiB by ssh, longer measurements, and
# the kernel's own TCP for comparison; PHITWIRE_IP_MIB=N: a file of N MiB.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
[[ -c /dev/net/tun ]] || skip_all "no /dev/net/tun here (modprobe tun)"
[[ -r /dev/net/tun && -w /dev/net/tun ]] || skip_all "cannot open /dev/net/tun"
(phw_need ping:iputils-ping iperf3:iperf3 socat:socat jq:jq) 2>/dev/null \
    || skip_all "missing ping, iperf3 or socat (sudo apt-get install iputils-ping iperf3 socat)"

netem=0 long=${PHITWIRE_LONG:-0}
[[ ${1:-} != netem ]] || { netem=1; shift; }
mib=4 seconds=1 udp=4M datagrams=80 pings=(-c 50 -i 0.01)
# User-mode Linux has one CPU, and carries some megabits per second: the offered load has to fit.
(( ! netem )) || mib=16 seconds=5 udp=300K pings=(-c 20 -i 0.25)
few=$mib
[[ $long == 0 ]] || mib=256 seconds=$(( seconds + 4 ))
mib=${PHITWIRE_IP_MIB:-$mib}
patience=$(( 60 + mib * 20 ))
labs=("$@")
if (( ${#labs[@]} == 0 )); then
    labs=("aries-3x4,nic0,nic11" "quickstart,nic0,nic7" "t3e-2x2x2,nic0,nic7")
    (( netem )) || t_long || labs=("aries-group,nic0,nic7" "pair,nic0,nic1" "t3e-2x2x2,nic0,nic7")
fi
(( few < mib )) || few=$mib
head -c $(( mib << 20 )) /dev/urandom >"$T_SCRATCH/file"
head -c $(( few << 20 )) "$T_SCRATCH/file" >"$T_SCRATCH/few"
digest=$(sha256sum <"$T_SCRATCH/file")

# Keep writes to /etc in here: user-mode Linux shares this machine's files.
if [[ ${PHITWIRE_NETEM:-} == uml ]]; then
    { cp -a /etc /run/etc && mount --bind /run/etc /etc; } || skip_all "cannot mount a private /etc in user-mode Linux"
fi

# enter NODE: sets $ENTER to a command prefix for its namespace, with the names of the lab, if any. It ends with this
# script.
enter() {
    local netns
    netns=$(phw_netns "$LAB" "$1")
    ENTER=(setpriv --pdeathsig TERM -- nsenter "--net=/run/netns/$netns" --)
    [[ ! -e $PHW_ETC_NETNS/$netns/hosts ]] || ENTER=(setpriv --pdeathsig TERM -- ip netns exec "$netns")
}
on() { enter "$1"; "${ENTER[@]}" "${@:2}"; }
address_of() { ip -n "$(phw_netns "$LAB" "$1")" -j -4 addr show dev ip0 | jq -r '.[0].addr_info[0].local'; }
ip_count() { t_ctl "$from" stats --json | jq --arg names "$1" '[to_entries[] | select(.key | test("^ip\\.(\($names))$")) | .value] | add'; }
ip_sum() { counter_sum "^ip\\.$1\$"; }
listens() { on "$1" ss -Hltn "sport = :$2" | grep -q .; }

# ping exits after twice the longest round trip seen: answers delayed by a lost frame arrive later, and the kernel
# counts them.
pings() {
    local before sent
    before=$(replies)
    on "$from" ping -q -W 5 "$@" >"$T_SCRATCH/ping" || true
    sent=$(sed -n 's/ packets transmitted.*//p' "$T_SCRATCH/ping")
    [[ -n $sent ]] && phw_until 5 replied "$(( before + sent ))" && return
    cat "$T_SCRATCH/ping"
    return 1
}
replies() { on "$from" awk '/^Icmp:/ { if (!at) { for (i = 2; i <= NF; i++) if ($i == "InEchoReps") at = i } else print $at }' /proc/net/snmp; }
replied() { (( $(replies) >= $1 )); }

# One at a time: the socket of ping has room for at most two, and answers arrive together on busy processors.
long_pings() {
    local i
    for (( i = 0; i < 8; i++ )); do pings -c 1 -s 65000 "$there" || return 1; done
}

# iperf NODE ADDRESS OPTIONS: runs iperf3 against a server in NODE's namespace; its JSON goes to $T_SCRATCH/iperf.json.
iperf() {
    enter "$1"
    "${ENTER[@]}" iperf3 -s -1 -p 5201 >/dev/null 2>&1 &
    local server=$! status=0
    phw_until 10 listens "$1" 5201 || status=1
    (( status )) || on "$from" timeout 60 iperf3 -J -p 5201 -c "$2" "${@:3}" >"$T_SCRATCH/iperf.json" || status=$?
    phw_stop "$server" || true
    (( status == 0 )) || cat "$T_SCRATCH/iperf.json"
    return "$status"
}
kilobits() { jq '.end.sum_received.bits_per_second / 1e3 | round' "$T_SCRATCH/iperf.json"; }

# Drops reported by every part of the IP path, including the kernel.
drops() {
    local node count sum
    sum=$(ip_sum '(dropped_full|dropped_silent|dropped_refused|datagrams_lost|datagrams_broken)')
    for node in "$from" "$to"; do
        for count in $(ip -n "$(phw_netns "$LAB" "$node")" -j -s link show dev ip0 | jq '.[].stats64 | .rx.dropped, .tx.dropped') \
            $(tc -n "$(phw_netns "$LAB" "$node")" -j -s qdisc show dev ip0 | jq '.[].drops // 0') \
            $(on "$node" awk '/^(Ip|Udp):/ { if ($1 in names) { split(names[$1], name); for (i = 2; i <= NF; i++) if (name[i] ~ /^(InErrors|SndbufErrors|InDiscards|OutDiscards|ReasmFails)$/) print $i } else names[$1] = $0 }' /proc/net/snmp)
        do
            sum=$(( sum + count ))
        done
    done
    echo "$sum"
}

# The kernel's own TCP over the first link of $from, where the router has an address: one link of the path, with the
# same loss.
plain() {
    local line
    line=$(phw_find_links "$LAB" "$from" | head -n 1)
    IFS=$'\t' read -r _ a _ b _ _ _ address_a address_b _ <<<"$line"
    [[ $a == "$from" ]] || { b=$a address_b=$address_a; }
    iperf "$b" "${address_b%/*}" "$@"
}

# A file over a connection, with equal hashes. All its processes end with it.
copies() {
    enter "$to"
    "${ENTER[@]}" timeout "$patience" socat -u TCP-LISTEN:5300,reuseaddr "CREATE:$T_SCRATCH/copy" 2>"$T_SCRATCH/socat" &
    local server=$! status=0
    phw_until 10 listens "$to" 5300 || status=1
    (( status )) || on "$from" timeout "$patience" socat -u - "TCP:$there:5300" <"$T_SCRATCH/few" || status=$?
    (( status == 0 )) || phw_stop "$server" || true
    wait "$server" || status=$?
    cat "$T_SCRATCH/socat"
    (( status == 0 )) && cmp "$T_SCRATCH/few" "$T_SCRATCH/copy"
}

# The same by ssh, with our own server and keys.
copies_by_ssh() {
    local keys=$T_SCRATCH/keys-$LAB port=5322 server status=0
    mkdir -p "$keys" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$keys/host" && ssh-keygen -q -t ed25519 -N '' -f "$keys/user" || return 1
    chmod 755 "$T_SCRATCH" "$keys"
    enter "$to"
    "${ENTER[@]}" "$(command -v sshd)" -D -e -f /dev/null -p "$port" -h "$keys/host" -o "AuthorizedKeysFile=$keys/user.pub" \
        -o StrictModes=no -o UsePAM=no -o PidFile=none 2>"$keys/log" &
    server=$!
    phw_until 10 listens "$to" "$port" || status=1
    (( status )) || on "$from" timeout "$patience" ssh -p "$port" -i "$keys/user" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        -o IdentitiesOnly=yes -o BatchMode=yes -F /dev/null "root@$there" sha256sum <"$T_SCRATCH/file" >"$keys/digest" 2>"$keys/said" || status=$?
    phw_stop "$server" || true
    [[ $status == 0 && $(<"$keys/digest") == "$digest" ]] || { cat "$keys/log" "$keys/said"; return 1; }
}

# Loss, and delay with jitter, on all links.
impaired() {
    lossy=''
    if (( netem )); then
        t_impair all loss 5% delay 1ms 0.2ms 2>/dev/null || { (( $? != PHW_SKIP )) || skip_all "no netem in this kernel"; return 1; }
        lossy=' under 5 % loss and 1 ms with jitter'
    elif t_has_nft; then
        t_impair --nft all loss 5%
        lossy=' with 5 % of the frames lost'
    fi
}

# Whether this lab runs every case.
every_case() { (( netem )) || t_long || [[ $topology == aries-* ]]; }

# The distance between the ends, the throughput, and whether all data arrives intact.
programs() {
    check "$topology: every ping is answered$lossy" pings "${pings[@]}" "$there"
    detail < <(tail -n 1 "$T_SCRATCH/ping")
    check "$topology: and every one of the longest packets" long_pings
    local got ratio dropped lost
    if every_case; then
        check "$topology: iperf3 by TCP$lossy" iperf "$to" "$there" -t "$seconds"
        got=$(kilobits)
        check "$topology: it got somewhere ($got kb/s)" jq -e '.end.sum_received.bytes > 2e5' "$T_SCRATCH/iperf.json"
    fi
    if [[ -n $lossy ]] && { (( netem )) || [[ $long != 0 ]]; }; then
        check "$topology: the kernel's own TCP over the first link$lossy" plain -t "$seconds"
        ratio=$(jq --argjson got "$got" '$got * 1e5 / .end.sum_received.bits_per_second | round / 100' "$T_SCRATCH/iperf.json")
        detail <<<"it got $(kilobits) kb/s there: over the fabric $ratio times as much"
    fi
    # No more than the shortest queue on their path holds, the receiver's socket of 208 KiB: on busy processors iperf3
    # catches up with its rate in bursts, and may not read for a while, and full queues of the kernel drop the rest.
    dropped=$(drops)
    check "$topology: iperf3 by UDP$lossy" iperf "$to" "$there" -u -b "$udp" -l 1400 -k "$datagrams"
    dropped=$(( $(drops) - dropped )) lost=$(jq '.end.sum.lost_packets' "$T_SCRATCH/iperf.json")
    check "$topology: all datagrams came ($lost did not)" jq -e --argjson sent "$datagrams" '.end.sum | .packets == $sent and .lost_packets == 0' "$T_SCRATCH/iperf.json"
    check "$topology: none was dropped ($dropped)" test "$dropped" = 0
    if ! command -v sshd >/dev/null; then
        skip "$topology: $mib MiB by ssh, hashes equal" "no sshd (sudo apt-get install openssh-server)"
        check "$topology: $few MiB by TCP, as they were sent" copies
    elif ! phw_is_machine_root; then
        skip "$topology: $mib MiB by ssh, hashes equal" "sshd needs root of the machine"
        check "$topology: $few MiB by TCP, as they were sent" copies
    else
        check "$topology: $mib MiB by ssh, hashes equal" copies_by_ssh
    fi
    check "$topology: what arrived is what was sent" test "$(ip_sum datagrams_broken)" = 0
    check "$topology: none was lost" test "$(ip_sum datagrams_lost)" = 0
}

# A traffic run at the same time: neither stops the other.
beside_puts() {
    iperf "$to" "$there" -t "$seconds" &
    T_FIRST=$!
    rate_case "$topology: puts beside it" 1000 --seconds 0.5
    settled "$T_FIRST"
    T_FIRST=''
    check "$topology: TCP beside puts" test "$SETTLED" = 0
    check "$topology: it got somewhere beside them" jq -e '.end.sum_received.bytes > 1e5' "$T_SCRATCH/iperf.json"
}

# Undeliverable packets are counted, and a lost node comes back.
astray() {
    on "$from" ping -q -c 2 -i 0.1 -W 0.2 "$net.3.3" >/dev/null || true
    check "$topology: packets without a receiver are counted" test "$(ip_count dropped_no_processor)" -ge 2
    on "$from" ping -q -c 2 -i 0.1 -W 0.2 -b "$net.255.255" >/dev/null 2>&1 || true
    on "$from" ping -q -c 2 -i 0.1 -W 0.2 -I ip0 224.0.0.1 >/dev/null 2>&1 || true
    check "$topology: so are those for all and for many" test "$(ip_count dropped_no_processor)" -ge 6
    if [[ -e /proc/sys/net/ipv6 ]]; then
        on "$from" bash -c 'echo 0 >/proc/sys/net/ipv6/conf/ip0/disable_ipv6; ip addr add fd00::1/64 dev ip0 nodad; ping -6 -q -c 2 -i 0.1 -W 0.2 fd00::2' >/dev/null || true
        check "$topology: so are those that are not IPv4" test "$(ip_count dropped_not_ipv4)" -ge 1
    fi
    "$PHW_SCRIPTS/node.sh" --lab "$LAB" kill "$to"
    check "$topology: packets for the dead are counted" phw_until 8 counts_the_dead
    "$PHW_SCRIPTS/node.sh" --lab "$LAB" start "$to"
    check "$topology: the restarted node answers again" phw_until 30 on "$from" ping -q -c 1 -W 1 "$there"
    check "$topology: no error is reported" test "$(ip_sum datagrams_broken)" = 0
    ip -n "$(phw_netns "$LAB" "$to")" link del ip0
    rate_case "$topology: a NIC that lost its device continues" 1000 --seconds 0.5
    check "$topology: the log reports it" grep -q 'ip0 is gone' "$(phw_lab_dir "$LAB")/$to.log"
}
counts_the_dead() {
    on "$from" ping -q -c 2 -i 0.1 -W 0.2 "$there" >/dev/null || true
    (( $(ip_count datagrams_lost) >= 2 && $(ip_count dropped_silent) >= 1 ))
}

for words in "${labs[@]}"; do
    IFS=, read -r topology from to <<<"$words"
    net=10.77
    if (( netem )); then
        # Requests outlive the delay of a lost frame in an emulated machine with one CPU.
        t_topology "$T_SCRATCH/patient.toml" "$topology" request_timeout_ms=30000 give_up_ms=0 silence_ms=0
        t_up "ip_netem_${topology//-/_}" "$T_SCRATCH/patient.toml" --ip --timeout 240
    else
        # One of them with settings that the others leave unchanged.
        given=()
        [[ $topology != t3e-* ]] || { net=172.20 given=(--subnet 172.20.0.0/16 --ip-mtu 1500); }
        t_up "ip_${topology//-/_}" "$topology" --ip "${given[@]}"
    fi
    there=$(address_of "$to")
    check "$topology: the addresses are those of the processors" test "$there" = "$net.0.$(( ${to#nic} + 1 ))"
    if [[ -w /etc ]]; then
        check "$topology: $to goes by its name" pings -c 3 -i 0.1 "$to"
    else
        skip "$topology: $to goes by its name" "/etc is not writable"
    fi
    impaired
    programs
    if (( ! netem )); then
        share=$(nft_lost_share)
        [[ -z $lossy ]] || check "$topology: about 50 per mille of the frames were lost (was $share)" between "$share" 30 70
        ! every_case || { beside_puts; astray; }
    fi
    "$PHW_SCRIPTS/down.sh" --lab "$LAB"
    check "$topology: nothing is left" nothing_left "$LAB"
done
(( ! netem )) || exit "$T_FAILED"

up() { "$PHW_SCRIPTS/up.sh" --lab "$LAB" quickstart "$@"; }
t_lab ip_wrong
check_fails "a subnet that is none" '10\.77\.0\.0/16' up --subnet 10.77.0.0
check_fails "a subnet too small" 'addresses for 2 NICs' up --subnet 10.77.0.0/30
check_fails "a subnet of the links" 'addresses of the lab.s links' up --subnet 198.18.0.0/24
check_fails "an MTU that is none" '--ip-mtu must be 576 to 65520' up --ip-mtu 100
check_fails "no namespaces" 'needs namespaces' up --ip --loopback
