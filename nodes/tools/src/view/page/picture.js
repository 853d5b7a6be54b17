// The drawing, alive.

const SVG = "http://www.w3.org/2000/svg";

/// A drawing for networks that are too large for one of their own: a field of nodes.
function field(network) {
  const count = network.nodes.length, across = Math.ceil(Math.sqrt(count * 2.2)), size = 16;
  const parts = network.nodes.map((node, at) => {
    const x = 20 + (at % across) * size, y = 60 + Math.floor(at / across) * size, round = node.kind === "router" ? 2 : 6;
    return `<g class="node" data-nodes="${at}"><rect x="${x}" y="${y}" width="12" height="12" rx="${round}" fill="#e3edfb" stroke="#2f6db5"/></g>`;
  });
  const width = 40 + across * size, height = 90 + Math.ceil(count / across) * size;
  return `<svg xmlns="${SVG}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"><text x="20" y="34" font-size="13" fill="#6b7480">too large to draw: nodes in order, routers first; links are in the list</text>${parts.join("")}</svg>`;
}

class Picture {
  constructor(network, choose) {
    this.network = network;
    this.canvas = document.getElementById("canvas");
    const source = network.header.svg || field(network), isField = !network.header.svg;
    const parsed = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    for (const bad of this.svg.querySelectorAll("script, foreignObject, image, use, a, style")) bad.remove();
    const box = (this.svg.getAttribute("viewBox") || "0 0 800 600").split(/\s+/).map(Number);
    this.svg.removeAttribute("width"); this.svg.removeAttribute("height");
    this.full = box; this.box = box.slice();
    this.canvas.replaceChildren(this.svg);
    this.nodes = new Map(); this.links = [];
    for (const group of this.svg.querySelectorAll("g.node")) {
      const names = (group.dataset.nodes || "").split(" ");
      const at = names.map(name => isField ? Number(name) : network.byName.get(name)).filter(at => at !== undefined);
      if (!at.length) continue;
      const drawn = { group, at, shown: "" };
      for (const node of at) { if (!this.nodes.has(node)) this.nodes.set(node, []); this.nodes.get(node).push(drawn); }
      group.addEventListener("click", () => this.moved || choose(at.length === 1 ? { node: at[0] } : { nodes: at }));
      group.addEventListener("pointermove", event => this.tip(event, () => this.nodeTip(at)));
      group.addEventListener("pointerleave", () => this.hideTip());
      group.querySelector("title")?.remove();
    }
    for (const group of this.svg.querySelectorAll("g.link")) {
      const numbers = (group.dataset.links || "").split(" ").filter(Boolean).map(Number).filter(link => link < network.links.length);
      const wire = group.querySelector("path, line");
      if (!numbers.length || !wire) continue;
      wire.classList.add("wire");
      const width = Number(wire.getAttribute("stroke-width")) || 1.4;
      const hit = wire.cloneNode(); hit.setAttribute("class", "hit"); hit.removeAttribute("stroke"); hit.removeAttribute("stroke-width"); hit.removeAttribute("opacity"); hit.removeAttribute("stroke-dasharray");
      group.append(hit);
      const drawn = { group, wire, numbers, width, shown: "", mark: null, markShown: "" };
      this.links.push(drawn);
      group.addEventListener("click", () => { if (this.moved) return; const looked = numbers.map(link => this.look.link(link)).sort((a, b) => b.score - a.score || b.rate - a.rate); choose({ link: looked[0].link, among: numbers }); });
      group.addEventListener("pointermove", event => this.tip(event, () => this.linkTip(numbers)));
      group.addEventListener("pointerleave", () => this.hideTip());
    }
    this.over = document.createElementNS(SVG, "g"); this.svg.append(this.over);
    if (this.links.length > MOST_LIVE_LINES) this.strokes = new Strokes(this);
    this.moves(); this.show();
  }
  show() { this.svg.setAttribute("viewBox", this.box.join(" ")); this.strokes?.draw(); }
  moves() {
    let from = null;
    this.canvas.addEventListener("pointerdown", event => { from = [event.clientX, event.clientY, ...this.box]; this.moved = false; });
    window.addEventListener("pointermove", event => {
      if (!from) return;
      const dx = event.clientX - from[0], dy = event.clientY - from[1];
      if (Math.abs(dx) + Math.abs(dy) < 5 && !this.moved) return;
      this.moved = true; this.canvas.classList.add("moving");
      const scale = Math.max(this.box[2] / this.canvas.clientWidth, this.box[3] / this.canvas.clientHeight);
      this.box[0] = from[2] - dx * scale; this.box[1] = from[3] - dy * scale; this.show();
    });
    window.addEventListener("pointerup", () => { from = null; this.canvas.classList.remove("moving"); setTimeout(() => { this.moved = false; }, 0); });
    this.canvas.addEventListener("wheel", event => { event.preventDefault(); const at = this.canvas.getBoundingClientRect(); this.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - at.left) / at.width, (event.clientY - at.top) / at.height); }, { passive: false });
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => button.dataset.zoom === "fit" ? (this.box = this.full.slice(), this.show()) : this.zoom(button.dataset.zoom === "in" ? 1 / 1.3 : 1.3, .5, .5));
  }
  zoom(by, x, y) {
    const [left, top, width, height] = this.box;
    if (width * by < 40 || width * by > 8 * this.full[2]) return;
    this.box = [left + width * (1 - by) * x, top + height * (1 - by) * y, width * by, height * by]; this.show();
  }
  tip(event, words) {
    const tip = document.getElementById("tip"), at = this.canvas.getBoundingClientRect();
    tip.textContent = words(); tip.hidden = false;
    const x = event.clientX - at.left, y = event.clientY - at.top;
    tip.style.left = Math.min(x + 14, at.width - tip.offsetWidth - 6) + "px"; tip.style.top = Math.min(y + 16, at.height - tip.offsetHeight - 6) + "px";
  }
  hideTip() { document.getElementById("tip").hidden = true; }
  nodeTip(at) {
    const names = at.slice(0, 6).map(node => this.network.nodes[node].name);
    return names.join(", ") + (at.length > 6 ? " and " + (at.length - 6) + " more" : "") + (at.length === 1 ? "\n" + nodeWords(this.look, at[0]) : "");
  }
  linkTip(numbers) { return numbers.slice(0, 4).map(link => linkName(this.network, link) + "\n" + linkWords(this.look, this.look.link(link))).join("\n") + (numbers.length > 4 ? "\nand " + (numbers.length - 4) + " more links" : ""); }

  /// Shows a moment. Only what looks otherwise than before is touched.
  draw(look, all, chosen) {
    this.look = look;
    const full = this.network.header.full ? this.network.header.full * 1e3 : all.reduce((most, found) => Math.max(most, found.busiest), 1e-9);
    for (const drawn of this.links) {
      let worst = all[drawn.numbers[0]], busy = 0;
      for (const link of drawn.numbers) { const one = all[link]; if (one.score > worst.score) worst = one; if (one.busiest > busy) busy = one.busiest; }
      busy /= full;
      const use = busy < .002 ? 0 : busy < .1 ? 1 : busy < .35 ? 2 : busy < .7 ? 3 : 4;
      const level = worst.level === "good" ? "u" + use : worst.level;
      const isChosen = chosen.link !== undefined && drawn.numbers.includes(chosen.link);
      const lanes = worst.most > 0 ? worst.lanes / worst.most : 1;
      const width = (Math.max(drawn.width, 1.6) + (use > 1 ? .8 : 0)) * (worst.up ? .45 + .55 * lanes : 1);
      const shown = "link " + level + (isChosen ? " chosen" : "");
      drawn.level = level; drawn.isChosen = isChosen; drawn.thick = width;
      if (this.strokes) { this.mark(drawn, worst); continue; }
      if (shown !== drawn.shown) { drawn.group.setAttribute("class", shown); drawn.shown = shown; }
      const text = width.toFixed(1);
      if (text !== drawn.widthShown) { drawn.wire.setAttribute("stroke-width", text); drawn.widthShown = text; }
      this.mark(drawn, worst);
    }
    this.strokes?.draw();
    for (const [node, places] of this.nodes) for (const drawn of places) {
      if (drawn.at[0] !== node) continue;
      const off = drawn.at.some(at => look.get(this.network.node(at) + N.silent) > 0);
      const shown = "node" + (off ? " off" : "") + (drawn.at.includes(chosen.node) ? " chosen" : "");
      if (shown !== drawn.shown) { drawn.group.setAttribute("class", shown); drawn.shown = shown; }
    }
  }
  /// The sign at the middle of a line; beside the label of several links.
  mark(drawn, { up, silent, badGrown, lost, share, fewer, lanes }) {
    const sign = silent ? "off ?" : !up ? "bad \u00d7" : badGrown > 2 ? "warn !" : lost >= LOSSES || share >= REPEATS ? "warn \u21bb" : fewer ? "warn " + lanes : "";
    if (sign === drawn.markShown) return;
    drawn.markShown = sign;
    if (!sign) { drawn.mark?.remove(); drawn.mark = null; return; }
    const [level, letter] = sign.split(" ");
    if (!drawn.mark) {
      drawn.mark = document.createElementNS(SVG, "g");
      const path = drawn.wire, middle = path.getPointAtLength ? path.getPointAtLength(path.getTotalLength() * (drawn.numbers.length > 1 ? .3 : .5)) : { x: 0, y: 0 };
      const circle = document.createElementNS(SVG, "circle"), text = document.createElementNS(SVG, "text");
      const small = path.getTotalLength && path.getTotalLength() < 40;
      circle.setAttribute("cx", middle.x); circle.setAttribute("cy", middle.y); circle.setAttribute("r", small ? 5 : 7.5);
      text.setAttribute("x", middle.x); text.setAttribute("y", middle.y + (small ? 3 : 4)); text.setAttribute("text-anchor", "middle"); text.setAttribute("font-size", small ? 8 : 11);
      drawn.mark.append(circle, text); this.over.append(drawn.mark);
    }
    drawn.mark.setAttribute("class", "mark " + level); drawn.mark.lastChild.textContent = letter;
  }
}

/// Lines above which a browser takes too long to draw each as an element.
const MOST_LIVE_LINES = 300;

/// The lines of large drawings, on one canvas below their elements, which stay where they are and are pointed at.
class Strokes {
  constructor(picture) {
    this.picture = picture;
    this.canvas = document.createElement("canvas"); this.canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%";
    picture.canvas.prepend(this.canvas); picture.svg.classList.add("many");
    this.paths = picture.links.map(({ wire }) => { const box = wire.getAttribute("d"); return box ? new Path2D(box) : new Path2D(`M${wire.getAttribute("x1")} ${wire.getAttribute("y1")}L${wire.getAttribute("x2")} ${wire.getAttribute("y2")}`); });
    new ResizeObserver(() => this.draw()).observe(picture.canvas);
    this.colours = null; matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colours = null; this.draw(); });
  }
  draw() {
    const { picture, canvas } = this, ratio = devicePixelRatio || 1, width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height || !picture.links[0].level) return;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    if (!this.colours) { const style = getComputedStyle(document.documentElement); this.colours = new Map(["u0", "u1", "u2", "u3", "u4", "warn", "off", "bad", "pick"].map(name => [name, style.getPropertyValue("--" + name)])); }
    const [left, top, wide, high] = picture.box, scale = Math.min(width / wide, height / high), paint = canvas.getContext("2d");
    paint.setTransform(1, 0, 0, 1, 0, 0); paint.clearRect(0, 0, width, height);
    paint.setTransform(scale, 0, 0, scale, (width - scale * wide) / 2 - scale * left, (height - scale * high) / 2 - scale * top);
    // Those alike are one stroke, those in trouble on top.
    const kinds = new Map();
    picture.links.forEach((drawn, at) => {
      const key = drawn.level + " " + drawn.thick.toFixed(1); let kind = kinds.get(key);
      if (!kind) kinds.set(key, kind = { level: drawn.level, thick: drawn.thick, path: new Path2D() });
      kind.path.addPath(this.paths[at]);
      if (drawn.isChosen) { paint.strokeStyle = this.colours.get("pick"); paint.lineWidth = drawn.thick + 5 / scale; paint.setLineDash([]); paint.stroke(this.paths[at]); }
    });
    const order = ["u0", "u1", "u2", "u3", "u4", "warn", "off", "bad"];
    for (const { level, thick, path } of [...kinds.values()].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))) {
      paint.strokeStyle = this.colours.get(level); paint.lineWidth = Math.max(thick, .7 / scale); paint.setLineDash(level === "bad" ? [7, 4] : level === "off" ? [2, 4] : []);
      paint.globalAlpha = level[0] === "u" && picture.links.length > 600 ? .55 : 1; paint.stroke(path);
    }
    paint.globalAlpha = 1;
  }
}

function legend(network) {
  const place = document.getElementById("legend"), carried = network.header.carried;
  const scale = network.header.full ? "share of the wire's capacity" : carried + "/" + per(network) + " relative to the busiest link";
  const entries = [["--u0", "idle"], ["--u1", "to 10 %"], ["--u2", "to 35 %"], ["--u3", "to 70 %"], ["--u4", "above: " + scale], ["--warn", "resends, losses or lost lanes"], ["--bad", "down"], ["--off", "node does not answer"]];
  place.replaceChildren(...entries.map(([colour, words]) => { const entry = make("span", "", ""), line = make("i"); line.style.borderColor = `var(${colour})`; if (colour === "--bad" || colour === "--off") line.style.borderTopStyle = colour === "--bad" ? "dashed" : "dotted"; entry.append(line, words); return entry; }), make("span", "\u00d7 down"), make("span", "? unknown"), make("span", "! bad CRCs"), make("span", "\u21bb sent again"), make("span", "1, 2: lanes left"), make("span", "thin: fewer lanes"));
}
