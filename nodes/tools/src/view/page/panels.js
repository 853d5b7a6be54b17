// The lists and details beside the drawing.

function make(tag, text, kind) { const element = document.createElement(tag); if (text !== undefined) element.textContent = text; if (kind) element.className = kind; return element; }
/// A row of a table. Cells are texts, elements, or pairs of either with a class. Rows are kept from one moment to the
/// next.
function row(cells, head) {
  const row = make("tr");
  for (const cell of cells) { const [content, kind] = Array.isArray(cell) ? cell : [cell]; const made = make(head ? "th" : "td", content instanceof Node ? undefined : content, kind); if (content instanceof Node) made.append(content); row.append(made); }
  return row;
}
function table(heads) { const whole = make("table"), head = make("thead"), body = make("tbody"); head.append(row(heads, true)); whole.append(head, body); return [whole, body]; }
function pairs(rows) { const whole = make("table"), body = make("tbody"); for (const cells of rows) body.append(row(cells)); whole.append(body); return whole; }
/// Sets the text of an element. The last text is remembered, because querying the browser is slow.
function set(element, text) { if (element.said !== text) { element.said = text; element.textContent = text; } }
function dot(level) { return make("span", "", "dot " + level); }

function endName(network, [node, port]) { return network.nodes[node].name + (network.nodes[node].kind === "router" ? ":" + port : ""); }
function linkName(network, link) { const [a, b] = network.links[link]; return endName(network, a) + " \u2013 " + endName(network, b); }
function trouble(look, found) {
  if (found.silent) return found.ends.map((end, side) => end.silent ? look.network.nodes[look.network.links[found.link][side][0]].name : "").filter(Boolean).join(" and ") + (found.ends.every(end => end.silent) ? " do not answer" : " does not answer");
  if (!found.up) return look.state(look.witness(found)) || "down";
  const words = [];
  if (found.fewer) words.push(`${found.lanes} of ${found.most} lanes`);
  if (found.lost >= LOSSES) words.push("loses\u00a0" + percent(found.lost));
  if (found.share >= REPEATS) words.push("resends\u00a0" + percent(found.share));
  if (found.badGrown > 2) words.push("bad CRCs");
  return words.join(", ") || "healthy";
}
/// The loss of a direction, in words.
function lostWords(way) {
  if (way.lost > 0) return percent(way.lost);
  const words = make("span", way.isKnown ? "none seen" : "not yet known");
  words.title = way.isKnown ? "Losses below the scatter of the samples do not show" : `Needs steady traffic for up to ${LONG} s: at least 100 units, and losses that exceed the scatter of the samples`;
  return words;
}
function linkWords(look, found) { return trouble(look, found) + ", " + short(found.rate) + " " + found.carried + "/" + found.per + (found.up || found.silent ? "" : "\n" + look.why(found)); }
function nodeWords(look, at) {
  const base = look.network.node(at), silent = look.text(base + N.silent);
  if (silent) return silent;
  const answered = look.rate(base + N.answered), links = look.network.linksOf[at].length;
  return look.network.nodes[at].kind + ", " + links + (links === 1 ? " link" : " links") + (answered ? ", " + short(answered) + " messages/" + per(look.network) : "");
}

/// The list of links, by default those in most trouble first.
class LinkList {
  constructor(network, choose) {
    this.network = network; this.choose = choose; this.panel = document.getElementById("panel-links");
    this.sort = "score"; this.rows = []; this.shown = 0;
    const carried = network.header.carried;
    const [whole, body] = table(["Link", "State", ["Lost", "num"], ["Resent", "num"], ["Bad CRCs", "num"], [`${carried}/${per(network)}`, "num"]]);
    this.body = body; this.heads = [...whole.querySelectorAll("th")];
    const keys = this.keys = [null, "score", "lost", "share", "bad", "rate"];
    this.heads.forEach((head, at) => { if (!keys[at]) return; head.style.cursor = "pointer"; head.title = "Sort by this column"; head.addEventListener("click", () => { this.sort = keys[at]; this.draw(this.look, this.all, this.chosen); }); });
    this.note = make("p", "", "faint");
    this.panel.append(whole, this.note);
  }
  draw(look, all, chosen) {
    this.look = look; this.all = all; this.chosen = chosen;
    const key = this.sort, sorted = all.slice().sort((a, b) => b[key] - a[key] || b.score - a.score || b.rate - a.rate || a.link - b.link), most = Math.min(sorted.length, 200);
    while (this.rows.length < most) this.grow();
    this.heads.forEach((head, at) => head.setAttribute("aria-sort", this.keys[at] === key ? "descending" : "none"));
    for (let at = 0; at < most; at++) {
      const found = sorted[at], cells = this.rows[at];
      if (cells.link !== found.link) { cells.link = found.link; cells.row.dataset.link = found.link; set(cells.name, linkName(this.network, found.link)); }
      if (cells.level !== found.level) { cells.level = found.level; cells.dot.className = "dot " + found.level; }
      set(cells.words, trouble(this.look, found));
      set(cells.lost, percent(found.lost)); set(cells.share, percent(found.share)); set(cells.bad, found.bad ? short(found.bad) : "-"); set(cells.rate, short(found.rate));
      const isChosen = chosen.link === found.link;
      if (cells.chosen !== isChosen) { cells.chosen = isChosen; cells.row.classList.toggle("chosen", isChosen); }
    }
    set(this.note, sorted.length > most ? `and ${sorted.length - most} more links` : `Lost and resent: share in the worse direction over the last ${LONG} s shown; "-": none seen, or not yet known. Bad CRCs: per ${per(this.network)}. Last column: both directions. Click a column header to sort.`);
  }
  grow() {
    const cells = { name: make("span"), dot: dot("off"), words: make("span"), lost: make("span"), share: make("span"), bad: make("span"), rate: make("span"), link: -1 };
    const state = make("span", undefined, "state"); state.append(cells.dot, cells.words);
    cells.row = row([cells.name, state, [cells.lost, "num"], [cells.share, "num"], [cells.bad, "num"], [cells.rate, "num"]]);
    cells.row.tabIndex = 0;
    const choose = () => this.choose({ link: cells.link });
    cells.row.addEventListener("click", choose); cells.row.addEventListener("keydown", event => event.key === "Enter" && choose());
    this.rows.push(cells); this.body.append(cells.row);
  }
}

/// The list of nodes: silent ones first, then by units sent.
class NodeList {
  constructor(network, choose) {
    this.network = network; this.choose = choose; this.rows = [];
    const [whole, body] = table(["Node", "Kind", [`${network.header.carried} sent/${per(network)}`, "num"], [`Messages/${per(network)}`, "num"], ["Waiting", "num"]]);
    this.body = body; this.note = make("p", "", "faint");
    document.getElementById("panel-nodes").append(whole, this.note);
  }
  draw(look, chosen) {
    const found = this.network.nodes.map((node, at) => {
      const base = this.network.node(at); let sent = 0;
      for (const { link, side } of this.network.linksOf[at]) sent += look.rate(this.network.end(link, side) + E.carried);
      return { at, node, sent, silent: look.text(base + N.silent), answered: look.rate(base + N.answered), held: heldOf(look, at) };
    });
    found.sort((a, b) => (b.silent ? 1 : 0) - (a.silent ? 1 : 0) || b.sent - a.sent || a.at - b.at);
    const most = Math.min(found.length, 200);
    while (this.rows.length < most) {
      const cells = { name: make("span"), dot: dot("off"), is: make("span"), sent: make("span"), answered: make("span"), held: make("span"), at: -1 };
      const name = make("span"); name.append(cells.dot, cells.name);
      cells.row = row([name, cells.is, [cells.sent, "num"], [cells.answered, "num"], [cells.held, "num"]]); cells.row.tabIndex = 0;
      const choose = () => this.choose({ node: cells.at });
      cells.row.addEventListener("click", choose); cells.row.addEventListener("keydown", event => event.key === "Enter" && choose());
      this.rows.push(cells); this.body.append(cells.row);
    }
    for (let place = 0; place < most; place++) {
      const one = found[place], cells = this.rows[place];
      cells.at = one.at; cells.row.dataset.node = one.node.name;
      cells.dot.className = "dot " + (one.silent ? "off" : "good");
      set(cells.name, one.node.name); set(cells.is, one.silent || one.node.kind); set(cells.sent, short(one.sent));
      set(cells.answered, one.answered ? short(one.answered) : "-"); set(cells.held, one.held ? short(one.held) : "-");
      cells.row.classList.toggle("chosen", chosen.node === one.at);
    }
    set(this.note, (found.length > most ? `and ${found.length - most} more nodes. ` : "") + "Messages: answered. Waiting: packets, phits or requests in the node's stages. Click a node to see them.");
  }
}

/// The list of events, the latest first.
class EventList {
  constructor(network, go) {
    this.network = network; this.go = go;
    const [whole, body] = table(["When", "What", "Where", "Details"]);
    this.body = body; this.shown = -1;
    document.getElementById("panel-events").append(whole, this.none = make("p", "No events yet.", "faint"));
  }
  draw() {
    const { events, generation } = this.network, key = generation + ":" + events.length;
    if (key === this.shown) return;
    this.shown = key; this.none.hidden = events.length > 0;
    this.body.replaceChildren(...events.slice(-500).reverse().map(event => {
      const kind = make("span", event.kind, "kind " + levelOf(event.kind));
      const line = row([clockOf(this.network, event.t), kind, event.node || (event.link !== undefined ? linkName(this.network, event.link) : ""), event.text]);
      line.dataset.at = event.number; line.tabIndex = 0;
      line.addEventListener("click", () => this.go(event.number, event));
      return line;
    }));
  }
}
function levelOf(kind) { return /down|silent|lost|fault|restarted/.test(kind) ? "bad" : /up|back|gone/.test(kind) ? "good" : /command|reroute|impaired/.test(kind) ? "warn" : ""; }
function clockOf(network, t) {
  const { begin_ms, per_second, unit } = network.header.clock;
  if (begin_ms !== undefined && begin_ms !== null) return new Date(begin_ms + t / per_second * 1e3).toLocaleTimeString([], { hour12: false });
  return Math.round(t).toLocaleString("en") + " " + unit;
}

/// The names of a link's virtual channels, from the input buffers at its ends, preferably a router's.
function channelNames(look, nodes) {
  const order = node => look.network.nodes[node].kind === "router" ? 0 : 1;
  for (const node of nodes.sort((a, b) => order(a) - order(b))) { const placed = look.stages(node), stage = placed && placed.stages.find(stage => stage.place === "port" && stage.channels.length > 1 && (stage.capacity || []).length); if (stage) return stage.channels; }
  return [];
}

/// The details of a link with both ends.
function linkDetail(look, link, among, actions, choose) {
  const network = look.network, found = look.link(link), panel = make("div");
  panel.append(make("h2", linkName(network, link)));
  const state = make("p"); state.append(dot(found.level), make("b", found.up ? "up" : found.silent ? "unknown" : "down"), make("span", ": " + trouble(look, found)));
  panel.append(state);
  if (among && among.length > 1) {
    const others = make("p", "Drawn as one line: ", "faint");
    for (const other of among) { const button = make("button", "link " + other); button.disabled = other === link; button.addEventListener("click", () => choose({ link: other, among })); others.append(button, " "); }
    panel.append(others);
  }
  const why = look.why(found);
  if (why && !found.silent) panel.append(make("p", why, "bad"));
  if (actions) panel.append(actions);
  const names = channelNames(look, network.links[link].map(([node]) => node)), carried = network.header.carried, two = make("div", undefined, "two");
  found.ends.forEach((end, side) => {
    const way = found.ways[side], column = make("div"), at = end.at;
    column.append(make("h3", "from " + endName(network, network.links[link][side])));
    const rows = [["state", look.state(end) || "-"], ["receive / transmit lanes", look.get(at + E.rxLanes) + " / " + look.get(at + E.txLanes)], [`${carried} sent per ${per(network)}`, short(way.rate)], ["lost", lostWords(way)], [`units resent per ${per(network)}`, short(way.resent)], ["resent, share", percent(way.share)], [`bad CRCs at the other end per ${per(network)}`, short(way.bad)], ["unacknowledged units", short(look.get(at + E.window))], ["round trip", look.get(at + E.rtt) ? span(look.get(at + E.rtt)) : "-"]];
    for (let vc = 0; vc < network.vcs; vc++) { const offer = look.get(network.end(link, 1 - side) + E.credits + network.vcs + vc) || look.get(at + E.credits + network.vcs + vc); if (offer) rows.push(["credits, " + (names[vc] || "virtual channel " + vc), short(look.get(at + E.credits + vc)) + " of " + short(offer)]); }
    rows.push(["units sent in total", short(look.get(at + E.sent))], ["units resent in total", short(look.get(at + E.resent))]);
    column.append(pairs(rows)); two.append(column);
  });
  panel.append(two, make("p", "Units: what the link resends (packets, sets or bursts). A frame may carry several.", "faint"));
  const ends = make("p", "Ends: "); for (const [node] of network.links[link]) { const button = make("button", network.nodes[node].name); button.addEventListener("click", () => choose({ node })); ends.append(button, " "); }
  panel.append(ends);
  return panel;
}
