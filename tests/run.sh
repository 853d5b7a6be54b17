#!/usr/bin/env bash
# tests/run.sh [--long] [PART...]      runs the tests and ends with "N passed, N failed, N skipped"
#
# Parts, all of them in this order if none is named:
#   format      cargo fmt --check
#   clippy      cargo clippy, warnings are errors
#   docs        cargo doc, warnings are errors
#   cargo       cargo test: unit, property, golden, fuzz-corpus and documentation tests
#   shell       shellcheck over all scripts
#   netns       tests/netns: real processes in real namespaces on this kernel, three files at a time; measuring files run alone
#   netem       all machines under real tc netem, in user-mode Linux where this kernel has none; with --long also ip.sh
# A file of tests/netns may be named instead of a part: tests/run.sh tests/netns/cut.sh
# One build, with debug assertions and overflow checks, serves both cargo's tests and the processes of labs.
# Namespace tests leave processors idle: clippy, docs, the build of cargo's tests and those of them that know only virtual
# time, where wanted, run beside them and are reported after them; netem runs beside netns, too, and scripts are checked beside the first build.
#
# --long (or PHITWIRE_LONG=1) adds what repeats only in kind: the loss test for 60 s per link kind, all machines under every
# netem impairment on both kinds of links, attacks on both machines on both kinds of links with six times the frames, MPI
# suites, the guide as a book, and programs on the fabric under netem; cuts of links of each colour, of bundles and over both
# kinds of links; faults of runs, dead wires, IP and frame sizes on each machine, link and engine instead of one of them; all
# ready topologies; labs of 256 processors, of three groups for MPI and IP; commands of the README for as long as they stand
# there; standstills of every length in every way.
# A case that fails beside others and passes in a second run of its file, alone, is flaky, which is a defect: the end
# names it. The cases of the first run are numbered but not counted. More than two flaky files fail the run.
# Each case prints a TAP line, each part its time. Status 0 only when nothing failed and every skip has its reason.
# shellcheck source=../netns-scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../netns-scripts/lib.sh"
exec </dev/null
cd "$PHW_ROOT"
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# The doubles that tests of several crates share, in every build: one without them would be another one.
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
(( ${#parts[@]} )) || parts=(format clippy docs cargo shell netns netem)

scratch=$(mktemp -d)
has_part() { [[ " ${parts[*]} " == *" $1 "* ]]; }
# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    # What still runs are children of this script, each of which cleans up when it is told to end.
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
# Files that are to be judged by a second run, what failed in their first, by file, and what counted there. Whether the one
# told now may be, and what has passed since.
again=() first_failures=() failed_in=() first_passed=0 first_skipped=0 first_unreasoned=0 second_runs=0 may_again=0 flaky=()
MOST_FLAKY=2
declare -A has_passed=()

# case_line LINE: one "ok - ..." or "not ok - ..." line, numbered, printed and counted.
case_line() {
    local line=$1
    if (( may_again )) && [[ $line == 'not ok - '* ]]; then
        first_failures+=("${line#not ok - }")
        printf '# failed beside others - %s\n' "${line#not ok - }"
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

# Case lines are taken from a stream, everything else of it is shown as it is.
cases() {
    local line
    while IFS= read -r line; do
        case $line in
            'ok - '*|'not ok - '*) case_line "$line" ;;
            *) printf '%s\n' "$line" ;;
        esac
    done
}

# step NAME COMMAND...: a command as one case; its output is shown when it fails. Its status is the command's.
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

# It takes half a minute of one processor and reads only: begun first, told in its turn.
shell_pid=
start_shell() {
    command -v shellcheck >/dev/null || (phw_need shellcheck:shellcheck) 2>/dev/null || return 0
    shellcheck netns-scripts/*.sh docs/guide/*.sh tests/*.sh tests/netns/*.sh .ci/run >"$scratch/shell.log" 2>&1 &
    shell_pid=$!
}

part_shell() {
    step "who fails twice has failed" tests/second-run.sh
    if [[ -z $shell_pid ]]; then
        case_line "ok - shellcheck # SKIP not installed (sudo apt-get install shellcheck)"
        return
    fi
    step "shellcheck" end_of "$shell_pid" "$scratch/shell.log"
}
# end_of PID LOG: what a job of this shell came to.
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

# check NAME COMMAND...: what takes longest of clippy, docs and cargo; COMMAND, if there is one, runs it.
check() {
    case $1 in
        clippy) phw_as_cargo_user "${@:2}" cargo clippy --workspace --all-targets --locked --features "$TESTING" -- -D warnings ;;
        docs) RUSTDOCFLAGS='-D warnings' phw_as_cargo_user "${@:2}" cargo doc --workspace --no-deps --locked ;;
        cargo) phw_as_cargo_user "${@:2}" "${cargo_test[@]}" --no-run ;;
        virtual) virtual_tests "${@:2}" ;;
    esac
}

# Tests in virtual time give the same results with hardly any processor time. Each runs in the directory of its package, as
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

# checked PART: the same, or what it came to beside other tests.
checked() {
    if [[ -z $checks_pid ]]; then check "$1"; return; fi
    while kill -0 "$checks_pid" 2>/dev/null && [[ ! -s $scratch/$1.status ]]; do sleep 0.1; done
    cat -- "$scratch/$1.log"
    return "$(cat -- "$scratch/$1.status" || echo 1)"
}

# The parts that wait for the tests of namespaces, and run beside them, with the least share of the processors: that of their
# session (sched(7), autogroup), since a nice value alone does nothing against nodes, which have sessions of their own.
deferred=() checks_pid=
start_checks() {
    (( ${#deferred[@]} )) || return 0
    checks &
    checks_pid=$!
}
checks() {
    local part pid status
    # Stopped first, so that it begins nothing new.
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

# The tests of the nodes make network namespaces. Where cargo does not run as root, runner.sh runs each of their binaries in
# rootless.sh; where that is forbidden, those tests say that they are skipped, and why. That it fails otherwise is a failure
# here, lest they be skipped for that. All packages are built as one: some at a time would have other features of the same
# libraries, and build these again.
cargo_test=(cargo test --workspace --locked --no-fail-fast --features "$TESTING")
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

# Cargo's own lines become case lines. A test that passed because it could not be tried has said so on stderr.
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
    (( status != 0 )) || return 0
    # The details of what failed; or, when not even a test failed, why cargo did.
    sed -n '/^failures:$/,/^test result:/p' "$scratch/cargo.out" | sed 's/^/# /'
    if (( failed == before )); then
        tail -n 60 "$scratch/cargo.err" | sed 's/^/# /'
        case_line "not ok - cargo test: status $status"
    fi
}

# ---- Namespace tests, several at a time ----------------------------------------------------------

# netns_test OUT FILE ARGUMENTS...: one test file, in a user namespace when we are not root. At most 10 minutes. What it
# prints goes to OUT, how it ended to OUT.status.
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

# told FILE OUT SCHEDULER: the cases of a test that all_of runs, or will run, as they come; then its verdict.
told() {
    local file=$1 out=$2 status
    printf '# %s\n' "$file"
    until [[ -s $out.pid ]] || ! kill -0 "$3" 2>/dev/null; do sleep 0.1; done
    [[ ! -s $out.pid ]] || cases < <(tail -n +1 -s 0.1 --pid="$(<"$out.pid")" -f "$out")
    # Who was killed has left none.
    status=$(cat -- "$out.status" 2>/dev/null) || status=unknown
    verdict "$file" "$status" "$out"
}

# A test that could not be tried has said so; one that ended otherwise than by its cases fails here.
verdict() {
    case $2 in
        0) ;;
        1) grep -q '^not ok - ' "$3" || case_line "not ok - $1: ended with status 1, and no case of it failed" ;;
        "$PHW_SKIP") grep -q '# SKIP' "$3" || case_line "ok - $1 # SKIP $(grep -v '^# ' "$3" | tail -n 1)" ;;
        124) case_line "not ok - $1: took longer than 10 minutes" ;;
        *) case_line "not ok - $1: ended with status $2" ;;
    esac
}

# all_of WIDTH TEST...: runs tests, each the words of a file and its arguments, WIDTH at a time. A job of its own.
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

# run_tests WIDTH TEST...: the same, and tells the cases of each in this order.
run_tests() {
    local test scheduler
    for test in "${@:2}"; do : >"$(out_of "$test")"; rm -f -- "$(out_of "$test")".{pid,status}; done
    all_of "$@" &
    scheduler=$!
    for test in "${@:2}"; do judged "$test" "$(out_of "$test")" "$scheduler"; done
    wait "$scheduler"
}
# judged: what told tells, and whether the file is to be run again.
judged() {
    local before=("$passed" "$skipped" "$unreasoned" "${#first_failures[@]}") failure
    told "$@"
    (( ${#first_failures[@]} > before[3] )) || return 0
    again+=("$1")
    for failure in "${first_failures[@]:before[3]}"; do failed_in+=("$1"); done
    (( first_passed += passed - before[0], first_skipped += skipped - before[1], first_unreasoned += unreasoned - before[2], 1 ))
}
# run_again: those that failed, each by itself; too many are failures. What failed has to be tried again, and to pass.
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
        # What names the file is how it ended.
        if [[ $name == "$file: "* ]] || has_been_tried "$name"; then
            flaky+=("$file: ${name#"$file: "}")
        else
            case_line "not ok - $name: its second run has not tried it"
        fi
    done
}
# has_been_tried NAME: whether a case of that name has passed since. Why it failed was told behind a colon.
has_been_tried() {
    local name
    name=$(same_name "$1")
    until [[ -n ${has_passed[$name]:-} ]]; do
        [[ $name == *': '* ]] || return 1
        name=${name%: *}
    done
}
# same_name NAME: without what was measured: numbers, and what stands in brackets.
same_name() { sed -E 's/ *\([^()]*\)//g; s/[0-9.]+/0/g' <<<"$1"; }

# Binaries are built once, as a case of their own. If that fails, the parts that run them are left out.
built_binaries() {
    phw_cargo build --workspace --features "$TESTING" --lib --bins --example stranger --example reference --locked || return
    # Fetched here, since tests without root have no network. The guide's own test reports a failure.
    [[ ${PHITWIRE_LONG:-0} == 0 ]] || docs/guide/build.sh --mdbook-only || true
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

# They wait more than they compute, so that three run at a time, and two of the longest beside those of netem, if these are
# wanted at all. What has a few seconds to be told in, or computes more, runs two at a time then; what measures, or
# keeps all processors busy, comes last and alone.
part_netns() {
    build || return 0
    local file lab first=(tests/netns/aries.sh tests/netns/capture.sh) rest=() two=() alone=()
    for file in mpi-faults dead-wires processes large loopback mpi; do two+=("tests/netns/$file.sh"); done
    # A lab each, so that each has its ten minutes.
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
    # They are by themselves, unless the other parts still run.
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
printf '# all of it took %s s\n' "$(seconds_since "$started")"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 && unreasoned == 0 ))
