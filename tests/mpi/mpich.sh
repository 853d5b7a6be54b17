#!/usr/bin/env bash
# mpich.sh --lab NAME --tests DIR [options] [LIST...]      runs MPICH's own test lists over a lab that is up
#
# DIR is MPICH's test/mpi, configured and built (tests/mpi/get.sh fetches and builds one); LIST is pt2pt, rma, coll, datatype
# (the default is all four) or another of its directories. Prints one line per entry of a list, as in TAP without numbers,
# with its duration in seconds. Tests named in mpich-expected-failures.txt may fail for the reason given there; a reason that
# begins with "slow:" means that the test moves so much data that it takes minutes here. Tests that the list marks with
# "xfail" may fail, too.
#
#   --ranks N       maximum number of ranks; entries that need more are skipped (16)
#   --time S        time limit in seconds for entries without one (180, as in MPICH's runner)
#   --only PATTERN  only entries whose line in the list matches (extended)
#   --slow          also slow entries, with ten minutes each; otherwise they are skipped
#   --output DIR    keeps the output of failing tests
#   --with KIND     the MPI whose launcher is used (mpich)
#   --plain         without the lab, over that MPI's default network: shows whether the test or the fabric fails
#
# Status 0 if only tests failed that may fail, otherwise 1.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../netns-scripts/lib.sh"

lab=$(phw_default_lab) tests='' most=16 limit=180 only='' output='' with=mpich plain='' slow='' lists=()
while (( $# )); do
    case $1 in
        --lab|--tests|--ranks|--time|--only|--output|--with)
            (( $# > 1 )) || phw_bad_call "$1 wants a value"
            case $1 in
                --lab) lab=$2 ;;
                --tests) tests=$2 ;;
                --ranks) most=$2 ;;
                --time) limit=$2 ;;
                --only) only=$2 ;;
                --output) output=$2 ;;
                *) with=$2 ;;
            esac
            shift ;;
        --plain) plain=yes ;;
        --slow) slow=yes ;;
        -h|--help) phw_usage; exit 0 ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) lists+=("$1") ;;
    esac
    shift
done
(( ${#lists[@]} )) || lists=(pt2pt rma coll datatype)
[[ -n $tests ]] || phw_bad_call "--tests wants a built test/mpi of MPICH (tests/mpi/get.sh)"
[[ $most =~ ^[1-9][0-9]{0,3}$ && $limit =~ ^[1-9][0-9]{0,4}$ ]] || phw_bad_call "--ranks and --time are 1 or more"
tests=$(readlink -f -- "$tests")
for list in "${lists[@]}"; do
    [[ -r $tests/$list/testlist ]] || phw_die "no $tests/$list/testlist: --tests wants MPICH's test/mpi after configure and make"
done

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
output=${output:-$scratch}
mkdir -p -- "$output"
output=$(readlink -f -- "$output")

# The tests that may fail: LIST/PROGRAM or LIST/PROGRAM ARGUMENTS, a tab, and the reason.
declare -A may_fail=()
while IFS=$'\t' read -r name reason; do
    [[ -z $name || $name == '#'* ]] || may_fail[$name]=$reason
done <"$PHW_ROOT/tests/mpi/mpich-expected-failures.txt"

# launch RANKS PROGRAM...: runs the program over the lab, or over MPI's default network.
launch() {
    local ranks=$1
    shift
    if [[ -n $plain ]]; then
        timeout --foreground -k 5 "${seconds:-$limit}" mpiexec -n "$ranks" "$@"
    else
        timeout --foreground -k 5 "${seconds:-$limit}" "$PHW_SCRIPTS/mpi.sh" --lab "$lab" --with "$with" -n "$ranks" "$@"
    fi
}

# Parses the words of an entry: the program's arguments into $arguments, its environment into $variables, its time limit into
# $seconds, and whether MPICH itself expects it to fail into $xfail.
words() {
    local word
    arguments=() variables=() seconds='' xfail=''
    for word in "$@"; do
        case $word in
            arg=*) arguments+=("${word#arg=}") ;;
            env=*) variables+=("${word#env=}") ;;
            timeLimit=*) seconds=${word#*=} ;;
            xfail=*) xfail=${word#*=} ;;
        esac
    done
}

passed=0 failed=0 expected=0 left_out=0
# entry LIST PROGRAM RANKS WORD...: runs and reports one line of a list.
entry() {
    local list=$1 program=$2 ranks=$3 status=0 begin name log why reason arguments variables seconds xfail
    words "${@:4}"
    name="$list/$program${arguments[*]:+ ${arguments[*]}}"
    reason=${may_fail["$name"]:-${may_fail["$list/$program"]:-${xfail:+the list itself expects it (xfail=$xfail)}}}
    log=$output/$list.$(( ++entries )).$program
    [[ " $* " != *" mem="* ]] || { leave_out "$name ($ranks)" "wants gigabytes of memory"; return; }
    (( ranks <= most )) || { leave_out "$name ($ranks)" "more than $most ranks"; return; }
    if [[ $reason == slow:* ]]; then
        [[ -n $slow ]] || { leave_out "$name ($ranks)" "$reason (--slow)"; return; }
        (( ${seconds:=600} >= 600 )) || seconds=600
        reason=''
    fi
    if [[ ! -x $tests/$list/$program ]]; then
        why="not built (the compiler's words: make -C $list $program)" status=127
    else
        begin=$(phw_ms)
        (
            cd "$tests/$list"
            (( ${#variables[@]} == 0 )) || export "${variables[@]?}"
            launch "$ranks" "./$program" "${arguments[@]}"
        ) >"$log" 2>&1 </dev/null || status=$?
        why=$(verdict "$status" "$log")
        took=$(( $(phw_ms) - begin ))
    fi
    name+=" ($ranks${variables[*]:+, ${variables[*]}}"
    report
}

leave_out() { (( ++left_out )); printf 'ok - %s # SKIP %s\n' "$1" "$2"; }

# verdict STATUS LOG: prints nothing if the test reports that it had no errors.
verdict() {
    case $1 in
        0) grep -qE '^ *(No [Ee]rrors|Test [Pp]assed)' "$2" || echo "does not say that there were no errors" ;;
        124|137) echo "not over after ${seconds:-$limit} s" ;;
        *) echo "status $1: $(grep -vE '^ *$|^=|^\+' "$2" | head -n 1 | cut -c 1-160 || true)" ;;
    esac
}

report() {
    name+=", $(( took / 1000 )).$(( took % 1000 / 100 )) s)"
    if [[ -z $why ]]; then
        (( ++passed ))
        [[ $log == "$scratch"/* ]] || rm -f -- "$log"
        printf 'ok - %s%s\n' "$name" "${reason:+ (passes, though it may fail)}"
    elif [[ -n $reason ]]; then
        (( ++expected ))
        printf 'ok - %s fails as expected: %s\n' "$name" "$reason"
    else
        (( ++failed ))
        printf 'not ok - %s: %s\n' "$name" "$why"
    fi
}

entries=0 took=0
for list in "${lists[@]}"; do
    # Do not use standard input, which launchers read.
    while read -r -u 9 -a line; do
        [[ ${#line[@]} -ge 2 && ${line[0]} != '#'* && ${line[1]} =~ ^[0-9]+$ ]] || continue
        [[ -z $only || ${line[*]} =~ $only ]] || continue
        entry "$list" "${line[@]}"
    done 9<"$tests/$list/testlist"
done
printf '# %d passed, %d failed as expected, %d failed, %d left out\n' "$passed" "$expected" "$failed" "$left_out"
(( failed == 0 ))
