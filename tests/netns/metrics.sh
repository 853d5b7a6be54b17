#!/usr/bin/env bash
# phitwire metrics: a lab's counters in Prometheus format, following the conventions that promtool checks, with bad
# clients, and scraped by Debian's prometheus.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces

metrics=$PHITWIRE_BIN_DIR/phitwire server='' prometheus=''
end_ours() {
    local pid
    for pid in $prometheus $server; do
        kill "$pid" 2>/dev/null || continue
        wait "$pid" || true
    done
}
trap 'status=$?; set +e; end_ours; (exit "$status"); t_finish' EXIT

# ask REQUEST: the raw answer to a request, from the server at $port.
ask() {
    local status=0
    { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 1
    printf '%b' "$1" >&3
    timeout 10 cat <&3 || status=$?
    exec 3>&-
    return "$status"
}
scrape() { ask 'GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n'; }
says() { grep -qE -- "$1" "$2" || { echo "no line matches '$1'"; return 1; }; }
# scraped PATTERN: the current metrics have a line that matches.
scraped() { scrape >"$T_SCRATCH/now" && says "$1" "$T_SCRATCH/now"; }
# The port is known only from the server's output.
start_server() {
    # Do not mistake the output of an earlier server for this one's.
    : >"$T_SCRATCH/server"
    "$metrics" metrics --lab "$LAB" --listen 127.0.0.1:0 >"$T_SCRATCH/server" 2>"$T_SCRATCH/server.err" &
    server=$!
    phw_until 10 says '/metrics$' "$T_SCRATCH/server" || { not_ok "phitwire metrics serves" "$(cat "$T_SCRATCH/server.err")"; exit 1; }
    port=$(sed -nE 's|.*127\.0\.0\.1:([0-9]+)/metrics$|\1|p' "$T_SCRATCH/server")
}

# conventions LAB NAME: promtool finds nothing wrong with the metrics.
conventions() {
    if (phw_need promtool:prometheus) 2>/dev/null; then
        check "promtool finds nothing in the metrics of $1" bash -c '"$1" metrics --lab "$2" --once | promtool check metrics' sh "$metrics" "$LAB"
    else
        skip "promtool finds nothing in the metrics of $1" "no promtool (sudo apt-get install prometheus)"
    fi
}

for topology in t3e-2x2x2 aries-pair quickstart; do
    t_up "metrics" "$topology"
    t_rate "$T_SCRATCH/rate.json" --seconds 0.3 || true
    conventions "$topology"
    [[ $topology == quickstart ]] || check "$topology goes down" "$PHW_SCRIPTS/down.sh" --lab "$LAB"
done

start_server
check "each node answers" scraped '^phitwire_node_up\{lab="'"$LAB"'",node="r1-0",kind="router"\} 1$'
check "each link has its ends' names" scraped '^phitwire_link_frames_received_total\{lab="[^"]*",node="r1-0",port="[0-9]+",link="[0-9]+",peer="[^"]+:[0-9]+"\} [1-9]'
check "latencies of the previous run are reported" scraped '^phitwire_traffic_latency_seconds_count\{.*\} [1-9]'
check "they say what they are" scraped '^Content-Type: text/plain; version=0\.0\.4'

for request in 'GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' 'POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'; do
    ask "$request" >"$T_SCRATCH/refused" || true
    check "${request%% HTTP*} is rejected" says '^HTTP/1.1 40[45]' "$T_SCRATCH/refused"
done
for request in '\0\0\0\0\r\n\r\n' 'GET\r\n\r\n' 'GET /metrics HTTP/9.9\r\n\r\n' 'GET /metrics HTTP/1.1\r\nX' 'GET /metrics HTTP/1.1\r\nContent-Length: -7\r\n\r\n'; do
    { exec 4<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null && printf '%b' "$request" >&4 && exec 4>&-
done
# A client that keeps asking and never reads.
deaf=()
for _ in {1..8}; do
    { exec {fd}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || continue
    deaf+=("$fd")
    for _ in {1..40}; do printf 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'; done 1>&"$fd" 2>/dev/null || true
done
check "eight of them are connected" test "${#deaf[@]}" = 8
check "it answers after malformed requests, and next to a client that never reads" scraped '^phitwire_lab_up\{.*\} 1$'
for fd in "${deaf[@]}"; do exec {fd}>&-; done

"$PHW_SCRIPTS/node.sh" --lab "$LAB" kill r1-1 >/dev/null 2>&1
check "a router that was killed is not up" phw_until 10 scraped '^phitwire_node_up\{.*node="r1-1",kind="router"\} 0$'
check "and its neighbour says of its links that they are down" phw_until 20 scraped '^phitwire_link_up\{.*node="r1-0".*peer="r1-1:[0-9]+"\} 0$'
"$PHW_SCRIPTS/node.sh" --lab "$LAB" start r1-1 >/dev/null 2>&1
check "started again, it is up" phw_until 20 scraped '^phitwire_link_up\{.*node="r1-0".*peer="r1-1:[0-9]+"\} 1$'
check_fails "an address in use is rejected" 'cannot listen on' "$metrics" metrics --lab "$LAB" --listen "127.0.0.1:$port"
check_fails "an unknown lab is rejected" 'is not running' "$metrics" metrics --lab nobody_has_this --once

# queried EXPRESSION: Prometheus has a non-zero value for it.
queried() {
    exec 6<>"/dev/tcp/127.0.0.1/$web" || return 1
    printf 'GET /api/v1/query?query=%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$(jq -rn --arg q "$1" '$q | @uri')" >&6
    timeout 10 cat <&6 | sed -n '/^{/p' | jq -e '.data.result[0].value[1] | tonumber > 0' >/dev/null
}
seen_by_prometheus() {
    # A port that is currently free; it is taken again shortly afterwards.
    web=$(( 20000 + $$ % 10000 ))
    cat >"$T_SCRATCH/prometheus.yml" <<CONFIG
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: phitwire
    static_configs: [{ targets: ["127.0.0.1:$port"] }]
CONFIG
    prometheus --config.file="$T_SCRATCH/prometheus.yml" --storage.tsdb.path="$T_SCRATCH/tsdb" --web.listen-address="127.0.0.1:$web" \
        >"$T_SCRATCH/prometheus.log" 2>&1 &
    prometheus=$!
    check "Prometheus scrapes the lab" phw_until 60 queried 'up{job="phitwire"}'
    steady_rate "$T_SCRATCH/rate.json" &
    local runner=$!
    check "it sees frames per second" phw_until 60 queried 'sum(rate(phitwire_link_frames_sent_total[5s])) > 100'
    check "it sees answered messages" phw_until 60 queried 'sum(phitwire_traffic_acknowledged_messages_total) > 100'
    stop_job "$runner"
    local odd=0 expression
    while IFS= read -r expression; do
        queried "count($expression) or vector(1)" || { odd=1; printf '# %s\n' "$expression"; }
    done < <(jq -r '.panels[].targets[].expr' "$PHW_ROOT/docs/grafana/phitwire.json" | sed -e "s/\\\$lab/$LAB/g; s/\\\$node/.*/g; s/\\\$__rate_interval/5s/g")
    check "it understands each query of the dashboard" test "$odd" = 0
}
if (phw_need prometheus:prometheus) 2>/dev/null; then
    seen_by_prometheus
else
    skip "Prometheus scrapes the lab" "no prometheus (sudo apt-get install prometheus)"
fi

kill "$server"
settled "$server"
check "a signal is its ordinary end (status $SETTLED)" test "$SETTLED" = 0
server=''
