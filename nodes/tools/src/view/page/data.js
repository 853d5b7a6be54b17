// The data format: a header, then lines of changes (see the module `recording` of the sources). All numbers of a moment
// are one array, and moments can be stepped through in both directions.

const E = { state: 0, up: 1, rxLanes: 2, txLanes: 3, carried: 4, received: 5, sent: 6, resent: 7, bad: 8, window: 9, rtt: 10, why: 11, credits: 12 };
const N = { silent: 0, pid: 1, bytesSent: 2, bytesReceived: 3, run: 4, sent: 5, answered: 6, timedOut: 7, outstanding: 8, latencies: 9 };
/// Interval, in moments, at which all numbers are kept.
const KEEP = 64;
/// Maximum number of moments that an open page keeps: an hour at five per second.
const MOST_MOMENTS = 18000;

class Network {
  constructor(header) {
    this.header = header;
    [this.endFields, this.nodeFields, this.vcs, this.buckets] = header.layout;
    this.links = header.links; this.nodes = header.nodes;
    this.nodeBase = 2 * header.links.length * this.endFields;
    this.size = this.nodeBase + header.nodes.length * this.nodeFields;
    this.byName = new Map(header.nodes.map((node, at) => [node.name, at]));
    this.linksOf = header.nodes.map(() => []);
    header.links.forEach((ends, link) => ends.forEach(([node, port], side) => this.linksOf[node].push({ link, side, port })));
    this.clear();
  }
  /// Drops all moments.
  clear() {
    this.moments = []; this.texts = [""]; this.stages = this.nodes.map(() => []);
    this.events = []; this.whole = new Map(); this.length = this.size; this.latest = null; this.generation = (this.generation || 0) + 1;
  }
  end(link, side) { return (2 * link + side) * this.endFields; }
  node(at) { return this.nodeBase + at * this.nodeFields; }
  /// Adds a line.
  add(line) {
    for (const text of line.s || []) this.texts.push(text);
    for (const placed of line.p || []) {
      this.stages[placed.node].push({ from: this.moments.length, at: placed.at, stages: placed.stages });
      for (const stage of placed.stages) this.length += 1 + stage.places.length * stage.channels.length;
    }
    const pairs = line.v || [], count = pairs.length / 2, at = new Uint32Array(count), by = new Float64Array(count);
    let place = -1;
    for (let i = 0; i < count; i++) { place += pairs[2 * i]; at[i] = place; by[i] = pairs[2 * i + 1]; }
    const number = this.moments.length;
    this.moments.push({ t: line.t, at, by });
    for (const event of line.e || []) this.events.push({ ...event, link: event.link < this.links.length ? event.link : undefined, t: line.t, number });
    if (!this.latest) this.latest = new Cursor(this);
    if (number % KEEP === 0) { this.latest.go(number); this.whole.set(number, this.latest.numbers.slice(0, this.length)); }
    if (this.moments.length > MOST_MOMENTS) this.stopKeeping = true;
  }
  /// The latest moment at or before a time.
  at(t) {
    let low = 0, high = this.moments.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (this.moments[middle].t <= t) low = middle; else high = middle - 1; }
    return low;
  }
}

/// All numbers at one moment. The cursor can be moved to any other moment.
class Cursor {
  constructor(network) { this.network = network; this.numbers = new Float64Array(network.length); this.number = -1; }
  room() {
    if (this.numbers.length >= this.network.length) return;
    const more = new Float64Array(Math.ceil(this.network.length * 1.2)); more.set(this.numbers); this.numbers = more;
  }
  go(number) {
    const { moments, whole } = this.network;
    this.room();
    if (Math.abs(number - this.number) > KEEP) {
      const kept = Math.floor(number / KEEP) * KEEP, numbers = whole.get(kept);
      if (numbers) { this.numbers.fill(0); this.numbers.set(numbers); this.number = kept; }
    }
    for (; this.number < number; this.number++) { const { at, by } = moments[this.number + 1]; for (let i = 0; i < at.length; i++) this.numbers[at[i]] += by[i]; }
    for (; this.number > number; this.number--) { const { at, by } = moments[this.number]; for (let i = 0; i < at.length; i++) this.numbers[at[i]] -= by[i]; }
    return this;
  }
}

/// Counts of the link ends at several moments, from which losses are estimated. The ends are not sampled at the same
/// instant: on a busy machine, the counts of sent and received units may be a tenth of a second apart, in either
/// direction. So the median of several moments is used.
class Window {
  constructor(network) { this.network = network; this.cursor = new Cursor(network); this.kept = new Map(); this.rows = []; this.most = new Float64Array(MOST_TAKEN + 1); }
  /// For each direction, the units that the sender had sent but the receiver had not received yet; NaN if an end is
  /// silent.
  row(number) {
    let row = this.kept.get(number);
    if (row) return row;
    const { network } = this, { numbers } = this.cursor.go(number);
    row = { missing: new Float64Array(2 * network.links.length), carried: new Float64Array(2 * network.links.length) };
    network.links.forEach((ends, link) => {
      const at = [network.end(link, 0), network.end(link, 1)], isSilent = ends.some(([node]) => numbers[network.node(node) + N.silent] > 0);
      for (let side = 0; side < 2; side++) {
        const carried = numbers[at[side] + E.carried];
        row.carried[2 * link + side] = carried; row.missing[2 * link + side] = isSilent ? NaN : carried - numbers[at[1 - side] + E.received];
      }
    });
    if (this.kept.size > 2 * MOST_TAKEN) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(number, row);
    return row;
  }
  /// Selects moments between two numbers, at most MOST_TAKEN. They are multiples of a step, so that the same ones are
  /// selected again as time goes on.
  go(first, last) {
    let step = 1;
    while ((last - first) / step >= MOST_TAKEN) step *= 2;
    this.rows.length = 0;
    for (let at = Math.ceil(first / step) * step; at <= last; at += step) this.rows.push(this.row(at));
  }
  /// Sorts the missing units of a direction at these moments. Returns how many are known.
  sort(way) {
    const { most } = this; let count = 0;
    for (const { missing } of this.rows) {
      const value = missing[way]; if (value !== value) continue;
      let at = count++; while (at > 0 && most[at - 1] > value) { most[at] = most[at - 1]; at--; }
      most[at] = value;
    }
    return count;
  }
  /// The units that the sender had sent at the middle one of these moments.
  carried(way) { return this.rows[this.rows.length >> 1].carried[way]; }
}
/// The units that a direction lost from one window to another: the difference of their medians, and whether that clearly
/// exceeds the spread within the windows.
function losses(far, near, way) {
  const before = far.sort(way), after = near.sort(way);
  if (before < 3 || after < 3) return [0, false];
  // The standard error of this difference, from half the interquartile ranges, for normally distributed values.
  const half = ({ most }, count) => (most[count - 1 - (count >> 2)] - most[count >> 2]) / 2;
  const off = 1.86 * Math.sqrt(1 / before + 1 / after) * (half(far, before) + half(near, after)) / 2;
  const missing = near.most[after >> 1] - far.most[before >> 1];
  return [missing, missing > SURE * off];
}

/// The state of the network at a moment, compared with that some time before.
class Snapshot {
  constructor(network) { this.network = network; this.moment = 0; this.reset(); }
  /// Drops everything kept about moments.
  reset() {
    const { network } = this;
    this.now = new Cursor(network); this.before = new Cursor(network); this.far = new Cursor(network); this.found = [];
    this.oldest = new Window(network); this.latest = new Window(network); this.compares = false;
  }
  /// Chooses the windows between which losses are estimated: at both ends of the last seconds, with at least three
  /// moments each.
  windows() {
    const { moments, header } = this.network, second = header.clock.per_second, { number, t } = this;
    const span = Math.min(LONG * second, t - moments[0].t), wide = span * WIDE / LONG, after = time => { const at = this.network.at(time); return moments[at].t < time ? at + 1 : at; };
    const first = after(t - span), to = Math.max(this.network.at(t - span + wide), first + 2), from = Math.min(after(t - wide), number - 2);
    this.compares = span > 0 && to < from;
    if (this.compares) { this.oldest.go(first, to); this.latest.go(from, number); this.hasty = HASTY * second / 1e3; }
  }
  go(number) {
    const { moments, header } = this.network, second = header.clock.per_second, t = moments[number].t;
    const back = span => { let at = this.network.at(t - span * second); return at === number ? Math.max(0, number - 1) : at; };
    this.number = number; this.t = t;
    this.now.go(number); this.moment++;
    const before = back(SHORT), far = back(LONG);
    this.before.go(before); this.far.go(far);
    // A lab's clock counts milliseconds, that of a simulation cycles: rates are per thousand of either.
    this.seconds = Math.max(t - moments[before].t, 0) / 1e3;
    this.windows();
    return this;
  }
  get(at) { return this.now.numbers[at] || 0; }
  text(at) { return this.network.texts[this.get(at)] || ""; }
  /// The growth of a counter per second; zero if the counter restarted.
  rate(at) { const grown = this.get(at) - (this.before.numbers[at] || 0); return grown > 0 && this.seconds > 0 ? grown / this.seconds : 0; }
  grown(at) { return Math.max(0, this.get(at) - (this.far.numbers[at] || 0)); }
  stages(node) { let found = null; for (const placed of this.network.stages[node]) if (placed.from <= this.number) found = placed; return found; }

  /// The share of units that a direction loses; zero if none is certain; NaN if that says nothing: after a process at one
  /// of its ends was restarted, among few units, or if many are missing but the samples scatter as widely.
  lost(number, rate, from, to) {
    const now = this.now.numbers, far = this.far.numbers, { network } = this, side = number % 2;
    const ends = network.links[(number - side) / 2], isSame = ends.every(([node]) => now[network.node(node) + N.pid] === far[network.node(node) + N.pid]);
    if (!this.compares || !isSame || now[from + E.carried] < far[from + E.carried] || now[to + E.received] < far[to + E.received]) return NaN;
    const carried = this.latest.carried(number) - this.oldest.carried(number);
    if (!(carried >= 100)) return NaN;
    const [missing, isSure] = losses(this.oldest, this.latest, number);
    // Require more than what may be in flight: if traffic began within the window, nothing was in flight before.
    if (isSure && missing >= FEW && missing >= this.hasty * rate && missing >= .002 * carried) return missing / carried;
    return missing >= MANY * carried ? NaN : 0;
  }
  /// One direction of a link: what its sender sent and its receiver received.
  direction(way, number, from, to) {
    const now = this.now.numbers, before = this.before.numbers, far = this.far.numbers, seconds = this.seconds;
    const grown = at => { const by = now[at] - far[at]; return by > 0 ? by : 0; };
    const rate = at => { const by = now[at] - before[at]; return by > 0 && seconds > 0 ? by / seconds : 0; };
    const sent = grown(from + E.sent), again = grown(from + E.resent);
    way.rate = rate(from + E.carried); const lost = this.lost(number, way.rate, from, to); way.lost = lost || 0; way.isKnown = lost === lost;
    way.resent = rate(from + E.resent); way.share = sent + again > 20 ? again / (sent + again) : 0;
    way.bad = rate(to + E.bad); way.badGrown = grown(to + E.bad);
  }
  /// A link: both directions, and the severity of its trouble. The result is kept until the next moment.
  link(link) {
    const found = this.found[link] || (this.found[link] = { link, moment: null, most: 0, ends: [{}, {}], ways: [{}, {}], carried: this.network.header.carried, per: per(this.network) });
    if (found.moment === this.moment) return found;
    found.moment = this.moment;
    const now = this.now.numbers, [a, b] = found.ends, [to, back] = found.ways;
    a.at = this.network.end(link, 0); b.at = a.at + this.network.endFields;
    for (const end of found.ends) {
      const at = end.at, received = now[at + E.rxLanes], sent = now[at + E.txLanes];
      end.up = now[at + E.up] > 0; end.silent = now[this.network.node(this.network.links[link][end === a ? 0 : 1][0]) + N.silent] > 0; end.lanes = received < sent ? received : sent;
      // The largest number of lanes so far.
      if (received > found.most) found.most = received;
      if (sent > found.most) found.most = sent;
    }
    this.direction(to, 2 * link, a.at, b.at); this.direction(back, 2 * link + 1, b.at, a.at);
    const worst = (x, y) => x > y ? x : y;
    // The state of an end is unknown if its node does not answer. Then its peer's report means that the link is down
    // only if it says more than that nothing is heard.
    const isDown = (end, other) => !end.silent && !end.up && !(other.silent && this.hearsNothing(end));
    found.up = a.up && b.up; found.silent = (a.silent || b.silent) && !isDown(a, b) && !isDown(b, a); found.lanes = a.lanes < b.lanes ? a.lanes : b.lanes; found.fewer = found.up && found.lanes < found.most;
    found.rate = to.rate + back.rate; found.busiest = worst(to.rate, back.rate); found.lost = worst(to.lost, back.lost); found.share = worst(to.share, back.share);
    found.resent = worst(to.resent, back.resent); found.bad = worst(to.bad, back.bad); found.badGrown = worst(to.badGrown, back.badGrown);
    found.score = (found.up ? 0 : found.silent ? 9e5 : 1e6) + (found.fewer ? 1e4 * (found.most - found.lanes) : 0) + (found.lost >= LOSSES ? 2e3 : 0) + 1e4 * found.lost + (found.badGrown > 2 ? 1100 : 0) + 2e3 * Math.min(found.share, .5);
    found.level = found.silent ? "off" : !found.up ? "bad" : found.fewer || found.lost >= LOSSES || found.badGrown > 2 ? "warn" : found.share >= REPEATS ? "again" : "good";
    return found;
  }
  /// The state of an end.
  state(end) { return this.text(end.at + E.state); }
  /// Whether an end knows no more than that its peer is silent: `LinkReport::hears_nothing` in nodes/src/control.
  hearsNothing(end) { return this.state(end) === "silent" || this.text(end.at + E.why) === "the other end is silent"; }
  /// The end that knows most about a link that is not up.
  witness(found) { return found.ends.find(end => !end.up && !end.silent) || found.ends.find(end => !end.up); }
  /// The reason why a link is not up, with the end that gives it.
  why(found) {
    const end = this.witness(found), why = end && this.text(end.at + E.why);
    return why ? endName(this.network, this.network.links[found.link][found.ends.indexOf(end)]) + ": " + why : "";
  }
}
/// The unit of time of rates.
function per(network) { return network.header.clock.unit === "ms" ? "s" : "1,000 " + network.header.clock.unit; }
/// Seconds over which rates are computed, seconds over which losses are, length of the windows at both ends of the
/// latter, and maximum number of moments per window.
const SHORT = 1, LONG = 8, WIDE = LONG / 3, MOST_TAKEN = 16;
/// Seconds that may pass between sampling the two ends of a link on a busy machine.
const HASTY = .04;
/// Number of standard errors above which a loss is certain.
const SURE = 5;
/// Shares from which on losses are trouble, and resends are marked. A process that gets no processor time resends what
/// was not lost, so resends alone are no trouble of the link.
const LOSSES = .005, REPEATS = .05;
/// Frames per second at which a wire of a lab is drawn as full: an arbitrary scale, that of `phitwire top`
/// (watch/rates.rs), because a lab's wires have no rate of their own.
const LAB_FULL = 10000;
/// The rate at which a wire is full, and its description in the legend. Only in simulations are frames compared with
/// the busiest wire, because their length varies. LEAST keeps an idle network grey.
function capacity(network, all) {
  const { full, clock, carried } = network.header, LEAST = 1;
  if (full) return { rate: full * 1e3, words: "of the wire's capacity" };
  if (clock.unit === "ms") return { rate: LAB_FULL, words: `of ${short(LAB_FULL)} ${carried}/s` };
  return { rate: all.reduce((most, found) => Math.max(most, found.busiest), LEAST), words: "of the busiest link" };
}
/// Frames that may be in flight while the ends are sampled.
const FEW = 5;
/// Share of missing units from which on, without certainty, it is not said that none is lost.
const MANY = .02;

/// Numbers for display.
function short(number) {
  if (!isFinite(number)) return "-";
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, unit] of units) if (Math.abs(number) >= size) return trim(number / size) + unit;
  return number === 0 ? "0" : Math.abs(number) < 1 ? number.toFixed(2) : trim(number);
}
function trim(number) { return number >= 100 || Number.isInteger(number) ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2); }
function percent(share) { return share === 0 ? "-" : share < .0005 ? "<\u00a00.1\u00a0%" : share >= .0995 ? (100 * share).toFixed(0) + "\u00a0%" : (100 * share).toFixed(1) + "\u00a0%"; }
function span(ns) { return ns >= 1e9 ? trim(ns / 1e9) + " s" : ns >= 1e6 ? trim(ns / 1e6) + " ms" : ns >= 1e3 ? trim(ns / 1e3) + " us" : Math.round(ns) + " ns"; }
