// Checks what the live view's page shows when the two ends of a link are sampled at different moments. This is an
// expression for browser.py; its value lists the faults, and is empty if there are none. Every shown moment is checked.
(() => {
  const wrong = [], RATE = 50000, EVERY = 200, SECONDS = 40;
  const header = {
    name: "made up", summary: "", clock: { unit: "ms", per_second: 1000, begin_ms: 0 }, carried: "frames", layout: [28, 57, 8, 48],
    nodes: [{ name: "r0", kind: "router" }, { name: "nic0", kind: "nic" }], links: [[[0, 3], [1, 0]]],
  };
  let seed = 1;
  const random = () => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return seed / 2 ** 32; };
  // Frames from r0 to nic0: a share `loss` of them is lost, and the ends are sampled up to `late` ms after the moment.
  const recorded = ({ loss = () => 0, late = () => 0, begin = 0, received = null, change = () => {} }) => {
    const network = new Network(header), a = network.end(0, 0), b = network.end(0, 1), last = new Map();
    // By millisecond: the numbers of frames sent and received.
    const sent = [0], come = [0];
    for (let ms = 1; ms <= 1000 * SECONDS + 2000; ms++) { const more = ms > 1000 * begin ? RATE / 1000 : 0; sent.push(sent[ms - 1] + more); come.push(come[ms - 1] + more * (1 - loss(ms / 1000))); }
    let texts = 0;
    for (let t = 0; t <= 1000 * SECONDS; t += EVERY) {
      const asked = [t + late(), t + late()].map(Math.round), numbers = new Map();
      for (const end of [a, b]) { numbers.set(end + E.up, 1); numbers.set(end + E.rxLanes, 3); numbers.set(end + E.txLanes, 3); }
      numbers.set(network.node(0) + N.pid, 7); numbers.set(network.node(1) + N.pid, 8);
      numbers.set(a + E.carried, Math.floor(sent[asked[0]])); numbers.set(b + E.received, Math.floor(come[asked[1]]));
      const line = { t, v: [] }, text = word => { (line.s ||= []).push(word); return ++texts; };
      change(t / 1000, numbers, network, text, last);
      let place = -1;
      for (const [at, number] of [...numbers].sort((one, other) => one[0] - other[0])) { const by = number - (last.get(at) || 0); if (by) { line.v.push(at - place, by); place = at; last.set(at, number); } }
      network.add(line);
    }
    return network;
  };
  // What is shown of the link at each moment; going back must show the same again.
  const shown = (network, from, to) => {
    const look = new Snapshot(network), all = [];
    network.moments.forEach(({ t }, number) => { look.go(number); if (t >= 1000 * from && t <= 1000 * to) { const { lost, level, up, silent, ways: [{ isKnown }] } = look.link(0); all.push({ t: t / 1000, lost, isKnown, level, up, silent, words: trouble(look, look.link(0)) }); } });
    const back = network.moments.findIndex(({ t }) => t === 1000 * to), again = look.go(back).link(0).lost, other = all.find(one => one.t === to);
    if (other && again !== other.lost) wrong.push(`${other.lost} at ${to} s, and ${again} when it is come back to`);
    return all;
  };
  // Requires `holds` for all moments, or for all but a share of them.
  const demand = (name, all, holds, but = 0) => { const bad = all.filter(one => !holds(one)); if (!all.length || bad.length > but * all.length) wrong.push(`${name}: ${bad.length} of ${all.length} moments, such as ${JSON.stringify(bad[0])}`); };
  const even = most => () => most * random();
  // A busy machine, which delays one in twenty samples by up to a third of a second.
  const busy = () => random() < .05 ? 330 * random() : 40 * random();
  const mean = all => all.reduce((sum, one) => sum + one.lost, 0) / all.length;

  for (const [name, late] of [["idle", () => 0], ["asked up to 40 ms apart", even(40)], ["busy", busy]]) {
    demand(`nothing is lost, ${name}`, shown(recorded({ late }), 0, SECONDS), one => one.lost === 0 && one.level === "good");
    demand(`traffic that begins, ${name}`, shown(recorded({ late, begin: 15 }), 0, SECONDS), one => one.lost === 0 && one.level === "good");
    demand(`and that is known, ${name}`, shown(recorded({ late }), 9, SECONDS), one => one.isKnown);
    const lossy = shown(recorded({ late, loss: () => .03 }), 9, SECONDS);
    demand(`3 % are lost, ${name}`, lossy, one => one.lost > .015 && one.lost < .045 && one.level === "warn");
    if (Math.abs(mean(lossy) - .03) > .001) wrong.push(`3 % are lost, ${name}: ${mean(lossy)} on average`);
    const later = recorded({ late, loss: second => second > 20 ? .03 : 0 });
    demand(`before it begins, ${name}`, shown(later, 0, 20), one => one.lost === 0);
    demand(`six seconds after it has begun, ${name}`, shown(later, 26, SECONDS), one => one.level === "warn", .05);
    const ended = recorded({ late, loss: second => second < 20 ? .03 : 0 });
    demand(`8 s after it has ended, ${name}`, shown(ended, 28.2, SECONDS), one => one.lost === 0);
  }
  demand("without traffic nothing is known", shown(recorded({ begin: SECONDS }), 0, SECONDS), one => !one.isKnown && one.lost === 0);
  demand("nor from samples that scatter too much", shown(recorded({ loss: () => .2, late: even(1900) }), 9, SECONDS), one => !one.isKnown || one.lost > 0);
  // Counters of a restarted process, even if it has counted more by now than the previous one.
  const restarted = recorded({ change: (second, numbers, network) => { if (second >= 20) { numbers.set(network.node(1) + N.pid, 9); numbers.set(network.end(0, 1) + E.received, (second - 20) * RATE + (second > 21 ? 19 * RATE : 0)); } } });
  demand("a receiver that was started again", shown(restarted, 20, 27.8), one => one.lost === 0 && !one.isKnown);
  // A node that does not answer: its last known values stay, and frames are still sent to it.
  const silence = says => recorded({ change: (second, numbers, network, text, last) => {
    if (second < 10 || second >= 20) return;
    const b = network.end(0, 1);
    numbers.set(b + E.up, 0); numbers.set(b + E.received, last.get(b + E.received)); numbers.set(network.node(1) + N.silent, last.get(network.node(1) + N.silent) || text("it does not answer"));
    says(second, numbers, network, text, last);
  } });
  for (const [name, state, why] of [["its peer has nothing to complain of", null], ["its peer hears nothing", "silent"], ["its peer hears nothing and trains", "training", "the other end is silent"]]) {
    let word = 0, reason = 0;
    const network = silence((second, numbers, network, text) => { if (state && second >= 12) { const a = network.end(0, 0); word ||= text(state); reason ||= why ? text(why) : 0; numbers.set(a + E.up, 0); numbers.set(a + E.state, word); numbers.set(a + E.why, reason); } });
    demand(`silent, ${name}`, shown(network, 10, 19.8), one => one.silent && one.level === "off" && one.lost === 0 && one.words === "nic0 does not answer");
    demand(`and when it answers again, ${name}`, shown(network, 0, 9.8), one => one.up && !one.silent && one.lost === 0);
  }
  const down = silence((second, numbers, network, text, last) => { const a = network.end(0, 0); numbers.set(a + E.up, 0); numbers.set(a + E.state, last.get(a + E.state) || text("training")); });
  demand("down, as its peer knows", shown(down, 10, 19.8), one => !one.silent && one.level === "bad" && one.words === "training");
  return wrong;
})()
