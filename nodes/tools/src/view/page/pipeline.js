// The details of a node: its stages in order, and its traffic.

/// The total content of a node's own stages.
function heldOf(look, node) {
  const placed = look.stages(node);
  if (!placed) return 0;
  let at = placed.at, sum = 0;
  for (const stage of placed.stages) {
    at++;
    const numbers = stage.places.length * stage.channels.length;
    for (let i = 0; i < numbers; i++) if (stage.inside) sum += look.get(at + i);
    at += numbers;
  }
  return sum;
}

/// The declared stages of a node, with their content at this moment.
function stagesOf(look, node) {
  const placed = look.stages(node);
  if (!placed) return [];
  let at = placed.at;
  return placed.stages.map(stage => {
    const stalls = stage.stalls === undefined || stage.stalls === null ? null : look.rate(at);
    const first = ++at, channels = stage.channels.length;
    const sums = stage.channels.map(() => 0), places = stage.places.map((place, number) => {
      let held = 0;
      for (let vc = 0; vc < channels; vc++) { const one = look.get(first + number * channels + vc); sums[vc] += one; held += one; }
      return { number: place.number, held };
    });
    at += places.length * channels;
    const room = (stage.capacity || []).map(each => each * places.length);
    return { stage, stalls, sums, room, places, each: (stage.capacity || []).reduce((a, b) => a + b, 0) };
  });
}

/// The used share of a capacity; nothing if there is no limit.
function bar(held, room) {
  if (!(room > 0)) return make("span");
  const bar = make("span", undefined, "bar"), fill = make("i"), share = held / room;
  fill.style.width = Math.min(100, 100 * share).toFixed(1) + "%"; if (share > .85) fill.className = "full";
  bar.append(fill); return bar;
}

/// The positions of a stage as a grid: tiles and subswitches as on the chip, eight per row.
function fieldOf({ stage, places, each }) {
  const grid = make("div", undefined, "grid"), tiled = /tile|subswitch/.test(stage.place), across = tiled ? 8 : Math.min(16, Math.max(8, places.length));
  grid.style.gridTemplateColumns = `repeat(${across}, 1fr)`;
  const most = Math.max(1, ...places.map(place => place.held));
  const cells = tiled ? new Map(places.map(place => [place.number, place])) : null;
  const last = tiled ? Math.ceil((Math.max(...places.map(place => place.number)) + 1) / 8) * 8 : 0;
  const used = number => Array.from({ length: 8 }, (_, i) => (number & ~7) + i).some(one => cells.has(one));
  const all = tiled ? Array.from({ length: last }, (_, number) => cells.get(number) || { number, held: null }).filter(place => used(place.number)) : places;
  for (const place of all) {
    const cell = make("span", place.held === null ? "" : String(place.number));
    if (place.held !== null) {
      const share = place.held / (each || most);
      if (place.held > 0) { cell.style.background = each && share > .85 ? "var(--warn)" : `color-mix(in srgb, var(--u3) ${(20 + 80 * Math.min(1, Math.sqrt(share))).toFixed(0)}%, transparent)`; cell.style.color = "var(--ink)"; }
      cell.title = `${stage.place} ${place.number}: ${place.held} ${stage.unit}` + (each ? ` of ${each}` : "");
    } else cell.style.visibility = "hidden";
    grid.append(cell);
  }
  return grid;
}

function stageCards(look, node) {
  const cards = [], found = stagesOf(look, node);
  found.forEach((one, number) => {
    const { stage, stalls, sums, room, places } = one, card = make("div", undefined, "stage"), head = make("div", undefined, "head");
    const sum = sums.reduce((a, b) => a + b, 0);
    head.append(make("b", stage.name), make("span", `${short(sum)} ${stage.unit}`, "faint"), make("span", "", "space"));
    if (stalls !== null) head.append(make("span", short(stalls) + " stalls/" + per(look.network), stalls > 0 ? "warn" : "faint"));
    card.append(head);
    stage.channels.forEach((name, vc) => {
      const line = make("div", undefined, "vc");
      line.append(make("span", name), bar(sums[vc], room[vc] || 0), make("span", short(sums[vc]) + (room[vc] ? " of " + short(room[vc]) : ""), "num faint"));
      card.append(line);
    });
    if (places.length > 1) card.append(make("div", `${places.length} ${/ch$|sh$|s$/.test(stage.place) ? stage.place + "es" : stage.place + "s"}`, "faint"), fieldOf(one));
    if (number > 0) cards.push(make("div", "\u25bc", "arrow"));
    cards.push(card);
  });
  return cards;
}

function latencies(look, node) {
  const base = look.network.node(node) + N.latencies, counts = [];
  for (let i = 0; i < look.network.buckets; i++) counts.push(look.grown(base + i));
  const sum = counts.reduce((a, b) => a + b, 0);
  if (!sum) return null;
  const top = i => 256 * 2 ** (i / 2), quantile = share => { let seen = 0; for (let i = 0; i < counts.length; i++) { seen += counts[i]; if (seen >= share * sum) return top(i); } return top(counts.length - 1); };
  let first = counts.findIndex(Boolean), last = counts.length - 1; while (!counts[last]) last--;
  first = Math.max(0, first - 1); last = Math.min(counts.length - 1, last + 1);
  const box = make("div"), hist = make("div", undefined, "hist"), most = Math.max(...counts);
  for (let i = first; i <= last; i++) { const column = make("i"); column.style.height = (100 * counts[i] / most).toFixed(1) + "%"; column.title = `up to ${span(top(i))}: ${short(counts[i])} messages`; hist.append(column); }
  const scale = make("div", undefined, "scale"); scale.append(make("span", span(top(first))), make("span", span(top(Math.floor((first + last) / 2)))), make("span", span(top(last))));
  box.append(make("h3", `Latency of the last ${LONG} s`), hist, scale, pairs([["messages", [short(sum), "num"]], ["half of them within", [span(quantile(.5)), "num"]], ["99 of 100 within", [span(quantile(.99)), "num"]], ["all within", [span(quantile(1)), "num"]]]));
  return box;
}

/// The details of a node.
function nodeDetail(look, node, choose, counters) {
  const network = look.network, { name, kind } = network.nodes[node], base = network.node(node), panel = make("div"), silent = look.text(base + N.silent);
  const title = make("h2"); title.append(dot(silent ? "bad" : "good"), make("span", name), make("span", "  " + kind + (look.get(base + N.pid) ? ", process " + look.get(base + N.pid) : ""), "faint"));
  panel.append(title);
  if (silent) panel.append(make("p", silent, "bad"));
  const traffic = [];
  if (look.get(base + N.run)) traffic.push(["messages answered per second", [short(look.rate(base + N.answered)), "num"]], ["messages sent per second", [short(look.rate(base + N.sent)), "num"]], ["outstanding", [short(look.get(base + N.outstanding)), "num"]], ["timed out in this run", [short(look.get(base + N.timedOut)), "num"]]);
  if (look.get(base + N.bytesSent)) traffic.push(["bytes of frames sent per second", [short(look.rate(base + N.bytesSent)), "num"]], ["bytes of frames received per second", [short(look.rate(base + N.bytesReceived)), "num"]]);
  if (traffic.length) panel.append(make("h3", "Traffic"), pairs(traffic));
  const latency = latencies(look, node); if (latency) panel.append(latency);
  const cards = stageCards(look, node);
  panel.append(make("h3", kind === "router" ? "Pipeline, from input to output" : "Stages, from request to link"));
  if (cards.length) panel.append(...cards); else panel.append(make("p", "The node reported no stages.", "faint"));
  panel.append(make("h3", "Links"));
  const [whole, body] = table(["Port", "To", "State", ["sent", "num"], ["received", "num"]]);
  for (const { link, side, port } of network.linksOf[node]) {
    const found = look.link(link), state = make("span"); state.append(dot(found.level), make("span", trouble(look, found)));
    const line = row([String(port), endName(network, network.links[link][1 - side]), state, [short(found.ways[side].rate), "num"], [short(found.ways[1 - side].rate), "num"]]);
    line.dataset.link = link; line.addEventListener("click", () => choose({ link })); body.append(line);
  }
  panel.append(whole);
  if (counters) panel.append(counters);
  return panel;
}
