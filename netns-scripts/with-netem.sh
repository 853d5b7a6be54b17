#!/usr/bin/env bash
# with-netem.sh [--timeout S] [--here | --uml] COMMAND...      runs COMMAND where `tc netem` works
#
# If this kernel has netem, COMMAND simply runs. Otherwise it runs in user-mode Linux: a kernel that is an ordinary
# process, with this machine's files (the working directory, the binaries, all but /run), with this environment, as root
# in there, and with its own networking. stdout, stderr and the exit status come back; Ctrl-C ends all of it. It has one
# CPU and slow system calls: suitable for correctness, not for speed.
#
#   --timeout S   end COMMAND after S seconds (1800); the status is then 124
#   --here, --uml do not probe: use this kernel, or user-mode Linux
#
# Status: COMMAND's; 4 if netem is not available, or user-mode Linux does not run here (one line says why); 125 if
# user-mode Linux failed after starting COMMAND. PHITWIRE_UML_MEMORY sets its memory (2G), PHITWIRE_UML_BOOT_SECONDS the
# timeout of its boot (120). On processors with AMX it needs uml-xstate.c, which is compiled and preloaded there;
# PHITWIRE_UML_XSTATE=1 or 0 overrides that.
# shellcheck source=lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/lib.sh"

timeout=1800 where=probe
while (( $# )); do
    case $1 in
        --timeout) (( $# > 1 )) || phw_bad_call "--timeout needs a number of seconds"; timeout=$2; shift ;;
        --here|--uml) where=${1#--} ;;
        -h|--help) phw_usage; exit 0 ;;
        --) shift; break ;;
        -*) phw_bad_call "unknown option $1 (--help lists them)" ;;
        *) break ;;
    esac
    shift
done
(( $# )) || phw_bad_call "specify a command"
[[ $timeout =~ ^[0-9]+$ ]] || phw_bad_call "--timeout must be whole seconds, not '$timeout'"

if [[ $where == probe ]]; then
    phw_need ip:iproute2 tc:iproute2 unshare:util-linux
    if phw_has_netem; then where=here; else where=uml; fi
fi
[[ $where == uml ]] || exec timeout --foreground "$timeout" "$@"

# ---- User-mode Linux ----------------------------------------------------------------------------

if ! command -v linux.uml >/dev/null && ! { phw_is_machine_root && phw_is_debian && [[ ${PHITWIRE_NO_INSTALL:-0} == 0 ]]; }; then
    phw_skip "this kernel has no netem, and user-mode Linux is not installed: sudo apt-get install user-mode-linux kmod"
fi
phw_need linux.uml:user-mode-linux modprobe:kmod setpriv:util-linux
boot_seconds=${PHITWIRE_UML_BOOT_SECONDS:-120}
[[ $boot_seconds =~ ^[0-9]+$ ]] || phw_bad_call "PHITWIRE_UML_BOOT_SECONDS must be whole seconds, not '$boot_seconds'"
xstate=${PHITWIRE_UML_XSTATE:-}
[[ -n $xstate ]] || { grep -qw amx_tile /proc/cpuinfo && xstate=1; } || xstate=0
[[ $xstate == [01] ]] || phw_bad_call "PHITWIRE_UML_XSTATE must be 0 or 1, not '$xstate'"
[[ $PWD/ != /run/* ]] || phw_die "the working directory is under /run, which is not visible in user-mode Linux"

# Session files are on the machine's disk, where both sides see them; /run is not visible inside.
session=$(mktemp -d "$([[ ${TMPDIR:-/tmp} == /run* ]] && echo /var/tmp || echo "${TMPDIR:-/tmp}")/phitwire-uml.XXXXXX")
uml='' watch='' copiers=()

# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    # The kernel and the processes that stand for its tasks are one session and one process group.
    if [[ -n $uml ]]; then
        kill -KILL -- "-$uml" 2>/dev/null || true
        wait "$uml" 2>/dev/null || true
    fi
    [[ -z $watch ]] || kill -KILL -- "-$watch" 2>/dev/null || true
    rm -rf -- "$session"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Exports the caller's environment, except what names a path under /run or belongs to the caller's shell.
export_environment() {
    local name
    while IFS= read -r name; do
        case $name in
            BASHOPTS|SHELLOPTS|PWD|OLDPWD|SHLVL|_|TMPDIR|XDG_RUNTIME_DIR|PHITWIRE_RUN_DIR|TERM|LINES|COLUMNS) ;;
            *) declare -p "$name" ;;
        esac
    done < <(compgen -e)
}

write_session() {
    local one_stream=0
    [[ ! /proc/self/fd/1 -ef /proc/self/fd/2 ]] || one_stream=1
    export_environment >"$session/environment"
    printf '%q ' "$@" >"$session/command"
    {
        printf '#!/bin/bash\nsession=%q\ndirectory=%q\none_stream=%q\n' "$session" "$PWD" "$one_stream"
        cat <<'GUEST'
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
needed() { "$@" || { echo "user-mode Linux cannot $*"; exit 125; }; }
# Files have the owners that the host shows, and in a user namespace the host's root appears as nobody: its set-uid
# programs, such as `mount`, would turn root in here into nobody. Everything here is root's, so drop these bits.
needed setpriv --no-new-privs mount -t proc proc /proc
needed setpriv --no-new-privs mount -o remount,bind,nosuid hostfs /
needed mount -t sysfs sysfs /sys
mountpoint -q /dev || needed mount -t devtmpfs devtmpfs /dev
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
needed mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p -m 1777 /run/tmp
# Take modules from the package's directory, also for the kernel itself (nft makes it load some).
mkdir -p /run/lib
ln -s /usr/lib/uml/modules /run/lib/modules
printf '#!/bin/sh\nexec modprobe -d /run "$@"\n' >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
for module in veth sch_netem sch_tbf sch_ingress tun ifb; do modprobe -d /run "$module"; done
ip link set lo up
stty -F /dev/ttyS0 raw -echo
stty -F /dev/ttyS1 raw -echo
# COMMAND gets pipes instead of the serial lines, which would look like terminals to it.
mkfifo /run/out /run/err
cat /run/out >/dev/ttyS0 & copiers=$!
cat /run/err >/dev/ttyS1 & copiers="$copiers $!"
exec 3>/run/out 4>/run/err
(( one_stream == 0 )) || exec 4>&3
: >"$session/booted"
(
    . "$session/environment"
    export TMPDIR=/run/tmp HOME=${HOME:-/root} PHITWIRE_NETEM=uml PHITWIRE_NO_INSTALL=1
    cd "$directory" || exit 125
    eval "exec $(<"$session/command")"
) </dev/null >&3 2>&4 3>&- 4>&-
status=$?
exec 3>&- 4>&-
# Limits how long leftovers of COMMAND hold the pipes open.
for copier in $copiers; do timeout 5 tail --pid="$copier" -f /dev/null; done
echo "$status" >"$session/status.part"
mv "$session/status.part" "$session/status"
sync
echo o >/proc/sysrq-trigger
sleep 60
GUEST
    } >"$session/init"
    chmod 755 "$session/init"
}

# The object that completes AMX state for kernels before 6.13, compiled for this session.
xstate_object() {
    command -v cc >/dev/null || (phw_need cc:gcc+libc6-dev) 2>/dev/null \
        || phw_skip "user-mode Linux needs uml-xstate.c on this processor, but there is no compiler: sudo apt-get install gcc libc6-dev"
    cc -O2 -shared -fPIC -o "$session/uml-xstate.so" "$PHW_SCRIPTS/uml-xstate.c" -ldl >"$session/log" 2>&1 \
        || phw_skip "user-mode Linux needs uml-xstate.c on this processor, but it does not compile: $(tail -n 1 -- "$session/log")"
}

boot() {
    local preload=()
    if (( xstate )); then
        xstate_object
        preload=(env "LD_PRELOAD=$session/uml-xstate.so${LD_PRELOAD:+:$LD_PRELOAD}")
    fi
    # The kernel sets its descriptors non-blocking; separate pipes keep that from the caller's.
    mkfifo "$session/out" "$session/err"
    cat <"$session/out" & copiers+=($!)
    cat <"$session/err" >&2 & copiers+=($!)
    # Its own session keeps Ctrl-C from it, so that we end it; it dies with this script in any case.
    setsid setpriv --pdeathsig KILL "${preload[@]}" linux.uml "mem=${PHITWIRE_UML_MEMORY:-2G}" rootfstype=hostfs rootflags=/ rw \
        "init=$session/init" quiet con=null con0=null,fd:2 \
        ssl=null ssl0=null,fd:3 ssl1=null,fd:4 \
        </dev/null 3>"$session/out" 4>"$session/err" >"$session/log" 2>&1 &
    uml=$!
}

# Prints why it ended: the message of its init, its panic, or else its last line.
why_not() {
    local said
    said=$(sed -n 's/^user-mode Linux cannot /it cannot /p; s/^.*Kernel panic - not syncing: /panic: /p' "$session/log" | head -n 1)
    [[ -n $said ]] || said=$(grep -v '^[[:space:]]*$' "$session/log" | tail -n 1)
    printf '%s\n' "${said:-no output within $SECONDS s}"
}

write_session "$@"
boot
phw_note "this kernel has no netem: running in user-mode Linux"
# Kills the kernel if it does not boot, if time runs out, if it does not shut down after COMMAND, or if this script is
# gone without cleanup (SIGKILL).
# shellcheck disable=SC2016  # expanded by the inner shell
setsid bash -c '
    ends=0
    while kill -0 "$2"; do
        (( SECONDS < $1 )) || { : >"$4/late"; break; }
        [[ -e $4/booted ]] || (( SECONDS < $5 )) || break
        [[ ! -e $4/status ]] || (( ++ends < 40 )) || break
        sleep 0.25
    done
    kill -KILL -- "-$3"
    kill -0 "$2" || rm -rf -- "$4"' bash "$timeout" "$$" "$uml" "$session" "$boot_seconds" >/dev/null 2>&1 &
watch=$!
disown "$watch"
wait "$uml" 2>/dev/null || true
kill -KILL -- "-$watch" 2>/dev/null || true
kill -KILL -- "-$uml" 2>/dev/null || true
uml=''
wait "${copiers[@]}" || true
if [[ -e $session/late ]]; then
    phw_note "timed out after $timeout s"
    exit 124
fi
if [[ ! -e $session/booted ]]; then
    phw_skip "this kernel has no netem, and user-mode Linux does not run here: $(why_not)"
elif [[ ! -s $session/status ]]; then
    phw_note "user-mode Linux failed:"
    tail -n 20 -- "$session/log" >&2
    exit 125
fi
exit "$(<"$session/status")"
