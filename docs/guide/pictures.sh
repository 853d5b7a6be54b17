#!/usr/bin/env bash
# pictures.sh [NAME...]      makes the pictures of the guide anew: all, or those named
#
# They are made by the commands that the pages name, from labs of their own, and written to docs/guide/src/pictures. The tests
# do not run it. yarc-*.svg and aries-{tiles,pipeline,sets,dragonfly}.svg are drawn by hand and their own source.
#
#   topologies   topology-*.svg     what `phitwire topology show --format svg` draws
#   sweeps       sweep-*.svg        what `phitwire sim --plot` and `phitwire plot` draw
#   traces       trace-*.svg        a traced packet as a time line
#   ladders      ladder-*.svg       frames between two link ends, from the captures in tests/captures
#   view         view-{live,link}.png  `phitwire view` of a lab that loses frames
#   recording    view-recording.png `phitwire view` of a recorded simulation
#   top          top.png            `phitwire top` of that lab
#   wireshark    wireshark-*.png    Wireshark with a retry
#
# PHITWIRE_BIN_DIR says where the binaries are, otherwise they are built.
# shellcheck source=../../netns-scripts/lib.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../netns-scripts/lib.sh"

case ${1:-} in -h|--help) phw_usage; exit 0 ;; esac
guide=$PHW_ROOT/docs/guide pictures=$PHW_ROOT/docs/guide/src/pictures
lab=guide scratch=$(mktemp -d)
# Made there first, so that what fails leaves the old pictures.
out=$scratch/out; server='' traffic='' display=''
phw_need python3:python3-minimal jq:jq
phw_binaries
PATH=$PHITWIRE_BIN_DIR:$PHW_SCRIPTS:$PATH
export NO_COLOR=1 LC_ALL=C.UTF-8

# shellcheck disable=SC2317  # called by the trap
finish() {
    local status=$? pid
    trap - EXIT
    for pid in $server $traffic $display; do kill "$pid" 2>/dev/null || true; done
    tmux -L "$lab" kill-server 2>/dev/null || true
    [[ ! -e $(phw_lab_dir "$lab") ]] || down.sh --lab "$lab" || status=1
    rm -rf -- "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The block of a page's TOML, so that the drawing is of what the page shows: toml_of PAGE NUMBER.
toml_of() { awk -v n="$2" '/^```toml/ { f = ++i == n; next } /^```/ { f = 0 } f' "$guide/src/$1"; }

topologies() {
    phitwire topology show "$PHW_SCRIPTS/topologies/quickstart.toml" --format svg >"$out/topology-quickstart.svg"
    phitwire topology show "$PHW_SCRIPTS/topologies/aries-3x4.toml" --format svg >"$out/topology-aries-3x4.svg"
    phitwire topology show "$PHW_SCRIPTS/topologies/t3e-3x3x3.toml" --format svg >"$out/topology-t3e-3x3x3.svg"
    phitwire topology generate blackwidow --processors 64 --subtree 16 --rank 2 >"$scratch/r2.toml"
    phitwire topology show "$scratch/r2.toml" --format svg >"$out/topology-r2.svg"
    phitwire topology show r2-1024 --format svg >"$out/topology-r2-1024.svg"
    toml_of cookbook/write-a-topology.md 1 >"$scratch/two.toml"
    phitwire topology show "$scratch/two.toml" --format svg >"$out/topology-two.svg"
    toml_of cookbook/write-a-topology.md 2 >"$scratch/xc.toml"
    phitwire topology show "$scratch/xc.toml" --format svg >"$out/topology-two-groups.svg"
}

sweeps() {
    local sweep=(phitwire sim aries-9x1x4x2 --routing "minimal,adaptive0,valiant" --warmup 3000 --measure 6000)
    "${sweep[@]}" --traffic group-adversarial --load 0.05..0.5:0.05 --plot "$out/sweep-adversarial.svg" >/dev/null
    "${sweep[@]}" --traffic uniform --load 0.1..0.9:0.1 --plot "$out/sweep-uniform.svg" >/dev/null
    local call words machines=("aries-8x1x8x2 --routing minimal,adaptive0" "t3e-4x4x8 --routing deterministic,adaptive")
    for call in "${machines[0]} --traffic uniform" "${machines[0]} --traffic group-adversarial" \
        "${machines[1]} --traffic uniform" "${machines[1]} --traffic grid-tornado"; do
        read -ra words <<<"$call"
        phitwire sim "${words[@]}" --load 0.1..0.9:0.1 --csv "$scratch/${call//[ ,]/-}.csv" >/dev/null
    done
    phitwire plot "$scratch"/aries-8x1x8x2-*.csv "$scratch"/t3e-4x4x8-*.csv -o "$out/sweep-two-machines.svg" \
        --title "Aries and T3E, 128 processors each: uniform and adversarial traffic" >/dev/null
}

# The runs of packet-yarc.md and packet-aries.md.
traces() {
    phitwire topology generate blackwidow --processors 64 --subtree 16 --rank 2 >"$scratch/r2.toml"
    phitwire sim "$scratch/r2.toml" --load 0.4 --request-reply --warmup 500 --measure 3000 --trace nic1:nic46 \
        --perfetto "$scratch/yarc.json" >/dev/null
    phitwire sim aries-3x1x4x2 --load 0.4 --warmup 1000 --measure 2000 --trace nic0:nic23 \
        --perfetto "$scratch/aries.json" >/dev/null
    drawing trace "$scratch/yarc.json" 1.25 >"$out/trace-yarc.svg"
    drawing trace "$scratch/aries.json" 1.143 >"$out/trace-aries.svg"
}

# frames CAPTURE FILTER: number, time, interface and what is in them, one line each.
frames() {
    tshark -X "lua_script:$PHW_ROOT/docs/wireshark/phitwire.lua" -r "$PHW_ROOT/tests/captures/$1.pcapng" -2 -Y "$2" -T fields \
        -e frame.number -e frame.time_relative -e frame.interface_name -e _ws.col.Info 2>/dev/null
}

# The frames of lost-frame.md; the last argument is the one that was lost.
ladders() {
    phw_need tshark:tshark
    frames blackwidow 'frame.number >= 86 && frame.number <= 91' | drawing ladder r1-0 r1-1 86 >"$out/ladder-yarc.svg"
    frames aries 'frame.number == 170 || (frame.number >= 177 && frame.number <= 180)' \
        | drawing ladder g0-c0s0 g0-c0s1 170 >"$out/ladder-aries.svg"
}

# A lab that loses 3 % of the frames between its routers, under traffic.
lossy_lab() {
    [[ ! -e $(phw_lab_dir "$lab") ]] || return 0
    up.sh quickstart --lab "$lab"
    impair.sh --lab "$lab" --nft r1-0-r1-1 loss 3%
    phitwire-msgrate --lab "$lab" --op put --size 8 --rate 4000 --seconds 600 >/dev/null 2>&1 &
    traffic=$!
    sleep 2
}

# serve ARGUMENTS...: `phitwire view`, its address in $address.
serve() {
    phitwire view "$@" --listen 127.0.0.1:0 >"$scratch/address" 2>&1 &
    server=$!
    phw_until 10 grep -q http "$scratch/address"
    address=$(grep -o 'http://[^ ]*' "$scratch/address" | head -n 1)
}
end_server() { kill "$server"; wait "$server" 2>/dev/null || true; server=''; }

# later MS [EXPRESSION]: for the browser: does it, then waits.
later() { printf '(() => { %s; return new Promise(done => setTimeout(() => done(1), %s)); })()' "${2:-}" "$1"; }

view() {
    local browser=$PHW_ROOT/tests/netns/browser.py row='document.querySelector("#panel-links tbody tr, #panel-links tr + tr")'
    phw_need chromium:chromium python3:python3-minimal
    lossy_lab
    serve --lab "$lab"
    "$browser" "$address" "$(later 9000)" --size 1280x800 --shot "$out/view-live.png" >/dev/null
    "$browser" "$address" "$(later 9000)" "$(later 1500 "$row.click()")" --size 1280x800 --shot "$out/view-link.png" >/dev/null
    end_server
}

recording() {
    local browser=$PHW_ROOT/tests/netns/browser.py
    phw_need chromium:chromium python3:python3-minimal
    phitwire sim aries-3x4 --load 0.5 --warmup 500 --measure 4000 --record "$scratch/run.phitrec" --record-every 100 >/dev/null
    serve "$scratch/run.phitrec"
    "$browser" "$address" "$(later 1500)" \
        "$(later 600 "document.querySelector('[data-tab=nodes]').click()")" \
        "$(later 800 "document.querySelector('#panel-nodes [data-node=g1-c0s0]').click()")" \
        --size 1280x800 --shot "$out/view-recording.png" >/dev/null
    end_server
}

top() {
    phw_need tmux:tmux chromium:chromium python3:python3-minimal
    lossy_lab
    tmux -L "$lab" new-session -d -x 100 -y 24 "env -u NO_COLOR TERM=xterm-256color COLORTERM=truecolor phitwire top --lab $lab"
    sleep 4
    tmux -L "$lab" capture-pane -e -p >"$scratch/top.ansi"
    tmux -L "$lab" kill-server
    drawing screen <"$scratch/top.ansi" >"$scratch/top.html"
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=880,470 --screenshot="$out/top.png" \
        "file://$scratch/top.html" >/dev/null 2>&1
}

wireshark() {
    local window
    phw_need wireshark:wireshark Xvfb:xvfb xdotool:xdotool import:imagemagick
    mkdir -p "$scratch/home/.local/lib/wireshark/plugins" "$scratch/home/.config/wireshark"
    cp "$PHW_ROOT"/docs/wireshark/*.lua "$scratch/home/.local/lib/wireshark/plugins/"
    cp "$PHW_ROOT/docs/wireshark/colorfilters" "$scratch/home/.config/wireshark/"
    Xvfb -displayfd 1 -screen 0 1280x800x24 >"$scratch/display" 2>/dev/null &
    display=$!
    phw_until 10 test -s "$scratch/display"
    DISPLAY=:$(<"$scratch/display")
    export DISPLAY
    HOME=$scratch/home XDG_CONFIG_HOME=$scratch/home/.config XDG_RUNTIME_DIR=$scratch QT_QPA_PLATFORM=xcb \
        command wireshark -r "$PHW_ROOT/tests/captures/blackwidow.pcapng" -Y 'frame.number >= 80 && frame.number <= 100' -g 90 \
        >"$scratch/wireshark.log" 2>&1 &
    traffic+=" $!"
    phw_until 30 xdotool search --name 'blackwidow.pcapng' >/dev/null
    sleep 3
    window=$(xdotool search --name 'blackwidow.pcapng' | tail -n 1)
    xdotool windowmove "$window" 0 0 windowsize "$window" 1280 800
    sleep 3
    # The last tree of the frame, all of it, scrolled to what its link control says.
    xdotool mousemove 300 450 click 1 key End key shift+Right
    sleep 1
    xdotool mousemove 300 600 click --repeat 6 --delay 100 5
    sleep 2
    import -window root "$scratch/shot.png"
    convert "$scratch/shot.png" -colors 128 "png8:$out/wireshark-retry.png"
}

# The drawings that no command makes: `drawing trace|ladder|screen ...`.
cat >"$scratch/drawing.py" <<'PY'
import html, json, re, sys

INK, GREY, LINE, RED = "#1f2933", "#7b8794", "#c3cad1", "#c2410c"
FONT = 'font-family="DejaVu Sans, Verdana, sans-serif"'


def svg(width, height, title, body):
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
          f'role="img" {FONT} font-size="12" fill="{INK}"><title>{html.escape(title)}</title>'
          f'<rect width="{width}" height="{height}" fill="#fff"/>')
    print("\n".join(body))
    print("</svg>")


def text(x, y, what, size=12, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{html.escape(str(what))}</text>')


# A trace as a time line: a row for each node, a bar for each stage, what was waited in a darker shade.
STAGES = {"link": ("#cbd5e1", "#94a3b8"), "netlink in": ("#fde68a", "#d97706"), "netlink out": ("#fde68a", "#d97706"),
          "input queue": ("#fed7aa", "#ea580c"), "row buffer": ("#bbf7d0", "#16a34a"), "column buffer": ("#ddd6fe", "#7c3aed")}


def trace(file, cycle_ns):
    events = json.load(open(file))["traceEvents"]
    cycle_us = float(cycle_ns) / 1000
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    bars = [e for e in events if e["ph"] == "X" and e["name"] in STAGES]
    rows = []
    for bar in sorted(bars, key=lambda e: e["ts"]):
        key = (bar["args"]["way"], bar["tid"])
        if key not in rows:
            rows.append(key)
    end = max((e["ts"] + e["dur"]) / cycle_us for e in bars)
    left, right, top, step = 130, 24, 66, 40
    width, height = 1000, top + step * len(rows) + 54
    scale = (width - left - right) / end
    message = next(e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name")
    out = [text(24, 26, f"{message}: where its {round(end)} cycles went", 15, weight="bold")]
    x = 24
    for name, colours in [("link", STAGES["link"]), ("Netlink", STAGES["netlink in"]), ("input queue", STAGES["input queue"]),
                          ("row buffer", STAGES["row buffer"]), ("column buffer", STAGES["column buffer"])]:
        if name == "Netlink" and not any(bar["name"].startswith("netlink") for bar in bars):
            continue
        out.append(f'<rect x="{x}" y="40" width="12" height="12" fill="{colours[0]}"/><rect x="{x + 12}" y="40" width="12" height="12" fill="{colours[1]}"/>')
        out.append(text(x + 30, 51, name))
        x += 50 + 7.4 * len(name)
    out.append(text(x + 8, 51, "(dark: waited)", fill=GREY))
    tick = next(t for t in (20, 50, 100, 200) if end / t <= 10)
    for at in range(0, int(end) + 1, tick):
        at_x = left + at * scale
        out.append(f'<path d="M{at_x:.1f} {top}V{height - 44}" stroke="#e4e7eb"/>')
        out.append(text(at_x, height - 28, at, 11, "middle", GREY))
    out.append(text(width - right, height - 10, "cycles", 11, "end", GREY))
    for number, (way, tid) in enumerate(rows):
        y = top + number * step
        out.append(text(24, y + 20, names[tid], weight="bold"))
        out.append(text(24, y + 33, way, 10, fill=GREY))
        for bar in bars:
            if (bar["args"]["way"], bar["tid"]) != (way, tid):
                continue
            begin, long = bar["ts"] / cycle_us, bar["dur"] / cycle_us
            wait = bar["args"].get("wait") or 0
            light, dark = STAGES[bar["name"]]
            bx, bw = left + begin * scale, long * scale
            out.append(f'<rect x="{bx:.1f}" y="{y + 6}" width="{bw:.1f}" height="26" fill="{light}" stroke="#fff" stroke-width="0.8">'
                       f'<title>{bar["name"]}: {round(long)} cycles, {round(wait)} of them waited</title></rect>')
            if wait:
                out.append(f'<rect x="{bx + bw - wait * scale:.1f}" y="{y + 6}" width="{wait * scale:.1f}" height="26" fill="{dark}"/>')
            if bw > 18:
                out.append(text(bx + bw / 2, y + 23, round(long), 10.5, "middle").replace(
                    "<text ", '<text paint-order="stroke" stroke="#fff" stroke-width="2.5" ', 1))
    svg(width, height, f"{message}, stage by stage", out)


# Frames between two link ends, time downwards; those that were lost end half-way.
def ladder(a, b, *lost):
    frames = [line.rstrip("\n").split("\t") for line in sys.stdin]
    begin = float(frames[0][1])
    width, top, step = 1000, 74, 52
    height = top + step * len(frames) + 24
    left, right = 250, 600
    out = ['<defs><marker id="e" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
           f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker><marker id="r" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
           f'markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#15803d"/></marker></defs>']
    for x, name in ((left, a), (right, b)):
        out.append(f'<rect x="{x - 55}" y="16" width="110" height="28" rx="4" fill="#f3f5f7" stroke="{LINE}"/>')
        out.append(text(x, 35, name, 13, "middle", weight="bold"))
        out.append(f'<path d="M{x} 44V{height - 12}" stroke="{LINE}" stroke-width="2"/>')
    for number, (frame, at, interface, info) in enumerate(frames):
        y = top + number * step
        forwards = interface.split(":", 1)[1].startswith(a + "->")
        x1, x2 = (left, right) if forwards else (right, left)
        gone, again = frame in lost, "resent]" in info
        colour = RED if gone else "#15803d" if again else INK
        y2 = y + 18
        if gone:
            x2, y2 = (x1 + x2) / 2 + (40 if forwards else -40), y + 11
        out.append(f'<path d="M{x1} {y}L{x2} {y2}" fill="none" stroke="{colour}" stroke-width="2"'
                   + ("" if gone else f' marker-end="url(#{"r" if again else "e"})"') + "/>")
        if gone:
            out.append(f'<path d="M{x2 - 7} {y2 - 7}l14 14m0 -14l-14 14" stroke="{RED}" stroke-width="2.5"/>')
            out.append(text(x2 + (14 if forwards else -14), y2 + 16, "lost", 11, "start" if forwards else "end", RED, "bold"))
        head, _, rest = info.partition(" | ")
        out.append(text((left + right) / 2, y - 5, head, 12, "middle", colour, "bold" if gone or again else "normal"))
        out.append(text(24, y + 4, f"frame {frame}", weight="bold"))
        out.append(text(180, y + 4, f"{(float(at) - begin) * 1000:.2f} ms", 11, "end", GREY))
        if rest:
            out.append(text(right + 24, y + 4, rest if len(rest) < 52 else rest[:50] + "…", 12, fill="#3e4c59"))
    svg(width, height, f"Frames between {a} and {b}", out)


# What a terminal showed, with its colours, as a page.
BASIC = ["#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
         "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"]


def colour_256(n):
    if n < 16:
        return BASIC[n]
    if n >= 232:
        return "#" + f"{8 + 10 * (n - 232):02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    n -= 16
    return "#" + "".join(f"{levels[v]:02x}" for v in (n // 36, n // 6 % 6, n % 6))


def screen():
    state = {"fg": None, "bg": None, "bold": False, "dim": False, "reverse": False}
    out = []

    def span(chunk):
        fg, bg = state["fg"] or "#d4d4d4", state["bg"] or "#1e1e1e"
        if state["reverse"]:
            fg, bg = bg, fg
        style = f"color:{fg};background:{bg}" + (";font-weight:bold" if state["bold"] else "") + (";opacity:.6" if state["dim"] else "")
        return f'<span style="{style}">{html.escape(chunk)}</span>'

    for line in sys.stdin:
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            match = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
            if not match:
                if part:
                    out.append(span(part.rstrip("\n")) + ("\n" if part.endswith("\n") else ""))
                continue
            codes = [int(code or 0) for code in match[1].split(";")]
            while codes:
                code = codes.pop(0)
                if code == 0:
                    state.update(fg=None, bg=None, bold=False, dim=False, reverse=False)
                elif code == 1: state["bold"] = True
                elif code == 2: state["dim"] = True
                elif code == 7: state["reverse"] = True
                elif code == 22: state.update(bold=False, dim=False)
                elif code == 27: state["reverse"] = False
                elif 30 <= code <= 37: state["fg"] = BASIC[code - 30]
                elif 90 <= code <= 97: state["fg"] = BASIC[code - 82]
                elif 40 <= code <= 47: state["bg"] = BASIC[code - 40]
                elif 100 <= code <= 107: state["bg"] = BASIC[code - 92]
                elif code == 39: state["fg"] = None
                elif code == 49: state["bg"] = None
                elif code in (38, 48):
                    which, kind = ("fg" if code == 38 else "bg"), codes.pop(0)
                    state[which] = colour_256(codes.pop(0)) if kind == 5 else "#%02x%02x%02x" % (codes.pop(0), codes.pop(0), codes.pop(0))
    print('<meta charset="utf-8"><body style="margin:0;background:#1e1e1e"><pre style="font:14px/18px DejaVu Sans Mono,monospace;'
          'margin:12px;color:#d4d4d4">' + "".join(out) + "</pre>")


{"trace": trace, "ladder": ladder, "screen": screen}[sys.argv[1]](*sys.argv[2:])
PY
drawing() { python3 "$scratch/drawing.py" "$@"; }

mkdir -p "$pictures" "$out"
(( $# )) || set -- topologies sweeps traces ladders view recording top wireshark
for part; do
    [[ $part =~ ^(topologies|sweeps|traces|ladders|view|recording|top|wireshark)$ ]] || phw_bad_call "no such pictures: $part (--help lists them)"
    phw_note "$part"
    "$part"
    mv -- "$out"/* "$pictures/"
done
large=$(find "$pictures" -size +195k)
[[ -z $large ]] || phw_die "larger than 200 kB: $large"
