#!/usr/bin/env bash
# The scripts themselves: invalid arguments, names, Ctrl-C and crashes in up.sh, down.sh twice, status, link names.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

up=$PHW_SCRIPTS/up.sh down=$PHW_SCRIPTS/down.sh status=$PHW_SCRIPTS/status.sh impair=$PHW_SCRIPTS/impair.sh

check_fails "up.sh without a topology names the ready-made ones" "quickstart" "$up"
check_fails "up.sh refuses an unknown option" "unknown option --lnk" "$up" quickstart --lnk udp
check_fails "up.sh refuses an unknown link kind" "udp or ethernet" "$up" quickstart --link token-ring
check_fails "up.sh rejects a lab name that cannot be parsed" "not a lab name" "$up" quickstart --lab a-b
check_fails "up.sh names an unknown topology, and the known ones" \
    "no such topology: nowhere .*aries-pair .*quickstart" "$up" nowhere
check_fails "status.sh fails for a lab that is not up" "not up" "$status" --lab "none_$$"
check "down.sh of a lab that is not up is well" "$down" --lab "none_$$"

t_up names quickstart
first=$LAB
check "status.sh is content" "$status" --lab "$first"
check "status.sh --json gives every link up" bash -c '"$1" --lab "$2" --json | jq -e ".[0].up and (.[0].links | length > 0)"' \
    bash "$status" "$first"
check_fails "a command for a lab that is not up names those that are" "'none_$$' is not up .*running labs: .*$first" \
    "$impair" --lab "none_$$" all clear
check_fails "a lab cannot come up twice" "is up already" "$up" quickstart --lab "$first"
check_fails "impair.sh names an unknown link" "no link 'nosuch'" "$impair" --lab "$first" nosuch clear
check_fails "a time beyond the clock's range is rejected" "--timeout 10000000000000000000 is too large" \
    "$PHITWIRE_BIN_DIR/phitwire" wait --lab "$first" --timeout 1e19
# A reader that exits early is not an error; a full disk is one. Neither causes a panic.
left_alone() { { "$PHITWIRE_BIN_DIR/phitwire" ctl --lab "$first" all stats --zero "$@" 2>"$T_SCRATCH/panic"; echo $? >"$T_SCRATCH/left"; } | true; }
for json in '' --json; do
    # shellcheck disable=SC2086  # none or one
    left_alone $json
    check "phitwire ctl stats $json bears a reader that leaves" grep -qx 0 "$T_SCRATCH/left"
    # shellcheck disable=SC2016,SC2086  # expanded by the inner shell; none or one
    check_fails "and names a full disk" "cannot write to standard output" bash -c '
        "$1" ctl --lab "$2" all stats --zero $3 >/dev/full' bash "$PHITWIRE_BIN_DIR/phitwire" "$first" $json
done
read -r id a port_a b _ < <(phw_plan_links "$first")
for name in "$id" "$a:$port_a" "$a:p$port_a" "$a-$b" "$b-$a" "$a" all; do
    check "link name $name is understood" bash -c '"$1" --lab "$2" "$3" show | grep -q "^$4 .*clear"' \
        bash "$impair" "$first" "$name" "$id"
done

# Deleting an interface also deletes its peer; the others are impaired and cleared nevertheless.
t_up deleted quickstart
read -r id a _ b _ if_a if_b _ < <(phw_plan_links "$LAB")
read -r other _ < <(phw_plan_links "$LAB" | tail -n 1)
ip -n "$(phw_netns "$LAB" "$a")" link del "$if_a"
for what in "clear" "show"; do
    check "impair.sh all $what skips a deleted interface" "$impair" --lab "$LAB" all "$what"
done
check "clear names both of its ends" bash -c '"$1" --lab "$2" all clear 2>&1 | grep -F "$3" | grep -F "$4"' \
    bash "$impair" "$LAB" "$a:$if_a" "$b:$if_b"
check "show calls it gone" bash -c '"$1" --lab "$2" "$3" show | grep -E "gone: .*deleted"' bash "$impair" "$LAB" "$id"
if t_has_nft; then
    check "the others lose frames by nftables" "$impair" --lab "$LAB" --nft all loss 2%
    check "and lose no more when cleared" bash -c '"$1" --lab "$2" all clear && "$1" --lab "$2" "$3" show | grep -qw clear' \
        bash "$impair" "$LAB" "$other"
else
    skip "the others lose frames by nftables" "no nftables, or no random loss in it"
fi
check_fails "it fails if none is left" "deleted: " "$impair" --lab "$LAB" "$id" clear
check "status.sh --json still speaks of the lab" bash -c '"$1" --lab "$2" --json | jq -e ".[0].links | length > 0"' bash "$status" "$LAB"
check "down.sh is well with it" "$down" --lab "$LAB"

node=$(phw_plan_nodes "$first" | head -n 1)
check "a node can be restarted, and answers then" bash -c '"$1/node.sh" --lab "$2" restart "$3" && "$4" ctl --lab "$2" "$3" info' \
    bash "$PHW_SCRIPTS" "$first" "$node" "$PHITWIRE_BIN_DIR/phitwire"
check "a node can be stopped" "$PHW_SCRIPTS/node.sh" --lab "$first" stop "$node"
mv "$(phw_lab_dir "$first")/topology.toml" "$T_SCRATCH/"
check_fails "node.sh start fails with the last messages of a process that ends immediately" "topology.toml" \
    "$PHW_SCRIPTS/node.sh" --lab "$first" start "$node"
mv "$T_SCRATCH/topology.toml" "$(phw_lab_dir "$first")/"
check "and starts it when it can" "$PHW_SCRIPTS/node.sh" --lab "$first" start "$node"
check "a node can be killed" "$PHW_SCRIPTS/node.sh" --lab "$first" kill "$node"
# Two terminals, or a watchdog and its master, start a node: one of them starts the process, and that one is recorded.
starters=()
for _ in {1..8}; do
    "$PHW_SCRIPTS/node.sh" --lab "$first" start "$node" 2>>"$T_SCRATCH/starts.err" &
    starters+=($!)
done
started=0
for pid in "${starters[@]}"; do
    settled "$pid"
    (( SETTLED != 0 )) || (( ++started ))
done
check "of eight starts at once, one starts it" test "$started" = 1
check "and the others say so" test "$(grep -c "$node is already running" "$T_SCRATCH/starts.err")" = 7
# shellcheck disable=SC2016  # expanded by the inner shell
check "its process is the one that answers" bash -c 'test "$("$1" ctl --lab "$2" "$3" info --json | jq .pid)" = "$4"' \
    bash "$PHITWIRE_BIN_DIR/phitwire" "$first" "$node" "$(phw_node_pid "$first" "$node" || echo none)"
check_fails "which blocks no other start" "$node is already running" \
    timeout 10 "$PHW_SCRIPTS/node.sh" --lab "$first" start "$node"
check "and node.sh can kill it" "$PHW_SCRIPTS/node.sh" --lab "$first" kill "$node"
check_fails "status.sh reports an ended process" "$node .*ended" "$status" --lab "$first"
check "a crashed lab goes down" "$down" --lab "$first"
check "and leaves nothing" nothing_left "$first"
check "down.sh twice is well" "$down" --lab "$first"

t_lab relative
# shellcheck disable=SC2016  # expanded by the inner shell
check "a run directory may be named as seen from here" bash -c '
    cd "$1" && export PHITWIRE_RUN_DIR=here
    "$2/up.sh" pair --lab "$3" && cd / && PHITWIRE_RUN_DIR="$1/here" "$2/status.sh" --lab "$3" && cd "$1" && "$2/down.sh" --lab "$3"
    ' bash "$T_SCRATCH" "$PHW_SCRIPTS" "$LAB"
check "and leaves nothing" nothing_left "$LAB"

# Ctrl-C at several moments of up.sh. A shell's background job ignores SIGINT unless configured otherwise.
# Both signals run the same EXIT trap.
moments=('INT 0.05' 'TERM 0.3' 'INT 0.8')
! t_long || moments=('INT 0.05' 'INT 0.3' 'INT 0.8' 'TERM 0.05' 'TERM 0.3' 'TERM 0.8')
for moment in "${moments[@]}"; do
    read -r signal delay <<<"$moment"
    t_lab stopped
    env --default-signal=INT "$up" quickstart --lab "$LAB" 2>/dev/null &
    pid=$!
    sleep "$delay"
    kill "-$signal" "$pid" 2>/dev/null || true
    status=0
    wait "$pid" || status=$?
    # If the signal came too late, the lab is up, and down.sh has to remove it.
    (( status != 0 )) || "$down" --lab "$LAB"
    check "SIG$signal to up.sh after $delay s leaves nothing (status $status)" nothing_left "$LAB"
done

t_lab raced
"$up" quickstart --lab "$LAB" 2>/dev/null &
pid=$!
phw_until 10 test -e "$(phw_lab_dir "$LAB")" || true
check "down.sh while up.sh is at work" "$down" --lab "$LAB"
wait "$pid" || true
check "leaves nothing" nothing_left "$LAB"
