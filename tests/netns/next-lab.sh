#!/usr/bin/env bash
# A lab is taken down and another one brought up under its name, while a manager watches. The other one is another network:
# the manager ends, and what the new routers have been given stays. Until then it is nobody's either.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

"$PHITWIRE_BIN_DIR/phitwire" topology generate dragonfly --groups 3 --chassis 1 --blades 4 --nics 1 --global-links 4 \
    --arrangement relative >"$T_SCRATCH/one.toml"
sed 's/^arrangement.*/arrangement = "circulant"/' "$T_SCRATCH/one.toml" >"$T_SCRATCH/two.toml"
check "the networks differ" bash -c '! cmp -s "$1" "$2"' bash "$T_SCRATCH/one.toml" "$T_SCRATCH/two.toml"

digests() { t_ctl all routing --json | jq -cS 'map_values(.digest? // empty)'; }
ended() { ! kill -0 "$watcher" 2>/dev/null; }

t_up next "$T_SCRATCH/one.toml"
# It looks so seldom that the labs change between two looks.
env --default-signal=INT "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --watch --interval 10000 --json \
    >"$T_SCRATCH/watch" 2>"$T_SCRATCH/watch.err" &
watcher=$!
check "the watcher has looked" phw_until 10 test -s "$T_SCRATCH/watch"
"$PHW_SCRIPTS/down.sh" --lab "$LAB"
check "another lab of that name comes up" "$PHW_SCRIPTS/up.sh" --lab "$LAB" "$T_SCRATCH/two.toml"
before=$(digests)
check "its routers tell their tables" test "$(jq length <<<"$before")" = 12
check "a manager of its own is let in" "$PHITWIRE_BIN_DIR/phitwire" manage reroute --lab "$LAB" --json
phw_until 20 ended || kill -INT "$watcher"
settled "$watcher"
check "the watcher of the old one has ended" test "$SETTLED" = 1
check "and says why" grep -q "another lab has its name" "$T_SCRATCH/watch.err"
check "the new one has the tables it had" test "$(digests)" = "$before"
rate_case "and delivers exactly once" 1000 --seconds 1
