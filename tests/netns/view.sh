#!/usr/bin/env bash
# The live view in a headless browser: it loads without console output, a cut link changes within a second, a lossy link
# is at the top of the list, the pipeline of a router shows its contents; a recording of 1,024 processors is drawn more
# than 20 times a second; a report is self-contained; unauthorised clients are rejected.
# shellcheck source=testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
t_need_namespaces
phw_is_debian || command -v chromium >/dev/null || skip_all "no chromium, which is installed automatically only on Debian"
# phw_need ends the script if it may not install anything: the whole test is then skipped.
(phw_need chromium:chromium python3:python3-minimal curl:curl) || skip_all "no chromium"
hash -r

phitwire=$PHITWIRE_BIN_DIR/phitwire
browser() { "$PHW_ROOT/tests/netns/browser.py" "$@"; }
# A promise that resolves as soon as the expression holds.
soon() { printf '%s' "new Promise((done, no) => { const begun = performance.now(); const look = () => { let holds = false; try { holds = $1; } catch {} if (holds) done(Math.round(performance.now() - begun)); else if (performance.now() - begun > ${2:-20000}) no(new Error('not within ${2:-20000} ms')); else setTimeout(look, 20); }; look(); })"; }
ready=$(soon 'window.phitwire.ready || window.phitwire.failed')

# view ARGUMENTS...: starts a view and sets $ADDRESS to its address, or nothing. Not for checks, which are separate
# processes.
VIEWER=
view() {
    # Do not mistake the previous view's output for this one's address: the background process empties the file, on a
    # busy machine only after it has been read.
    : >"$T_SCRATCH/view.out"
    "$phitwire" view "$@" >"$T_SCRATCH/view.out" 2>"$T_SCRATCH/view.err" &
    VIEWER=$!
    phw_until 60 grep -q http "$T_SCRATCH/view.out" || { detail <"$T_SCRATCH/view.err"; ADDRESS=; return 0; }
    ADDRESS=$(sed -n 's/^.*: \(http.*\)$/\1/p' "$T_SCRATCH/view.out")
}
leave() {
    [[ -n $VIEWER ]] || return 0
    kill "$VIEWER" 2>/dev/null || true
    LEFT=0
    wait "$VIEWER" 2>/dev/null || LEFT=$?
    VIEWER=
}
# shellcheck disable=SC2154  # the trap sets it
recorder=
trap 'status=$?; leave; [[ -z $recorder ]] || kill "$recorder" 2>/dev/null; (exit "$status") && t_finish || t_finish' EXIT

# ---- A lab --------------------------------------------------------------------------------------
t_up view quickstart
T_RATE_TIMEOUT=60 t_rate "$T_SCRATCH/rate.json" --op put --size 8 --rate 500 --window 4 --seconds 40 &
rate=$!
side=$(phw_find_links "$LAB" r1-0-r1-1 | head -n 1 | cut -f 1)
port=$(phw_find_links "$LAB" r1-0-r1-1 | head -n 1 | cut -f 3)
"$phitwire" record --lab "$LAB" -o "$T_SCRATCH/lab.phitrec" >/dev/null &
recorder=$!
view --lab "$LAB" --listen 127.0.0.1:0
check "the view of a lab begins" test -n "$ADDRESS"

cut_and_see() {
    browser "$ADDRESS" "$ready" \
        "$(soon 'window.phitwire.all.every(link => link.up)')" \
        "$(soon 'window.phitwire.all.some(link => link.rate > 0)')" \
        "document.querySelectorAll('#canvas g.link').length" \
        "$(soon "document.querySelector('#canvas g.link.bad') && document.querySelector('#canvas .mark.bad') && document.getElementById('verdict').className === 'bad'")" \
        --between "$phitwire ctl --lab $LAB r1-0 fault link-down $port" >"$T_SCRATCH/seen" || return
    cat "$T_SCRATCH/seen"
    test "$(tail -n 1 "$T_SCRATCH/seen")" -lt 1000
}
check "it loads, nothing is said on the console, and a link that is cut turns within a second" cut_and_see

mend() {
    # As a user does it: with the button, and a confirmation.
    browser "$ADDRESS" "$ready" "$(soon 'window.phitwire.all[0]')" \
        "window.phitwire.choose({ link: $side }); $(soon "[...document.querySelectorAll('#panel-detail button')].some(button => button.textContent.startsWith('Restore'))")" \
        "[...document.querySelectorAll('#panel-detail button')].find(button => button.textContent.startsWith('Restore')).click(); document.getElementById('yes').click()" \
        "$(soon "window.phitwire.all.every(link => link.up)")" \
        "$(soon "window.phitwire.network.events.some(event => event.kind === 'command') && window.phitwire.network.events.some(event => event.kind === 'link-up')")"
}
check "a button and a confirmation bring it back, and both are in the time line" mend

# A stopped NIC: the state of its link is unknown, and not reported as down. Afterwards everything is healthy.
silent() {
    browser "$ADDRESS" "$ready" "$(soon 'window.phitwire.all.every(link => link.up)')" \
        "document.getElementById('legend').textContent.includes('node does not answer')" \
        "$(soon "document.querySelector('#canvas g.link.off') && document.querySelector('#canvas .mark.off') && !document.querySelector('#canvas g.link.bad')")" \
        --between "kill -STOP $nic" || return
    browser "$ADDRESS" "$ready" "$(soon "document.getElementById('panel-links').textContent.includes('nic3 does not answer')")" \
        "$(soon 'window.phitwire.all.every(link => link.up && !link.silent)')" --between "kill -CONT $nic"
}
nic=$(phw_node_pid "$LAB" nic3)
check "the link of a stopped node is unknown, and not down" silent
kill -CONT "$nic" || true

pipeline() {
    browser "$ADDRESS" "$ready" "window.phitwire.choose({ node: 0 }); $(soon "document.querySelectorAll('#panel-detail .stage').length >= 4")" \
        "[...document.querySelectorAll('#panel-detail .stage b')].map(name => name.textContent)" >"$T_SCRATCH/stages" || return
    cat "$T_SCRATCH/stages"
    grep -q '"input buffer", "row buffer", "column buffer"' "$T_SCRATCH/stages"
}
check "a router shows its stages by the paper's names" pipeline

# The offered impairments are those of the kernel: netem, or plain loss with nftables, or none with a reason.
wires() {
    local has state button
    has=$("$PHW_SCRIPTS/impair.sh" --kernel | head -n 1)
    case $has in netem) button=Impair ;; nft) button=Lose ;; *) button=Impair ;; esac
    curl -s "${ADDRESS}api/header" | jq -e --arg has "$has" '.actions | (.wires // "") == $has and ((.why_not == null) == ($has == "netem"))' || return
    state="[...document.querySelectorAll('#panel-detail button')].find(button => button.textContent.startsWith('$button'))"
    browser "$ADDRESS" "$ready" "$(soon 'window.phitwire.all[0]')" "window.phitwire.choose({ link: $side }); $(soon "$state")" "$state.disabled" >"$T_SCRATCH/wires" || return
    cat "$T_SCRATCH/wires"
    if [[ -z $has ]]; then test "$(tail -n 1 "$T_SCRATCH/wires")" = true; return; fi
    browser "$ADDRESS" "$ready" "$(soon 'window.phitwire.all[0]')" "window.phitwire.choose({ link: $side }); $(soon "$state")" \
        "$state.click(); document.getElementById('yes').click(); $(soon "window.phitwire.network.events.some(event => event.text.startsWith('wires impaired: loss 3%'))")" || return
    "$PHW_SCRIPTS/impair.sh" --lab "$LAB" "$side" show | tee "$T_SCRATCH/wires" && grep -q 'loss 3%' "$T_SCRATCH/wires" || return
    "$PHW_SCRIPTS/impair.sh" --lab "$LAB" "$side" clear
}
check "wires are impaired by what the kernel has, and by nothing else" wires

status_of() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
strangers() {
    local secret host
    host=${ADDRESS#http://} host=${host%/}
    secret=$(curl -s "${ADDRESS}api/header" | jq -r .secret)
    act=(-H 'Content-Type: application/json' -d '{"act":"fault","node":"r1-0","link":0,"fault":{"kind":"force-retry","port":0}}' "${ADDRESS}api/act")
    test "$(status_of "$ADDRESS")" = 200 || return
    test "$(status_of -H 'Host: rebound.example' "$ADDRESS")" = 403 || return
    test "$(status_of "${act[@]}")" = 403 || return
    test "$(status_of -H "Origin: http://evil.example" -H "X-Phitwire-Secret: $secret" "${act[@]}")" = 403 || return
    test "$(status_of -H "Origin: http://$host" -H "X-Phitwire-Secret: $secret" "${act[@]}")" = 200 || return
    test "$(status_of "${ADDRESS}../../etc/passwd")" = 404 || return
    # A length beyond the available memory, and bodies that never arrive.
    local fd held=()
    for _ in {1..8}; do
        exec {fd}<>"/dev/tcp/${host%:*}/${host##*:}" && held+=("$fd") || return
        printf 'POST /api/act HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n' $(( ${#held[@]} % 2 ? 999999999999999 : 5000 )) >&"$fd"
    done
    test "$(status_of -m 10 "$ADDRESS")" = 200 || return
    for fd in "${held[@]}"; do exec {fd}>&-; done
}
check "pages of others can neither look nor act" strangers
leave
check "a signal is its ordinary end (status $LEFT)" test "$LEFT" = 0

view --lab "$LAB" --listen 0.0.0.0:0
outside() {
    local at=${ADDRESS/0.0.0.0/127.0.0.1}
    test "$(status_of "$at")" = 200 && test "$(status_of "${at%%\?*}")" = 403 && test "$(status_of "${at}0")" = 403
}
check "beyond loopback viewing requires the token" outside
leave
recorded=0
kill "$recorder"
wait "$recorder" || recorded=$?
recorder=
check "a recording of it ends well when interrupted" test "$recorded" = 0
kill "$rate" 2>/dev/null || true
wait "$rate" 2>/dev/null || true

# A later lab of the same name is another lab.
view --lab "$LAB" --listen 127.0.0.1:0
namesake() {
    local host=${ADDRESS#http://} secret
    host=${host%/} secret=$(curl -s "${ADDRESS}api/header" | jq -r .secret)
    "$PHW_SCRIPTS/down.sh" --lab "$LAB" >/dev/null 2>&1 && "$PHW_SCRIPTS/up.sh" quickstart --lab "$LAB" >/dev/null 2>&1 || return
    curl -s -H "Origin: http://$host" -H "X-Phitwire-Secret: $secret" "${ADDRESS}api/act" \
        -d '{"act":"fault","node":"r1-0","link":0,"fault":{"kind":"link-down","port":0}}' >"$T_SCRATCH/namesake" || return
    cat "$T_SCRATCH/namesake"
    grep -q 'has been taken down' "$T_SCRATCH/namesake" && t_ctl r1-0 links --json | jq -e 'all(.up)' >/dev/null
}
check "nothing is done to a later lab with the name of the one shown" namesake
leave

# ---- Recordings ---------------------------------------------------------------------------------
view "$T_SCRATCH/lab.phitrec" --listen 127.0.0.1:0
replay() {
    browser "$ADDRESS" "$ready" "window.phitwire.network.moments.length > 8 && window.phitwire.network.events.map(event => event.kind)" \
        "window.phitwire.time.go(3); $(soon "window.phitwire.look.number === 3")" "$(<"$PHW_ROOT/tests/netns/losses.js")" >"$T_SCRATCH/replay" || return
    cat "$T_SCRATCH/replay"
    grep -q link-down "$T_SCRATCH/replay" && grep -q link-up "$T_SCRATCH/replay"
}
check "the recording has the cut in it, and can be scrolled back" replay
# Searched for in the same browser.
losses() { diff <(echo '[]') <(tail -n 1 "$T_SCRATCH/replay"); }
check "losses are found of ends that are asked at different moments, and no others" losses
leave

report() {
    "$phitwire" report "$T_SCRATCH/lab.phitrec" -o "$T_SCRATCH/report.html" || return
    browser "file://$T_SCRATCH/report.html" "$ready" "$(soon 'window.phitwire.all && window.phitwire.all.length > 0')" "window.phitwire.errors.length" >"$T_SCRATCH/report.out" || return
    test "$(tail -n 1 "$T_SCRATCH/report.out")" = 0
}
check "a report is a page that needs nothing else" report

# An earlier report survives if a new one cannot be written.
full_disk() {
    printf 'old\n' >"$T_SCRATCH/full/report.html" && head -c 10k /dev/zero >"$T_SCRATCH/full/more" || return
    ! "$phitwire" report "$T_SCRATCH/lab.phitrec" -o "$T_SCRATCH/full/report.html" 2>"$T_SCRATCH/full.err" || return
    grep 'No space left on device' "$T_SCRATCH/full.err" && diff <(echo old) "$T_SCRATCH/full/report.html" \
        && diff <(printf 'more\nreport.html\n') <(ls -A "$T_SCRATCH/full")
}
if phw_is_root && mkdir "$T_SCRATCH/full" && mount -t tmpfs -o size=32k none "$T_SCRATCH/full" 2>/dev/null; then
    check "a full disk leaves the report of before, and nothing else" full_disk
    umount "$T_SCRATCH/full"
else
    skip "a report on a full disk" "cannot mount a tmpfs here"
fi

truncated() {
    local size
    size=$(stat -c %s "$T_SCRATCH/lab.phitrec")
    head -c "$(( size / 2 ))" "$T_SCRATCH/lab.phitrec" >"$T_SCRATCH/cut.phitrec"
    "$phitwire" report "$T_SCRATCH/cut.phitrec" -o "$T_SCRATCH/cut.html" 2>"$T_SCRATCH/cut.err" || return
    grep -q 'showing what precedes it' "$T_SCRATCH/cut.err"
}
check "a recording that was cut off is shown up to the cut" truncated
printf 'PK\3\4' >"$T_SCRATCH/wrong.phitrec"
check_fails "a file that is not a recording is rejected by name" 'wrong.phitrec: not a recording' "$phitwire" view "$T_SCRATCH/wrong.phitrec"

check "a simulation of 1,024 processors is recorded" "$phitwire" sim r2-1024 --load 0.3 --warmup 300 --measure 1000 --record "$T_SCRATCH/large.phitrec" --record-every 25
view "$T_SCRATCH/large.phitrec" --listen 127.0.0.1:0
large() {
    # At four times its speed there are 40 samples per second.
    browser "$ADDRESS" "$ready" "window.phitwire.network.nodes.length > 1024 && window.phitwire.network.moments.length" \
        "window.phitwire.time.go(0); window.phitwire.time.speed = 4; window.phitwire.time.toggle(); new Promise(done => { const own = window.phitwire, from = own.frames, drawn = own.drawn, begun = performance.now(); setTimeout(() => { const seconds = (performance.now() - begun) / 1e3; done([(own.frames - from) / seconds, (own.drawn - drawn) / seconds]); }, 900); })" \
        >"$T_SCRATCH/frames" || return
    cat "$T_SCRATCH/frames"
    tail -n 1 "$T_SCRATCH/frames" | jq -e ".[0] > 20 and .[1] > 10" >/dev/null
}
# Other load on this machine costs frames: the best of five shows what the page can do.
best_of_five() {
    local attempt
    for attempt in 1 2 3 4 5; do
        ! large || return 0
        printf 'attempt %s\n' "$attempt"
    done
    return 1
}
check "a recording of 1,024 processors plays at more than 20 frames a second" best_of_five
leave
