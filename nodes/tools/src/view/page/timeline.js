// The timeline: events, the moment shown, play and pause.

class TimeLine {
  constructor(network, live) {
    this.network = network; this.live = live; this.playing = live; this.number = 0; this.time = null; this.speed = 1;
    this.scrub = document.getElementById("scrub"); this.ticks = document.getElementById("ticks"); this.moment = document.getElementById("moment");
    this.playButton = document.getElementById("play"); this.liveButton = document.getElementById("live");
    this.liveButton.hidden = !live; document.getElementById("speed").hidden = live;
    this.following = live;
    this.scrub.addEventListener("input", () => { this.go(Number(this.scrub.value)); });
    this.playButton.addEventListener("click", () => this.toggle());
    this.liveButton.addEventListener("click", () => { this.following = true; this.playing = true; });
    document.getElementById("speed").addEventListener("change", event => { this.speed = Number(event.target.value); });
    document.addEventListener("keydown", event => {
      if (/INPUT|SELECT|BUTTON|DIALOG/.test(event.target.tagName) && event.target !== this.scrub) return;
      if (event.key === " ") { event.preventDefault(); this.toggle(); }
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") { event.preventDefault(); this.go(this.number + (event.key === "ArrowLeft" ? -1 : 1)); }
    });
    this.ticks.addEventListener("click", event => this.go(Math.round(event.offsetX / this.ticks.clientWidth * (this.network.moments.length - 1))));
  }
  toggle() {
    this.playing = !this.playing;
    if (!this.playing) this.following = false; else if (this.live && this.number >= this.network.moments.length - 2) this.following = true;
    if (this.playing && !this.live && this.number >= this.network.moments.length - 1) this.go(0, true);
    this.time = null;
  }
  go(number, keepPlaying) {
    this.number = Math.max(0, Math.min(this.network.moments.length - 1, number));
    this.following = false; this.time = null;
    if (!keepPlaying) this.playing = false;
  }
  /// The number of the moment to show now; -1 if there is none.
  advance(now) {
    const { moments, header } = this.network;
    if (!moments.length) return -1;
    if (this.following) this.number = moments.length - 1;
    else if (this.playing) {
      if (this.time === null) this.time = [now, moments[this.number].t];
      const t = this.time[1] + (now - this.time[0]) / 1e3 * this.speed * header.clock.per_second;
      this.number = Math.max(this.number, this.network.at(t));
      if (this.number >= moments.length - 1) { if (this.live) this.following = true; else this.playing = false; }
    }
    return this.number;
  }
  draw() {
    const { moments, events } = this.network, last = moments.length - 1;
    if (Number(this.scrub.max) !== last) this.scrub.max = last;
    if (Number(this.scrub.value) !== this.number) this.scrub.value = this.number;
    set(this.moment, clockOf(this.network, moments[this.number].t));
    set(this.playButton, this.playing ? "Pause" : "Play");
    const on = this.following ? "on" : ""; if (this.liveButton.className !== on) this.liveButton.className = on;
    const key = `${last}:${events.length}:${this.ticks.clientWidth}:${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (key === this.key) return;
    this.key = key;
    const width = this.ticks.clientWidth, height = 18, ratio = devicePixelRatio || 1, paint = this.ticks.getContext("2d");
    this.ticks.width = width * ratio; this.ticks.height = height * ratio; paint.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement), colour = level => style.getPropertyValue(level ? "--" + level : "--faint");
    paint.fillStyle = style.getPropertyValue("--line"); paint.fillRect(0, height - 2, width, 1);
    for (const event of events) { paint.fillStyle = colour(levelOf(event.kind)); paint.fillRect(last ? event.number / last * (width - 2) : 0, 2, 2, height - 5); }
  }
}
