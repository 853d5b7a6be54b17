#!/usr/bin/env bash
# phitwire top: one sample of a lab as text and JSON, and the screen in a terminal: contents, keys, exit.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

top() { "$PHITWIRE_BIN_DIR/phitwire" top --lab "$LAB" "$@"; }
# look FILTER: applies jq to one sample.
look() { top --once --json --interval 300 | jq -e "$1" >/dev/null; }

for topology in t3e-2x2x2 aries-pair quickstart; do
    t_up "top" "$topology"
    check "$topology: all nodes answer, and all links are up" look '([.sample.nodes[] | select(.silent)] | length == 0)
        and ([.sample.nodes[].links[].up] | all) and (.rates.links | length > 0)'
    steady_rate "$T_SCRATCH/rate.json" &
    rate=$!
    check "$topology: frames, messages and latencies are seen" phw_until 20 look '([.rates.links[].directions[].frames] | add > 100)
        and ([.rates.nodes[].acknowledged] | add > 10) and ([.sample.nodes[].traffic // empty | .latency.buckets | length] | add > 0)'
    stop_job "$rate"
    top --once >"$T_SCRATCH/text" 2>&1 || true
    check "$topology: the same in words" grep -qE 'ends +state +lanes' "$T_SCRATCH/text"
    [[ $topology == quickstart ]] || check "$topology goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done

check_fails "without a terminal it says what to do" 'once' top </dev/null
check_fails "an unknown lab is rejected" 'is not running' "$PHITWIRE_BIN_DIR/phitwire" top --lab nobody_has_this --once

kill -STOP "$(phw_node_pid "$LAB" nic3)"
check "a stopped node is reported as silent, and the others are shown" look '[.sample.nodes[] | select(.silent) | .name] == ["nic3"]'
kill -CONT "$(phw_node_pid "$LAB" nic3)"
check "a stopped node does not delay later samples" look '.sample.took_ms < 700'
check "and answers when resumed" phw_until 10 look '[.sample.nodes[] | select(.silent)] == []'

if ! (phw_need tmux:tmux) 2>/dev/null; then
    skip "the screen" "no tmux (sudo apt-get install tmux)"
    exit 0
fi
tmux() { command tmux -f /dev/null -L "phw_top_$$" "$@"; }
trap 'status=$?; set +e; tmux kill-server 2>/dev/null; (exit "$status"); t_finish' EXIT
screen() { tmux capture-pane -p -t top; }
# shown PATTERN: it appears on the screen within ten seconds.
shown() { phw_until 10 on_screen "$1" || { screen; return 1; }; }
on_screen() { screen | grep -qE -- "$1"; }
keys() { tmux send-keys -t top "$@"; }

tmux new-session -d -s top -x 80 -y 24 "bash --norc"
keys "PS1='prompt> '; clear" Enter
keys "'$PHITWIRE_BIN_DIR/phitwire' top --lab $LAB; echo status \$?" Enter
check "it shows links" shown 'links: [0-9]+, by trouble'
keys x
check "x asks first" shown 'take the link down'
keys n
check "and does nothing without a yes" shown 'cancelled'
t_ctl all stats --json >"$T_SCRATCH/stats"
check "nothing was done" jq -e '[.[] | keys[] | select(test("fault_"))] == []' "$T_SCRATCH/stats"
keys x
shown 'take the link down' >/dev/null
keys y
check "after a yes it is done" shown 'done: .*take the link down'
keys 3
check "and reported as an event" shown 'fault-injected.*link-down'
keys 1 u
shown 'bring the link up' >/dev/null
keys y
check "u brings the link back" shown 'done: .*bring the link up'
check "all links are up again" phw_until 20 look '[.sample.nodes[].links[].up] | all'
keys 2 /nic Enter
check "a filter leaves network interfaces" shown 'nodes with "nic"'
keys Enter
check "one of them has a page" shown 'its links: 1'
tmux resize-window -t top -x 200 -y 50
check "it takes another size" shown 'problem'
keys q
check "q ends it, and gives the terminal back" shown 'status 0$'
check "with what was on it before" on_screen '^prompt> '

keys "'$PHITWIRE_BIN_DIR/phitwire' top --lab $LAB; echo signalled \$?" Enter
shown 'links: [0-9]+, by trouble' >/dev/null
pid=$(pgrep -f "^$PHITWIRE_BIN_DIR/phitwire top --lab $LAB\$" | head -n 1)
kill -TERM "$pid"
check "a signal ends it, and gives the terminal back" shown 'signalled 0$'
keys "'$PHITWIRE_BIN_DIR/phitwire' top --lab $LAB; stty -a | grep -o ' echo '; echo status \$?" Enter
shown 'links: [0-9]+, by trouble' >/dev/null
keys C-c
check "so does Ctrl-C, and what is typed is seen" shown '^ echo $|^ echo'
