#!/usr/bin/env bash
# A lab is taken down and another network is brought up under its name, while a manager watches: the manager ends, and
# leaves the tables of the new routers alone. In between the lab has no manager.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

# The two networks differ in the routers that have the links between groups.
generate() {
    "$PHITWIRE_BIN_DIR/phitwire" topology generate dragonfly --groups 3 --chassis 1 --blades 4 --nics 1 --global-links 4 "$@"
}
generate >"$T_SCRATCH/one.toml"
generate --arrangement relative | sed 's/^arrangement.*/arrangement = "circulant"/' >"$T_SCRATCH/two.toml"
check "the networks differ" bash -c '! cmp -s "$1" "$2"' bash "$T_SCRATCH/one.toml" "$T_SCRATCH/two.toml"

digests() {
    local router
    for router in $(phw_plan_nodes "$LAB" | grep '^g'); do t_ctl "$router" routing --json | jq -r .digest; done
}
# shellcheck disable=SC2317  # called by the trap
end_watcher() { [[ -z $watcher ]] || kill "$watcher" 2>/dev/null || true; }
watcher=''
trap 'status=$?; set +e; end_watcher; (exit "$status"); t_finish' EXIT
ended() { ! kill -0 "$watcher" 2>/dev/null; }

t_up next "$T_SCRATCH/one.toml"
# The manager polls so rarely that the labs change between two polls.
env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --watch --interval 10000 --json \
    >"$T_SCRATCH/watch" 2>"$T_SCRATCH/watch.err" &
watcher=$!
check "the watcher has looked" phw_until 10 test -s "$T_SCRATCH/watch"
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "another lab of that name comes up" "$PHW_SCRIPTS/up.sh" --lab "$LAB" "$T_SCRATCH/two.toml"
before=$(digests)
check "its routers report their tables" test "$(wc -l <<<"$before")" = 12
check "its own manager is accepted" "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --json
phw_until 20 ended || kill -INT "$watcher"
settled "$watcher"
watcher=''
check "the watcher of the old one has ended" test "$SETTLED" = 1
check "and says why" grep -q "is gone" "$T_SCRATCH/watch.err"
check "the new one has the tables it had" test "$(digests)" = "$before"
rate_case "and delivers exactly once" 1000 --seconds 0.3
