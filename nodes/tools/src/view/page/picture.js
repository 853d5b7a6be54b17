// The live drawing of the network.

const SVG = "http://www.w3.org/2000/svg";

/// The drawing of a network that is too large for a drawing of its own: a grid of nodes.
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
    this.network = network; this.choose = choose;
    this.canvas = document.getElementById("canvas");
    const { svg, overview } = network.header, both = document.getElementById("expand");
    // Show large networks with a box for each group first.
    both.hidden = !(svg && overview);
    both.addEventListener("click", () => this.take(this.isOverview ? svg : overview, !this.isOverview));
    this.moves();
    this.take(overview || svg || field(network), Boolean(overview));
  }
  /// Replaces the drawing.
  take(source, isOverview) {
    const { network, choose } = this, isField = !network.header.svg && !isOverview;
    this.isOverview = isOverview; this.strokes?.end(); this.strokes = null; this.solid = null; this.placed = [];
    document.getElementById("expand").textContent = isOverview ? "all nodes" : "groups";
    const parsed = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    for (const bad of this.svg.querySelectorAll("script, foreignObject, image, use, a, style")) bad.remove();
    const box = (this.svg.getAttribute("viewBox") || "0 0 800 600").split(/\s+/).map(Number);
    this.svg.removeAttribute("width"); this.svg.removeAttribute("height");
    this.canvas.replaceChildren(this.svg);
    this.full = this.extent() || box; this.box = this.first();
    this.nodes = new Map(); this.links = [];
    for (const group of this.svg.querySelectorAll("g.node")) {
      const names = (group.dataset.nodes || "").split(" ");
      const at = names.map(name => isField ? Number(name) : network.byName.get(name)).filter(at => at !== undefined);
      if (!at.length) continue;
      const drawn = { group, at, inside: [], shown: "" };
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
    // A box of several nodes stands for the links that are drawn nowhere else.
    const isDrawn = new Set(this.links.flatMap(drawn => drawn.numbers));
    network.links.forEach((ends, link) => { if (!isDrawn.has(link)) for (const drawn of new Set(ends.flatMap(([node]) => this.nodes.get(node) || []))) if (drawn.at.length > 1) drawn.inside.push(link); });
    this.over = document.createElementNS(SVG, "g"); this.svg.append(this.over);
    if (this.links.length > MOST_LIVE_LINES) this.strokes = new Strokes(this);
    this.show();
    if (this.all) this.draw(this.look, this.all, this.chosen);
  }
  /// The bounds of the drawing without title and legend, of which the page has its own; null while the page is hidden.
  extent() {
    const parts = [...this.svg.children].slice(2).filter(part => !part.matches(".title, .legend")).map(part => part.getBBox?.()).filter(box => box && box.width + box.height > 0);
    if (!parts.length) return null;
    const left = Math.min(...parts.map(box => box.x)) - 16, top = Math.min(...parts.map(box => box.y)) - 16;
    return [left, top, Math.max(...parts.map(box => box.x + box.width)) + 16 - left, Math.max(...parts.map(box => box.y + box.height)) + 16 - top];
  }
  /// What a drawing shows at first: all of it, but the top of one so tall that it would be illegible.
  first() {
    const [left, top, width, height] = this.full, high = width * this.canvas.clientHeight / (this.canvas.clientWidth || 1);
    return [left, top, width, high > 0 && height > 2 * high ? high : height];
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
    const inside = this.nodes.get(at[0]).find(drawn => drawn.at === at).inside.map(link => this.look.link(link));
    const worst = inside.reduce((worst, found) => !worst || found.score > worst.score ? found : worst, null);
    return names.join(", ") + (at.length > 6 ? " and " + (at.length - 6) + " more" : "") + (at.length === 1 ? "\n" + nodeWords(this.look, at[0]) : "") + (worst ? `\n${inside.length} links inside, the worst: ${linkName(this.network, worst.link)}, ${trouble(this.look, worst)}` : "");
  }
  linkTip(numbers) { return numbers.slice(0, 4).map(link => linkName(this.network, link) + "\n" + linkWords(this.look, this.look.link(link))).join("\n") + (numbers.length > 4 ? "\nand " + (numbers.length - 4) + " more links" : ""); }

  /// Shows a moment. Only elements whose appearance changes are touched.
  draw(look, all, chosen) {
    this.look = look; this.all = all; this.chosen = chosen;
    const full = capacity(this.network, all).rate;
    const judged = numbers => {
      let worst = all[numbers[0]], busy = 0;
      for (const link of numbers) { const one = all[link]; if (one.score > worst.score) worst = one; if (one.busiest > busy) busy = one.busiest; }
      busy /= full;
      const use = busy < .002 ? 0 : busy < .1 ? 1 : busy < .35 ? 2 : busy < .7 ? 3 : 4;
      return { worst, use, level: worst.level === "good" ? "u" + use : worst.level };
    };
    for (const drawn of this.links) {
      const { worst, use, level } = judged(drawn.numbers);
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
      const shown = "node" + (off ? " off" : drawn.inside.length ? " group " + judged(drawn.inside).level : "") + (drawn.at.includes(chosen.node) ? " chosen" : "");
      if (shown !== drawn.shown) { drawn.group.setAttribute("class", shown); drawn.shown = shown; }
    }
  }
  /// The areas that marks must not cover: boxes and texts, each as left, top, right and bottom.
  solids() {
    if (this.solid) return this.solid;
    const shapes = [...this.svg.querySelectorAll("g.node rect, g.node circle, text")].filter(shape => !shape.closest(".title, .legend, .mark"));
    return this.solid = shapes.map(shape => { const { x, y, width, height } = shape.getBBox(); return [x, y, x + width, y + height]; });
  }
  /// The position of a line's mark: on the line or, if that is short, beside it; away from boxes, texts and other
  /// marks.
  markPlace(path, radius) {
    const length = path.getTotalLength(), free = ({ x, y }) => !this.solids().some(([left, top, right, bottom]) => x > left - radius && x < right + radius && y > top - radius && y < bottom + radius) && !this.placed.some(other => Math.hypot(other.x - x, other.y - y) < 2 * radius);
    const along = [.5, .4, .6, .3, .7, .2, .8, .12, .88].map(part => path.getPointAtLength(part * length)), middle = along[0], far = radius + 3;
    const beside = [far, far + radius, far + 2 * radius].flatMap(far => [[far, 0], [-far, 0], [0, far], [0, -far], [far, far], [-far, far]]).map(([x, y]) => ({ x: middle.x + x, y: middle.y + y }));
    const place = [...(length > 3 * radius ? along : []), ...beside].find(free) || middle;
    this.placed.push(place);
    return place;
  }
  /// Updates the mark of a line.
  mark(drawn, { up, silent, badGrown, lost, share, fewer, lanes }) {
    const sign = silent ? "off ?" : !up ? "bad \u00d7" : lost >= LOSSES ? "warn \u2193" : badGrown > 2 ? "warn !" : fewer ? "warn " + lanes : share >= REPEATS ? "again \u21bb" : "";
    if (sign === drawn.markShown) return;
    drawn.markShown = sign;
    if (!sign) { drawn.mark?.remove(); drawn.mark = null; return; }
    const [level, letter] = sign.split(" ");
    if (!drawn.mark) {
      drawn.mark = document.createElementNS(SVG, "g");
      const small = drawn.wire.getTotalLength() < 40, middle = drawn.place ||= this.markPlace(drawn.wire, small ? 5 : 7.5);
      const circle = document.createElementNS(SVG, "circle"), text = document.createElementNS(SVG, "text");
      circle.setAttribute("cx", middle.x); circle.setAttribute("cy", middle.y); circle.setAttribute("r", small ? 5 : 7.5);
      text.setAttribute("x", middle.x); text.setAttribute("y", middle.y + (small ? 3 : 4)); text.setAttribute("text-anchor", "middle"); text.setAttribute("font-size", small ? 8 : 11);
      drawn.mark.append(circle, text); this.over.append(drawn.mark);
    }
    drawn.mark.setAttribute("class", "mark " + level); drawn.mark.lastChild.textContent = letter;
  }
}

/// Number of lines above which a browser takes too long to draw each as an element.
const MOST_LIVE_LINES = 300;

/// The lines of large drawings, on one canvas below their elements, which stay in place for the pointer.
class Strokes {
  constructor(picture) {
    this.picture = picture;
    this.canvas = document.createElement("canvas"); this.canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%";
    picture.canvas.prepend(this.canvas); picture.svg.classList.add("many");
    this.paths = picture.links.map(({ wire }) => { const box = wire.getAttribute("d"); return box ? new Path2D(box) : new Path2D(`M${wire.getAttribute("x1")} ${wire.getAttribute("y1")}L${wire.getAttribute("x2")} ${wire.getAttribute("y2")}`); });
    this.observer = new ResizeObserver(() => this.draw()); this.observer.observe(picture.canvas);
    this.colours = null; matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colours = null; this.draw(); });
  }
  end() { this.observer.disconnect(); this.canvas.remove(); }
  draw() {
    const { picture, canvas } = this, ratio = devicePixelRatio || 1, width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height || !picture.links[0].level) return;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    if (!this.colours) { const style = getComputedStyle(document.documentElement); this.colours = new Map(["u0", "u1", "u2", "u3", "u4", "again", "warn", "off", "bad", "pick"].map(name => [name, style.getPropertyValue("--" + name)])); }
    const [left, top, wide, high] = picture.box, scale = Math.min(width / wide, height / high), paint = canvas.getContext("2d");
    paint.setTransform(1, 0, 0, 1, 0, 0); paint.clearRect(0, 0, width, height);
    paint.setTransform(scale, 0, 0, scale, (width - scale * wide) / 2 - scale * left, (height - scale * high) / 2 - scale * top);
    // Draw equal lines as one stroke, those in trouble on top.
    const kinds = new Map();
    picture.links.forEach((drawn, at) => {
      const key = drawn.level + " " + drawn.thick.toFixed(1); let kind = kinds.get(key);
      if (!kind) kinds.set(key, kind = { level: drawn.level, thick: drawn.thick, path: new Path2D() });
      kind.path.addPath(this.paths[at]);
      if (drawn.isChosen) { paint.strokeStyle = this.colours.get("pick"); paint.lineWidth = drawn.thick + 5 / scale; paint.setLineDash([]); paint.stroke(this.paths[at]); }
    });
    const order = ["u0", "u1", "u2", "u3", "u4", "again", "warn", "off", "bad"];
    for (const { level, thick, path } of [...kinds.values()].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))) {
      paint.strokeStyle = this.colours.get(level); paint.lineWidth = Math.max(thick, .7 / scale); paint.setLineDash(level === "bad" ? [7, 4] : level === "off" ? [2, 4] : []);
      // Many thin lines hide each other; wide ones have the colours of the legend.
      paint.globalAlpha = level[0] === "u" && picture.links.length > 600 && paint.lineWidth * scale < 1.5 * ratio ? .55 : 1; paint.stroke(path);
    }
    paint.globalAlpha = 1;
  }
}

function legend(network) {
  const place = document.getElementById("legend"), { words } = capacity(network, []);
  const entries = [["--u0", "idle"], ["--u1", "to 10 %"], ["--u2", "35 %"], ["--u3", "70 %"], ["--u4", "100 % " + words], ["--warn", "\u2193 losses, ! bad CRCs, 1, 2: lanes left"], ["--again", "\u21bb resends, no loss seen"], ["--bad", "\u00d7 down"], ["--off", "? node does not answer"]];
  place.replaceChildren(...entries.map(([colour, words]) => { const entry = make("span", "", ""), line = make("i"); line.style.borderColor = `var(${colour})`; if (colour === "--bad" || colour === "--off") line.style.borderTopStyle = colour === "--bad" ? "dashed" : "dotted"; entry.append(line, words); return entry; }));
}
