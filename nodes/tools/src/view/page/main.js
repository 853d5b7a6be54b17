// Fetches the data, keeps the selection, and draws the page.

const config = JSON.parse(document.getElementById("config").textContent);
const state = { chosen: {}, tab: "links", frames: 0, drawn: 0, errors: [], ready: false };
/// The state of the page, for tests.
window.phitwire = state;
window.addEventListener("error", event => state.errors.push(String(event.message)));
window.addEventListener("unhandledrejection", event => state.errors.push(String(event.reason)));

const query = location.search;
const at = (path, more) => path + (query ? query + (more ? "&" + more : "") : more ? "?" + more : "");
async function ask(path, more, options) {
  const answer = await fetch(at(path, more), options);
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer;
}
function notice(text) { const place = document.getElementById("notice"); place.textContent = text; place.hidden = false; clearTimeout(notice.timer); notice.timer = setTimeout(() => { place.hidden = true; }, 6000); }
function fatal(text) { document.getElementById("canvas").textContent = text; state.failed = text; }

function begin(header, actions, secret) {
  const network = new Network(header), live = config.mode === "live";
  document.getElementById("title").textContent = header.name;
  document.getElementById("summary").textContent = header.summary;
  const look = new Snapshot(network), time = new TimeLine(network, live);
  const choose = chosen => { state.chosen = chosen; state.tab = "detail"; dirty(); };
  const picture = new Picture(network, choose), links = new LinkList(network, choose), nodes = new NodeList(network, choose);
  const events = new EventList(network, (number, event) => { time.go(number); if (event.link !== undefined) state.chosen = { link: event.link }; else if (event.node) state.chosen = { node: network.byName.get(event.node) }; dirty(); });
  legend(network);
  let shownKey = "", dueAt = 0, panelsAt = 0, all = [];
  const dirty = () => { shownKey = ""; panelsAt = 0; dueAt = 0; };
  for (const button of document.querySelectorAll("[data-tab]")) button.addEventListener("click", () => { state.tab = button.dataset.tab; dirty(); });
  Object.assign(state, { network, look, time, choose });

  const act = async (act, question, warning) => {
    if (!await confirmed(question, warning)) return;
    try { const done = await (await ask("/api/act", "", { method: "POST", headers: { "Content-Type": "application/json", "X-Phitwire-Secret": secret }, body: JSON.stringify(act) })).json(); notice("Done: " + done.done); }
    catch (error) { notice("Failed: " + error.message); }
  };
  const actionsOf = link => {
    if (!live || !actions) return null;
    const box = make("div"), ends = network.links[link], name = linkName(network, link), first = make("div", undefined, "acts");
    const [node, port] = ends[0], own = network.nodes[node].name;
    const button = (text, kind, does) => { const made = make("button", text, kind); made.addEventListener("click", does); return made; };
    const fault = (kind, more) => ({ act: "fault", node: own, link, fault: { kind, port, ...more } });
    // Bring up the end that was taken down.
    const restore = () => { const side = [0, 1].find(side => look.state({ at: network.end(link, side) }) === "disabled") || 0, [node, port] = ends[side]; return { act: "fault", node: network.nodes[node].name, link, fault: { kind: "link-up", port } }; };
    first.append(
      button("Cut\u2026", "danger", () => act(fault("link-down"), `Take the link ${name} down?`, "Its packets are lost or rerouted until the link is restored.")),
      button("Restore\u2026", "", () => act(restore(), `Bring the link ${name} up?`, "The link is initialised again.")),
      button("Force retry\u2026", "", () => act(fault("force-retry"), `Make ${own}:${port} resend everything unacknowledged?`, "")),
      button("Lane noise\u2026", "danger", () => act(fault("lane-noise", { lane: 0, rate: "1/20000" }), `Flip bits on transmit lane 0 of ${own}:${port}?`, "1 in 20,000, until you end the noise. A lane with too many errors is disabled.")),
      button("End noise\u2026", "", () => act(fault("lane-noise", { lane: 0, rate: "0" }), `End the noise at ${own}:${port}?`, "")));
    box.append(first);
    const wires = make("div", undefined, "acts"), words = make("input"); words.value = "loss 3%"; words.setAttribute("aria-label", actions.wires === "nft" ? "Share of frames to lose: loss P%" : "Impairment, in the words of netem");
    const by = actions.wires === "nft" ? "nftables (loss P% only)" : "netem";
    const impair = button(actions.wires === "nft" ? "Lose frames\u2026" : "Impair wires\u2026", "danger", () => act({ act: "impair", link, netem: words.value }, `Impair the wires of ${name}: ${words.value}?`, `Both directions, with the kernel's ${by}, until cleared.`));
    const clear = button("Clear wires\u2026", "", () => act({ act: "impair", link, netem: "" }, `Clear the wires of ${name}?`, ""));
    if (!actions.wires) impair.disabled = clear.disabled = words.disabled = true;
    wires.append(words, impair, clear); box.append(wires);
    if (actions.why_not) box.append(make("p", (actions.wires ? actions.why_not[0].toUpperCase() + actions.why_not.slice(1) : "Cannot impair wires: " + actions.why_not) + ".", "faint"));
    return box;
  };
  const countersOf = node => {
    if (!live) return null;
    const box = make("details"), head = make("summary", "All counters"), body = make("div"); box.append(head, body);
    box.addEventListener("toggle", async () => {
      if (!box.open) return;
      try { const counters = await (await ask("/api/counters", "node=" + encodeURIComponent(network.nodes[node].name))).json(); body.replaceChildren(pairs(Object.entries(counters).filter(([, value]) => value).map(([name, value]) => [name, [String(value), "num"]]))); }
      catch (error) { body.textContent = error.message; }
    });
    return box;
  };

  let kept = null;
  const detail = () => {
    const panel = document.getElementById("panel-detail"), { link, node, nodes: several, among } = state.chosen, key = JSON.stringify(state.chosen);
    // Keep the elements in which the user may be typing or reading.
    if (!kept || kept.key !== key) kept = { key, actions: link !== undefined ? actionsOf(link) : null, counters: node !== undefined ? countersOf(node) : null };
    const top = panel.scrollTop, typed = document.activeElement, inside = kept.actions && kept.actions.contains(typed);
    if (link !== undefined) {
      const made = linkDetail(look, link, among, null, choose);
      if (kept.actions) made.insertBefore(kept.actions, made.querySelector(".two"));
      panel.replaceChildren(made);
      if (inside) typed.focus();
    } else if (node !== undefined) panel.replaceChildren(nodeDetail(look, node, choose, kept.counters));
    else if (several) {
      const made = make("div"); made.append(make("h2", several.length + " nodes drawn as one"));
      for (const one of several) { const button = make("button", network.nodes[one].name); button.addEventListener("click", () => choose({ node: one })); made.append(button, " "); }
      panel.replaceChildren(made);
    }
    panel.scrollTop = top;
  };

  const draw = (number, now) => {
    look.go(number);
    for (let link = 0; link < network.links.length; link++) all[link] = look.link(link);
    picture.draw(look, all, state.chosen);
    state.drawn++; state.all = all;
    // Update the lists less often: nobody can read faster changes.
    if (now < panelsAt) return;
    panelsAt = now + 190;
    const chosenTab = document.querySelector('[data-tab="detail"]'); chosenTab.hidden = Object.keys(state.chosen).length === 0;
    if (state.chosen.link !== undefined) set(chosenTab, "Link"); else set(chosenTab, state.chosen.node !== undefined ? network.nodes[state.chosen.node].name : "Selected");
    for (const button of document.querySelectorAll("[data-tab]")) button.setAttribute("aria-selected", String(button.dataset.tab === state.tab));
    for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.id !== "panel-" + state.tab;
    if (state.tab === "links") links.draw(look, all, state.chosen); else if (state.tab === "nodes") nodes.draw(look, state.chosen); else if (state.tab === "events") events.draw(); else detail();
    const count = level => all.filter(found => found.level === level).length, bad = count("bad"), warn = count("warn"), again = count("again");
    const silent = network.nodes.filter((_, at) => look.get(network.node(at) + N.silent) > 0).length;
    const words = [bad && `${bad} down`, warn && `${warn} in trouble`, silent && `${silent} ${silent === 1 ? "node" : "nodes"} silent`, again && `${again} only resending`].filter(Boolean).join(", ");
    const verdict = document.getElementById("verdict"); set(verdict, words || "all links healthy"); verdict.className = bad || silent ? "bad" : warn ? "warn" : again ? "again" : "good";
  };
  const frame = now => {
    state.frames++;
    if (state.onFrame) state.onFrame(now);
    const number = time.advance(now);
    if (number >= 0) {
      const key = `${network.generation}:${number}:${network.moments.length - 1 === number}`;
      if (key !== shownKey && now >= dueAt) {
        shownKey = key;
        const begun = performance.now();
        draw(number, now);
        // A page that cannot keep up skips moments, so that it stays responsive.
        dueAt = now + Math.min(250, 1.5 * (performance.now() - begun));
      }
      time.draw();
      state.ready = true;
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  return { network, dirty };
}

function confirmed(question, warning) {
  const dialog = document.getElementById("confirm");
  document.getElementById("question").textContent = question; document.getElementById("warning").textContent = warning;
  dialog.returnValue = "no"; dialog.showModal();
  return new Promise(done => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

function takeLines(text) {
  let begun = null;
  for (const line of text.split("\n")) {
    if (!line) continue;
    const parsed = JSON.parse(line);
    if (!begun) begun = begin(parsed, null, ""); else begun.network.add(parsed);
  }
  if (!begun || !begun.network.moments.length) return fatal("The recording is empty.");
  state.time.go(telling(begun.network));
  begun.dirty();
}

/// The moment at which a recording opens: the first with trouble, otherwise the busiest. Of a long recording only some
/// moments are examined, then those before the first with trouble. While no node answers, the machine that recorded was
/// overloaded or the lab was being taken down: such a moment is shown only if nothing else is wrong.
function telling(network) {
  const look = new Snapshot(network), last = network.moments.length - 1, step = Math.max(1, Math.ceil(last / 60)), isSim = network.header.source === "sim";
  const isWrong = ({ level }) => level !== "good" && (isSim || level !== "again");
  const isSilent = () => network.nodes.every((_, at) => look.get(network.node(at) + N.silent) > 0);
  const judge = number => { look.go(number); let carried = 0, wrong = false; for (let link = 0; link < network.links.length; link++) { const found = look.link(link); carried += found.rate; wrong ||= isWrong(found); } return { carried, wrong: wrong && !isSilent() }; };
  let busiest = 0, most = -1, silent = -1;
  for (let number = 0; ; number = Math.min(number + step, last)) {
    const { carried, wrong } = judge(number);
    if (wrong) { for (let before = Math.max(0, number - step + 1); before < number; before++) if (judge(before).wrong) return before; return number; }
    if (carried > most) { most = carried; busiest = number; }
    if (silent < 0 && isSilent()) silent = number;
    if (number === last) return silent < 0 ? busiest : silent;
  }
}

async function unpacked() {
  const letters = atob(document.getElementById("data").textContent.trim()), bytes = Uint8Array.from(letters, letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function follow() {
  const { header, actions, secret } = await (await ask("/api/header")).json();
  const { network, dirty } = begin(header, actions, secret), sign = document.getElementById("link-state");
  let next = 0, missed = 0;
  for (;;) {
    try {
      const answer = await (await ask("/api/lines", "from=" + next)).json();
      // Another `phitwire view` at this address, perhaps of a new lab.
      if ((missed > 0 || answer.reset && next > 0) && (await (await ask("/api/header")).json()).secret !== secret) return location.reload();
      if (answer.reset && next > 0) { network.clear(); state.look.reset(); state.time.number = 0; }
      for (const line of answer.lines) network.add(line);
      next = answer.next; missed = 0;
      if (answer.lines.length) dirty();
      set(sign, answer.over || "\u25cf live"); sign.className = answer.over ? "bad" : "good";
      if (answer.next < answer.end) continue;
      if (network.stopKeeping) { network.stopKeeping = false; next = 0; }
    } catch (error) {
      if (++missed > 2) { set(sign, "no answer: " + error.message); sign.className = "bad"; }
    }
    await new Promise(done => setTimeout(done, config.interval || 200));
  }
}

(async () => {
  try {
    if (config.mode === "live") await follow();
    else takeLines(config.mode === "file" ? await (await ask("/api/recording")).text() : await unpacked());
  } catch (error) { state.errors.push(String(error)); fatal("Cannot show the data: " + error.message); }
})();
