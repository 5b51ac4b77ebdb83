// Links of a running emulator in the place of simulated ones: `aqmlab lab --shell`.
const live = {
  begin(command) {
    BIN = 0.5;
    const scene = makeScene({ toml: ["", ""], names: ["", ""] });
    const sides = [0, 1].map(() => Object.assign(newSide(), { groups: ["all traffic"], info: { duration: Infinity } }));
    Object.assign(lab, { scene: { ...scene, live: command }, sides, time: 0, seen: 0, first: scene, log: [] });
    for (const id of ["play", "step", "restart", "speed", "time", "link", "tour"]) byId(id).disabled = true;
    ui.sceneChanged();
    byId("path").hidden = true;
    byId("about").textContent = `Links of a running emulator (${command}), as it tells them twice a second. Nothing is simulated here.`;
    setInterval(() => this.look().catch((error) => ui.say(error)), 500);
  },
  async look() {
    const answer = await fetch("live", { cache: "no-store" });
    if (!answer.ok) throw new Error("the server has ended");
    const rows = await answer.json();
    rows.slice(0, 2).forEach((row, number) => this.take(row, number));
    ui.tick();
    redraw();
  },
  take(row, number) {
    const side = lab.sides[number];
    this.start ??= row.time_s - BIN;
    const t = row.time_s - this.start;
    const bin = {
      t, sojourn: row.sojourn_p95_s ?? null, least: row.sojourn_p50_s ?? null, left: row.delivered, drops: row.dropped, marks: row.marked,
      reason: row.dropped ? { "": row.dropped } : {}, lost: [row.dropped], delivered: [row.delivered_bytes], goodput: [row.rate_bps], windows: [], delays: [], felt: {},
      state: { backlog_packets: row.backlog_packets },
    };
    side.bins[Math.max(0, Math.round(t / BIN) - 1)] = bin;
    side.last = bin;
    side.queue = Array.from({ length: row.backlog_packets }, () => ({ flow: 0, group: 0, arrival: 0 }));
    lab.scene.names[number] = row.link === row.direction ? row.link : `${row.link} (${row.direction})`;
    byId(`name-${number}`).textContent = lab.scene.names[number];
    lab.time = Math.max(lab.time, t);
    lab.seen = lab.time;
  },
};
