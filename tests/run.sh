#!/usr/bin/env bash
# tests/run.sh [--long] [PART...]      runs the tests and ends with "N passed, N failed, N skipped"
#
# Parts; the default is all of them in this order:
#   format      cargo fmt --check
#   clippy      cargo clippy, warnings are errors
#   docs        cargo doc, warnings are errors
#   cargo       cargo test: unit, property, golden, fuzz-corpus and documentation tests
#   netns       tests/netns: real processes in real namespaces on this kernel, three files at a time; measuring files alone
#   netem       all machines under real tc netem, in user-mode Linux where this kernel has none; with --long also ip.sh
#   shell       shellcheck over all scripts
# A file of tests/netns may be given instead of a part: tests/run.sh tests/netns/cut.sh
# One build, with debug assertions and overflow checks, serves both cargo's tests and the processes of labs.
# Namespace tests leave processors idle: clippy, docs, the build of cargo's tests and the tests in virtual time, if
# requested, run next to them and are reported after them; netem also runs next to netns, and shellcheck from the start.
#
# --long (or PHITWIRE_LONG=1) adds repetitions: the loss test for 60 s per kind of link, all machines under every netem
# impairment on both kinds of links, attacks on both machines on both kinds of links with twelve times the frames, MPI
# suites, the guide as a book, and programs on the fabric under netem; cuts of links of each colour, of bundles and over
# both kinds of links; faults of runs, dead wires, IP and frame sizes on each machine, link and engine instead of one of
# them; all ready-made topologies; labs of 256 processors, of three groups for MPI and IP; commands of the README and of
# the guide at full length; stops of every length and kind; routes of every kind after each failure on Aries; tests of cargo's on larger
# networks; a soak of the first 200 seeds of all families, of 40 with late copies, and of 2,000 of the fabric's engine,
# whose ordinary tests leave out the longest cases; lints of scripts together with what they source; and the image of
# the Containerfile.
#
# A case that fails next to others and passes in a second run of its file, alone, is flaky, which is a defect: the
# summary names it. The cases of the first run are numbered but not counted. More than two flaky files fail the run.
# Each case prints a TAP line, each part its time. Status 0 only if nothing failed and every skip has a reason.
# shellcheck source=../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts/lib.sh"
exec </dev/null
cd "$PHW_ROOT"
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# Test doubles shared by several crates are in every build, so that all tests use the same build.
TESTING=phitwire/testing,phitwire-aries/testing,phitwire-blackwidow/testing,phitwire-t3e/testing

parts=()
while (( $# )); do
    case $1 in
        --long) export PHITWIRE_LONG=1 ;;
        -h|--help) phw_usage; exit 0 ;;
        format|shell|clippy|docs|cargo|netns|netem) parts+=("$1") ;;
        *.sh) [[ -x $1 ]] || phw_bad_call "no such test: $1"; parts+=("$1") ;;
        *) phw_bad_call "unknown part $1 (--help lists them)" ;;
    esac
    shift
done
[[ ${PHITWIRE_LONG:-0} == 0 ]] || export PHITWIRE_FABRIC_SEEDS=${PHITWIRE_FABRIC_SEEDS:-1..2000}
(( ${#parts[@]} )) || parts=(format clippy docs cargo netns netem shell)

scratch=$(mktemp -d)
has_part() { [[ " ${parts[*]} " == *" $1 "* ]]; }
# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    # Remaining processes are children of this script, each of which cleans up when signalled.
    local children
    children=$(jobs -p)
    # shellcheck disable=SC2086  # a list
    [[ -z $children ]] || { kill -TERM $children 2>/dev/null || true; wait; }
    rm -rf -- "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

build_failed=0 number=0 passed=0 failed=0 skipped=0 unreasoned=0
failures=()
# Files to judge by a second run, their failures in the first run by file, and the counts of that run. Whether the
# current file may have one, and what has passed since.
again=() first_failures=() failed_in=() first_passed=0 first_skipped=0 first_unreasoned=0 second_runs=0 may_again=0 flaky=()
MOST_FLAKY=2
declare -A has_passed=()

# case_line LINE: one "ok - ..." or "not ok - ..." line, numbered, printed and counted.
case_line() {
    local line=$1
    if (( may_again )) && [[ $line == 'not ok - '* ]]; then
        first_failures+=("${line#not ok - }")
        printf '# failed next to others - %s\n' "${line#not ok - }"
        return
    fi
    (( ++number ))
    case $line in
        'not ok - '*)
            (( ++failed ))
            failures+=("${line#not ok - }")
            printf 'not ok %d - %s\n' "$number" "${line#not ok - }" ;;
        *'# SKIP'*)
            (( ++skipped ))
            [[ $line =~ '# SKIP '[[:graph:]] ]] || (( ++unreasoned ))
            printf 'ok %d - %s\n' "$number" "${line#ok - }" ;;
        *)
            (( ++passed ))
            (( second_runs == 0 )) || has_passed[$(same_name "${line#ok - }")]=1
            printf 'ok %d - %s\n' "$number" "${line#ok - }" ;;
    esac
}

# Case lines are taken from a stream; everything else is printed unchanged.
cases() {
    local line
    while IFS= read -r line; do
        case $line in
            'ok - '*|'not ok - '*) case_line "$line" ;;
            *) printf '%s\n' "$line" ;;
        esac
    done
}

# step NAME COMMAND...: runs a command as one case; its output is shown if it fails. Returns the command's status.
step() {
    local name=$1 begin status=0
    shift
    begin=$(phw_ms)
    "$@" >"$scratch/step.log" 2>&1 || status=$?
    if (( status == 0 )); then
        case_line "ok - $name ($(seconds_since "$begin") s)"
    else
        tail -n 60 "$scratch/step.log" | sed 's/^/# /'
        case_line "not ok - $name: status $status of: $*"
    fi
    return "$status"
}

seconds_since() {
    local ms=$(( $(phw_ms) - $1 ))
    printf '%d.%d\n' $(( ms / 1000 )) $(( ms % 1000 / 100 ))
}

# ---- Parts --------------------------------------------------------------------------------------

part_format() { step "cargo fmt --check" phw_cargo fmt --all -- --check --color never; }

# Linting takes half a minute of one processor and only reads: start it first, report it in its turn. A namespace test
# takes a second when the libraries that it sources are read along, so that instead a list of their variables is; with
# --long they are read for each.
shell_pid=
start_shell() {
    command -v shellcheck >/dev/null || (phw_need shellcheck:shellcheck) 2>/dev/null || return 0
    lint >"$scratch/shell.log" 2>&1 &
    shell_pid=$!
}
lint() {
    local file scripts=(netns-scripts/*.sh docs/guide/*.sh tests/*.sh tests/netns/testlib.sh .ci/run) tests=() status=0
    for file in tests/netns/*.sh; do [[ $file == */testlib.sh ]] || tests+=("$file"); done
    if [[ ${PHITWIRE_LONG:-0} != 0 ]]; then
        shellcheck "${scripts[@]}" "${tests[@]}"
        return
    fi
    mkdir -- "$scratch/names"
    {
        printf '# shellcheck shell=bash\nset -Eeuo pipefail\nstatus=0\n'
        grep -ohE '\b[A-Z][A-Z_0-9]{2,}\b' tests/netns/testlib.sh netns-scripts/{lib,processes}.sh | sort -u | sed 's/.*/: "$&"/'
    } >"$scratch/names/testlib.sh"
    shellcheck "${scripts[@]}" || status=$?
    # As in .shellcheckrc, but for the directory of what is sourced.
    shellcheck --norc --external-sources --exclude=SC2016 --source-path="$scratch/names" "${tests[@]}" || status=$?
    return "$status"
}

part_shell() {
    step "who fails twice has failed" tests/second-run.sh
    if [[ -z $shell_pid ]]; then
        case_line "ok - shellcheck # SKIP not installed (sudo apt-get install shellcheck)"
        return
    fi
    step "shellcheck" end_of "$shell_pid" "$scratch/shell.log"
}
# end_of PID LOG: the result of a background job.
end_of() {
    local status=0
    wait "$1" || status=$?
    cat -- "$2"
    return "$status"
}

part_clippy() {
    step "cargo clippy" checked clippy
    step "the core's bans bite" tests/bans.sh
}

part_docs() {
    step "cargo doc" checked docs
    step "every paragraph of the paper has its code and test" tests/coverage.sh
}

# check NAME COMMAND...: the slow step of clippy, docs and cargo; COMMAND, if given, runs it.
check() {
    case $1 in
        clippy) phw_as_cargo_user "${@:2}" cargo clippy --workspace --all-targets --locked --features "$TESTING" -- -D warnings ;;
        docs) RUSTDOCFLAGS='-D warnings' phw_as_cargo_user "${@:2}" cargo doc --workspace --no-deps --locked ;;
        cargo) phw_as_cargo_user "${@:2}" "${cargo_test[@]}" --no-run ;;
        virtual) virtual_tests "${@:2}" ;;
    esac
}

# Tests in virtual time give the same results on almost no processor time. Each runs in its package's directory, as
# under cargo; its output and status go to where runner.sh finds them.
tested=$scratch/tested
virtual_tests() {
    local binary name at package status
    ! phw_cargo_user >/dev/null || return 0
    mkdir -- "$tested"
    while read -r binary; do
        name=${binary##*/}
        package=machines/${name%-*}
        package=${package/phitwire_/}
        [[ -d $package ]] || package=.
        binary=$(realpath -- "$binary") at=$tested/$name status=0
        (cd -- "$package" && "$@" "$binary") </dev/null >"$at.out" 2>"$at.err" || status=$?
        printf '%s\n' "$status" >"$at.status"
    done < <(sed -nE 's/^ *Executable (unittests src\/lib\.rs|tests\/(machines|virtual_time)\/main\.rs) \((.*\/(phitwire(_aries|_blackwidow|_t3e)?|machines|virtual_time)-[0-9a-f]+)\)$/\3/p' "$scratch/cargo.log")
}

# checked PART: the same, or its result from running next to other tests.
checked() {
    if [[ -z $checks_pid ]]; then check "$1"; return; fi
    while kill -0 "$checks_pid" 2>/dev/null && [[ ! -s $scratch/$1.status ]]; do sleep 0.1; done
    cat -- "$scratch/$1.log"
    return "$(cat -- "$scratch/$1.status" || echo 1)"
}

# The parts that run next to the namespace tests get the smallest share of the processors: that of their session
# (sched(7), autogroup), since a nice value alone has no effect against nodes, which have their own sessions.
deferred=() checks_pid=
start_checks() {
    (( ${#deferred[@]} )) || return 0
    checks &
    checks_pid=$!
}
checks() {
    local part pid status
    # Stop it first, so that it starts nothing new.
    trap 'kill -STOP "$pid" 2>/dev/null; pkill -TERM -P "$pid"; kill -TERM "$pid" 2>/dev/null; kill -CONT "$pid" 2>/dev/null; wait "$pid"; exit 143' TERM
    [[ " ${deferred[*]} " != *" cargo "* ]] || deferred+=(virtual)
    for part in "${deferred[@]}"; do
        # shellcheck disable=SC2016  # expanded there
        check "$part" setsid bash -c '{ echo 19 >/proc/self/autogroup; renice -n 19 -p "$$"; } >/dev/null 2>&1; exec "$@"' \
            least >"$scratch/$part.log" 2>&1 &
        pid=$! status=0
        wait "$pid" || status=$?
        printf '%s\n' "$status" >"$scratch/$part.status"
    done
}

# The tests of the nodes make network namespaces. If cargo does not run as root, runner.sh runs each of their binaries
# in rootless.sh; where that is forbidden, those tests report that they are skipped, and why. Any other failure of
# rootless.sh is a failure here, so that it cannot cause skips. All packages are built together: building some at a time
# would change features of shared libraries, and rebuild these.
cargo_test=(cargo test --workspace --locked --no-fail-fast --features "$TESTING")
[[ ${PHITWIRE_LONG:-0} == 0 ]] || cargo_test+=(-- --include-ignored)
cargo_tests() {
    local host status=0
    if ! phw_is_root || phw_cargo_user >/dev/null; then
        phw_as_cargo_user env PHITWIRE_BIN_DIR=none "$PHW_SCRIPTS/rootless.sh" true || status=$?
        (( status == 0 || status == PHW_SKIP )) || return "$status"
    else
        status=$PHW_SKIP
    fi
    host=$(phw_cargo -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    export PHITWIRE_TESTED=$tested "CARGO_TARGET_${host}_RUNNER=$PHW_ROOT/tests/runner.sh $status"
    phw_as_cargo_user "${cargo_test[@]}"
}

# Cargo's own lines become case lines. A test that passed because it was skipped has said so on stderr.
part_cargo() {
    local status=0 before=$failed
    checked cargo >"$scratch/cargo.err" 2>&1 || status=$?
    [[ -z $checks_pid ]] || checked virtual >/dev/null || true
    if (( status == 0 )); then
        (cargo_tests) >"$scratch/cargo.out" 2>"$scratch/cargo.err" || status=$?
    else
        : >"$scratch/cargo.out"
    fi
    cases < <(awk '
        /^SKIPPED / && reading == "err" { name = $2; sub(/:$/, "", name); sub(/^SKIPPED [^ ]* /, ""); skipped[name] = $0 }
        reading == "err" || /^test result:/ { next }
        /^test .* \.\.\. ok$/ && $2 in skipped { print "ok - " $2 " # SKIP " skipped[$2]; next }
        /^test .* \.\.\. ok$/ { sub(/^test /, ""); sub(/ \.\.\. ok$/, ""); print "ok - " $0; next }
        /^test .* \.\.\. FAILED$/ { sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); print "not ok - " $0; next }
        /^test .* \.\.\. ignored/ {
            sub(/^test /, ""); reason = $0; sub(/^.* \.\.\. ignored(, )?/, "", reason); sub(/ \.\.\. ignored.*$/, "")
            print "ok - " $0 " # SKIP " reason; next
        }' reading=err "$scratch/cargo.err" reading=out "$scratch/cargo.out")
    if [[ ${PHITWIRE_LONG:-0} != 0 ]] && build; then
        step "soak of 200 seeds" "$PHITWIRE_BIN_DIR/phitwire" soak --seeds 1..200 || true
        step "soak of 40 seeds with late copies" "$PHITWIRE_BIN_DIR/phitwire" soak --late-copies --seeds 1..40 || true
    fi
    (( status != 0 )) || return 0
    # The details of failures; or, if not even a test failed, cargo's error.
    sed -n '/^failures:$/,/^test result:/p' "$scratch/cargo.out" | sed 's/^/# /'
    if (( failed == before )); then
        tail -n 60 "$scratch/cargo.err" | sed 's/^/# /'
        case_line "not ok - cargo test: status $status"
    fi
}

# ---- Namespace tests, several at a time ----------------------------------------------------------

# netns_test OUT FILE ARGUMENTS...: runs one test file, in a user namespace unless we are root, for at most 10 minutes.
# Its output goes to OUT, its status to OUT.status.
netns_test() {
    local out=$1 file=$2 begin pid status=0 how=()
    shift 2
    begin=$(phw_ms)
    phw_is_root || [[ ${file##*/} == rootless.sh || ${file##*/} == loopback.sh ]] || how=("$PHW_SCRIPTS/rootless.sh")
    trap 'kill -TERM "$pid" 2>/dev/null; wait "$pid"; exit 143' TERM
    timeout --foreground -k 20 600 "${how[@]}" "$file" "$@" >>"$out" 2>&1 &
    pid=$!
    wait "$pid" || status=$?
    printf '# %s took %s s\n' "$file${*:+ $*}" "$(seconds_since "$begin")" >>"$out"
    printf '%s\n' "$status" >"$out.status"
}

# show_cases FILE OUT SCHEDULER: prints the cases of a test that all_of runs, or will run, as they appear; then its verdict.
show_cases() {
    local file=$1 out=$2 status
    printf '# %s\n' "$file"
    until [[ -s $out.pid ]] || ! kill -0 "$3" 2>/dev/null; do sleep 0.1; done
    [[ ! -s $out.pid ]] || cases < <(tail -n +1 -s 0.1 --pid="$(<"$out.pid")" -f "$out")
    # A killed test has left no status.
    status=$(cat -- "$out.status" 2>/dev/null) || status=unknown
    verdict "$file" "$status" "$out"
}

# A skipped test has said so; one whose status does not match its cases fails here.
verdict() {
    case $2 in
        0) ;;
        1) grep -q '^not ok - ' "$3" || case_line "not ok - $1: ended with status 1, and no case of it failed" ;;
        "$PHW_SKIP") grep -q '# SKIP' "$3" || case_line "ok - $1 # SKIP $(grep -v '^# ' "$3" | tail -n 1)" ;;
        124) case_line "not ok - $1: took longer than 10 minutes" ;;
        *) case_line "not ok - $1: ended with status $2" ;;
    esac
}

# all_of WIDTH TEST...: runs tests, each the words of a file and its arguments, WIDTH at a time. A separate job.
all_of() {
    local width=$1 test out
    shift
    trap 'kill -TERM $(jobs -p) 2>/dev/null; wait; exit 143' TERM
    for test; do
        out=$(out_of "$test")
        while (( $(jobs -rp | wc -l) >= width )); do wait -n || true; done
        # shellcheck disable=SC2086  # words
        netns_test "$out" $test &
        printf '%s\n' "$!" >"$out.pid"
    done
    wait
}
out_of() { printf '%s/%s\n' "$scratch" "${1//[ \/]/.}"; }

# run_tests WIDTH TEST...: the same, and prints the cases of each in this order.
run_tests() {
    local test scheduler
    for test in "${@:2}"; do : >"$(out_of "$test")"; rm -f -- "$(out_of "$test")".{pid,status}; done
    all_of "$@" &
    scheduler=$!
    for test in "${@:2}"; do judged "$test" "$(out_of "$test")" "$scheduler"; done
    wait "$scheduler"
}
# judged: prints the output of show_cases, and decides whether the file is run again.
judged() {
    local before=("$passed" "$skipped" "$unreasoned" "${#first_failures[@]}") failure
    show_cases "$@"
    (( ${#first_failures[@]} > before[3] )) || return 0
    again+=("$1")
    for failure in "${first_failures[@]:before[3]}"; do failed_in+=("$1"); done
    (( first_passed += passed - before[0], first_skipped += skipped - before[1], first_unreasoned += unreasoned - before[2], 1 ))
}
# run_again: runs failed files again, each alone; too many count as failures. Failed cases have to run again, and pass.
run_again() {
    local at name
    (( ${#again[@]} )) || return 0
    printf '# ---- second runs\n'
    if (( ${#again[@]} > MOST_FLAKY )); then
        for name in "${first_failures[@]}"; do case_line "not ok - $name"; done
        return
    fi
    second_runs=${#again[@]}
    (( passed -= first_passed, skipped -= first_skipped, unreasoned -= first_unreasoned, 1 ))
    for at in "${!again[@]}"; do run_once_more "${again[at]}"; done
}
run_once_more() {
    local file=$1 before=("$passed" "$failed") at name
    has_passed=()
    run_tests 1 "$file"
    (( failed == before[1] )) || return 0
    if (( passed == before[0] )); then
        case_line "not ok - $file: failed, and its second run has tried nothing"
        return
    fi
    for at in "${!first_failures[@]}"; do
        name=${first_failures[at]}
        [[ ${failed_in[at]} == "$file" ]] || continue
        # A failure with the file's name is its exit status.
        if [[ $name == "$file: "* ]] || has_been_tried "$name"; then
            flaky+=("$file: ${name#"$file: "}")
        else
            case_line "not ok - $name: its second run has not tried it"
        fi
    done
}
# has_been_tried NAME: whether a case of that name has passed since. The reason of a failure followed a colon.
has_been_tried() {
    local name
    name=$(same_name "$1")
    until [[ -n ${has_passed[$name]:-} ]]; do
        [[ $name == *': '* ]] || return 1
        name=${name%: *}
    done
}
# same_name NAME: the name without measured values: numbers, and anything in brackets.
same_name() { sed -E 's/ *\([^()]*\)//g; s/[0-9.]+/0/g' <<<"$1"; }

# Binaries are built once, as a separate case. If that fails, the parts that run them are skipped.
built_binaries() {
    local examples=() name
    # Those that namespace tests run.
    for name in stranger reference put_get counter ring halo stores ping_pong; do examples+=(--example "$name"); done
    phw_cargo build --workspace --features "$TESTING" --lib --bins "${examples[@]}" --locked
}
build() {
    local target=${CARGO_TARGET_DIR:-$PHW_ROOT/target}
    [[ -z ${PHITWIRE_BIN_DIR:-} ]] || return 0
    if (( build_failed )) || ! step "cargo build" built_binaries; then
        build_failed=1
        return 1
    fi
    [[ $target == /* ]] || target=$PHW_ROOT/$target
    export PHITWIRE_BIN_DIR=$target/debug
}

# They wait more than they compute, so that three run at a time, and two of the longest next to those of netem, if
# requested. Tests with tight deadlines, or more computation, then run two at a time; measurements, and tests that keep
# all processors busy, come last and alone.
part_netns() {
    build || return 0
    local file lab first=(tests/netns/aries.sh tests/netns/capture.sh) rest=() two=() alone=()
    for file in mpi-faults dead-wires processes large loopback mpi; do two+=("tests/netns/$file.sh"); done
    # A separate lab each, so that each has its ten minutes.
    for lab in "${attacked[@]}"; do alone+=("tests/netns/attacks.sh $lab"); done
    for file in lanes non-minimal view; do alone+=("tests/netns/$file.sh"); done
    for file in tests/netns/*.sh; do
        case " ${first[*]} ${two[*]} ${alone[*]} tests/netns/testlib.sh tests/netns/netem-all.sh tests/netns/netem.sh tests/netns/netem-dragonfly.sh tests/netns/netem-t3e.sh " in
            *" $file "*) ;;
            *) rest+=("$file") ;;
        esac
    done
    start_checks
    may_again=1
    if has_part netem; then
        start_netem
        run_tests 2 "${first[@]}"
    else
        rest=("${first[@]}" "${rest[@]}")
    fi
    run_tests 3 "${rest[@]}"
    run_tests 2 "${two[@]}"
    # They run alone, unless the other parts are still running.
    [[ -n ${netem_pids[*]:-} ]] || { [[ -n $checks_pid ]] && kill -0 "$checks_pid" 2>/dev/null; } || may_again=0
    run_tests 1 "${alone[@]}"
    may_again=0
}
attacked=(aries-udp)
[[ ${PHITWIRE_LONG:-0} == 0 ]] || attacked+=(blackwidow-ethernet blackwidow-udp aries-ethernet)

# One boot of user-mode Linux, which has one CPU, for all machines; with --long a boot for each machine and kind of
# link, in parallel.
netem_runs=(netem-all.sh) netem_pids=() netem_seconds=900
[[ ${PHITWIRE_LONG:-0} == 0 ]] || {
    netem_runs=("netem-dragonfly.sh udp" "netem-t3e.sh ethernet" "netem.sh ethernet"
        "netem-dragonfly.sh ethernet" "netem-t3e.sh udp" "netem.sh udp" "ip.sh netem")
    netem_seconds=3600
}
start_netem() {
    local run
    (( ${#netem_pids[@]} == 0 )) || return 0
    for run in "${netem_runs[@]}"; do
        : >"$scratch/${run// /.}"
        # shellcheck disable=SC2086  # a file and its argument
        netns-scripts/with-netem.sh --timeout "$netem_seconds" tests/netns/$run >>"$scratch/${run// /.}" 2>&1 &
        netem_pids+=($!)
    done
}

part_netem() {
    build || return 0
    local run status begin
    begin=$(phw_ms)
    start_netem
    for run in "${netem_runs[@]}"; do
        status=0
        printf '# tests/netns/%s\n' "$run"
        cases < <(tail -n +1 -s 0.1 --pid="${netem_pids[0]}" -f "$scratch/${run// /.}")
        wait "${netem_pids[0]}" || status=$?
        netem_pids=("${netem_pids[@]:1}")
        verdict "tests/netns/$run" "$status" "$scratch/${run// /.}"
    done
    printf '# netem took %s s\n' "$(seconds_since "$begin")"
}

# ---- Parts in their turn -------------------------------------------------------------------------

run_part() {
    local part=$1 begin
    begin=$(phw_ms)
    printf '# ---- %s\n' "$part"
    case $part in
        *.sh)
            if [[ ${part##*/} == netem*.sh ]]; then part_netem; elif build; then run_tests 1 "$part"; fi ;;
        *) "part_$part" || true ;;
    esac
    printf '# ---- %s: %s s\n' "$part" "$(seconds_since "$begin")"
}
tell_deferred() {
    local part
    for part in "${deferred[@]}"; do run_part "$part"; done
    deferred=() checks_pid=
}

# ---- All ----------------------------------------------------------------------------------------

phw_need cc:gcc+libc6-dev
phw_need_cargo
started=$(phw_ms)
! has_part shell || start_shell
for part in "${parts[@]}"; do
    if [[ $part == @(clippy|docs|cargo) ]] && has_part netns; then deferred+=("$part"); else run_part "$part"; fi
done
tell_deferred
run_again

printf '1..%d\n' "$number"
for failure in "${failures[@]}"; do
    printf '# failed: %s\n' "$failure"
done
for failure in "${flaky[@]}"; do printf '# flaky, a defect: %s\n' "$failure"; done
(( unreasoned == 0 )) || printf '# skipped without a reason: %d\n' "$unreasoned"
printf '# total time %s s\n' "$(seconds_since "$started")"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 && unreasoned == 0 ))
