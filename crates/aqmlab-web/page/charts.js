// Charts over time: A and B in one chart each, with the same axis of time.
const SPAN = 10;
const PANEL = 110;
const RUG = 72;
const AXIS = 36;
const MARGIN = { left: 62, right: 22, top: 28, bottom: 8 };
const ms = (seconds) => (seconds < 0.01 ? `${(seconds * 1000).toFixed(1)} ms` : `${Math.round(seconds * 1000)} ms`);
const window0 = () => Math.max(0, lab.time - SPAN * 0.85);

function visible(side) {
  const first = Math.floor(window0() / BIN);
  return side.bins.slice(first, first + Math.ceil(SPAN / BIN)).filter(Boolean);
}

// Ticks from 0 to the least of 1, 2 or 5 times a power of ten that the values need.
function ticksOf(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10].map((each) => each * power).find((each) => most / each <= 4.0001);
  return Array.from({ length: Math.ceil(most / step - 1e-6) + 1 }, (_, place) => place * step);
}

// Values of half a second or so, each from the sums of delivered bytes.
function smooth(bins) {
  const many = Math.max(1, Math.round(0.4 / BIN));
  const total = (bin) => bin.delivered.reduce((sum, bytes) => sum + bytes, 0);
  const out = [];
  for (let at = many; at < bins.length; at += many > 1 ? 2 : 1) {
    const [now, before] = [bins[at], bins[at - many]];
    if (now.t > before.t) out.push({ t: now.t, goodput: ((total(now) - total(before)) * 8) / (now.t - before.t) });
  }
  return out;
}

const kindOf = (name) => name.split("-")[0];
const isThere = (value) => value !== null && value !== undefined;
const isStopped = (group) => [...lab.scene.flows, ...lab.scene.later].some((flow) => flow.name === lab.sides[0].groups[group] && flow.stopped);
// The first group that fits, if possible one that was not stopped; -1 without any.
function firstOf(fits) {
  const { groups } = lab.sides[0];
  const fitting = [...groups.keys()].filter((group) => fits(groups[group], group));
  return fitting.find((group) => !isStopped(group)) ?? fitting[0] ?? -1;
}
const withWorkload = (...workloads) => firstOf((name, group) =>
  workloads.includes(lab.sides[0].info.workloads[group] ?? WORKLOADS[kindOf(name)].workload));
const bulk = () => firstOf((name) => lab.scene.toml || kindOf(name) === "download");

// What users feel, by workload and quantity of the engine. Scores are of each second; a page has a line
// from its start to its end.
const SHARE = { unit: "% of each second", factor: 100, ticks: [0, 0.25, 0.5, 0.75, 1], each: 1 };
const FELT = [
  { workload: "voip", quantity: "mos", title: "Quality of", unit: "MOS of each second", factor: 1, ticks: [1, 2, 3, 4, 5], names: { 1: "bad", 2: "poor", 3: "fair", 4: "good" }, each: 1 },
  { workload: "page", quantity: "page_load", title: "Load times of pages of", unit: "s", factor: 1, least: 1, loads: true },
  { workload: "video", quantity: "missed", title: "Late or lost frames of", ...SHARE },
  { workload: "game", quantity: "late", title: "Late packets of", ...SHARE },
  { workload: "probe", quantity: "rtt", title: "Round-trip time of", unit: "ms", factor: 1000, least: 0.05, sparse: true },
];
function feltPanels() {
  if (lab.scene.live) return [];
  const lines = lab.sides.map(visible);
  const panels = [];
  const call = withWorkload("voip", "game");
  if (call >= 0) {
    const name = lab.sides[0].groups[call];
    const whole = !lab.scene.toml;
    const limit = whole && kindOf(name) === "call" ? { value: 0.15, text: "150 ms (G.114)" } : null;
    panels.push({ title: `${whole ? "One-way delay" : "Longest time in the queue"} of ${name}`, unit: "ms", factor: 1000, least: 0.05, lines,
      value: (bin) => (whole ? bin.delays : bin.waits)[call] ?? null, limit, sparse: true });
  }
  for (const known of FELT) {
    const group = withWorkload(known.workload);
    if (group < 0) continue;
    const key = `${known.quantity} ${group}`;
    // Without values: video over TCP misses no frame.
    if (lab.scene.toml && !lab.sides.some((side) => side.bins.some((bin) => key in bin.felt))) continue;
    panels.push({ ...known, title: `${known.title} ${lab.sides[0].groups[group]}`, lines, value: (bin) => bin.felt[key], loading: known.loads && !isStopped(group) && loadingOf(key, group) });
  }
  return panels.map(withTicks);
}
// The start of the page that is loading, or null.
const loadingOf = (key, group) => (bin) => (bin.started[group] === (bin.times[key]?.[0] ?? 0) + 1 ? bin.begun[group] : null);

// What each chart shows: title, unit, a value of a bin, and a line to hold it against.
function chartPanels() {
  const seen = lab.sides.map(visible);
  const panels = [{ title: "Longest time in the queue", unit: "ms", factor: 1000, least: 0.01, lines: seen, value: (bin) => bin.sojourn, targets: [0, 1].map(targetOf) }];
  const rate = lab.scene.toml ? null : bits(lab.scene.rate);
  const goodput = lab.scene.live ? seen : seen.map(smooth);
  const delivered = lab.scene.live ? (bin) => bin.goodput[0] : (bin) => bin.goodput;
  // Data that waits for a lost packet is read at once when that arrives.
  const isQuic = [...lab.scene.flows, ...lab.scene.later].some(quicOf);
  panels.push({ title: "Goodput", unit: isQuic ? "Mbit/s (QUIC: as read)" : "Mbit/s", factor: 1e-6, least: 1e5, lines: goodput, value: delivered, limit: rate ? { value: rate, text: "link rate" } : null });
  const flow = bulk();
  if (flow >= 0 && !lab.scene.live && seen.some((bins) => bins.some((bin) => bin.windows[flow] > 0))) {
    panels.push({ title: `Congestion window of ${lab.sides[0].groups[flow]}`, unit: "kB", factor: 1e-3, least: 1e4, lines: seen, value: (bin) => bin.windows[flow] ?? null });
  }
  if (seen.some((bins) => bins.some((bin) => probability(bin.state) > 0))) {
    const parts = { l4s_probability: "DualPI2: classic", blue_probability: "COBALT, CAKE: of BLUE alone" };
    const shown = Object.keys(parts).filter((part) => seen.some((bins) => bins.some((bin) => part in bin.state)));
    const which = shown.length ? ` (${shown.map((part) => parts[part]).join("; ")})` : "";
    panels.push({ title: `Probability of a drop or mark${which}`, unit: "%", factor: 100, least: 0.001, cap: 1, lines: seen, value: (bin) => probability(bin.state) ?? null });
  }
  return panels.map(withTicks);
}

function withTicks(panel) {
  if (panel.ticks) return panel;
  const values = panel.lines.flatMap((bins) => bins.map(panel.value)).filter(isThere);
  if (panel.loading) values.push(...panel.lines.map((bins) => loadingFor(panel, bins)));
  const most = values.reduce((least, value) => Math.max(least, value), panel.least);
  const shown = panel.limit && panel.limit.value <= 2 * most ? Math.max(most, panel.limit.value) : most;
  return { ...panel, ticks: ticksOf(Math.min(shown * 1.02, panel.cap ?? Infinity)) };
}
// The time for which a page has been loading; 0 if none is.
function loadingFor(panel, bins) {
  const last = bins[bins.length - 1];
  const since = last && panel.loading(last);
  return isThere(since) ? last.t - since : 0;
}

const chartGroups = () => [{ id: "felt", panels: feltPanels(), rug: 0 }, { id: "charts", panels: chartPanels(), rug: RUG }];
const chartHeight = ({ panels, rug }) => panels.length && panels.length * PANEL + rug + AXIS;

function drawCharts({ panels, rug }, cx, width) {
  const [left, right] = [MARGIN.left, width - MARGIN.right];
  const x = (time) => left + ((time - window0()) / SPAN) * (right - left);
  panels.forEach((panel, place) => {
    const frame = { top: place * PANEL + MARGIN.top, bottom: (place + 1) * PANEL - MARGIN.bottom, left, right };
    drawPanel(cx, panel, frame, x);
  });
  if (rug) drawRug(cx, panels.length * PANEL + MARGIN.top, left, right, x);
  drawTimes(cx, x, panels.length * PANEL + rug, left, right);
  cx.strokeStyle = ink.soft; cx.lineWidth = 1;
  cx.beginPath(); cx.moveTo(x(lab.time), MARGIN.top); cx.lineTo(x(lab.time), panels.length * PANEL + (rug || -MARGIN.bottom)); cx.stroke();
}

function drawPanel(cx, panel, frame, x) {
  const [floor, top] = [panel.ticks[0], panel.ticks[panel.ticks.length - 1]];
  const y = (value) => frame.bottom - ((Math.min(value, top) - floor) / (top - floor)) * (frame.bottom - frame.top);
  const held = panel.limit && panel.limit.value <= top ? `; dashed: ${panel.limit.text}` : "";
  const aims = panel.targets?.some((target) => target !== null && target <= top) ? "; dashed: target" : "";
  heading(cx, `${panel.title}, ${panel.unit}${held}${aims}`, 10, frame.top - 12);
  cx.font = "11px system-ui"; cx.lineWidth = 1;
  for (const tick of panel.ticks) {
    cx.strokeStyle = ink.grid;
    cx.beginPath(); cx.moveTo(frame.left, y(tick)); cx.lineTo(frame.right, y(tick)); cx.stroke();
    cx.fillStyle = ink.soft; cx.textAlign = "right";
    cx.fillText(`${panel.names?.[tick] ?? ""} ${+(tick * panel.factor).toPrecision(3)}`.trim(), frame.left - 6, y(tick) + 4);
  }
  clipped(cx, frame, () => {
    if (panel.limit && panel.limit.value <= top) dashed(cx, frame, y(panel.limit.value), ink.soft);
    panel.targets?.forEach((target, number) => { if (target !== null && target <= top) dashed(cx, frame, y(target), ink["ab"[number]]); });
    panel.lines.forEach((bins, number) => line(cx, bins, x, panel, y, ink["ab"[number]], number));
  });
  panel.lines.forEach((bins, number) => {
    const ends = bins.filter((bin) => isThere(panel.value(bin))).slice(panel.loads ? 0 : -1);
    ends.forEach((bin) => letter(cx, bin, x, panel, y, number, frame));
  });
}

function heading(cx, text, x, y) {
  cx.fillStyle = ink.ink; cx.font = "12px system-ui"; cx.textAlign = "left";
  cx.fillText(text, x, y);
}

function clipped(cx, frame, drawInside) {
  cx.save();
  cx.beginPath(); cx.rect(frame.left, frame.top - 3, frame.right - frame.left, frame.bottom - frame.top + 4); cx.clip();
  drawInside();
  cx.restore();
}

function dashed(cx, frame, y, colour) {
  cx.setLineDash([5, 4]); cx.strokeStyle = colour; cx.lineWidth = 1.2;
  cx.beginPath(); cx.moveTo(frame.left, y); cx.lineTo(frame.right, y); cx.stroke();
  cx.setLineDash([]);
}

// A is a full line, B a thinner one above it: where they agree, both are seen. Packets of a sparse flow
// are joined over the bins without any, scores over the seconds that follow each other, pages not at all.
function line(cx, bins, x, panel, y, colour, number) {
  cx.strokeStyle = colour; cx.lineWidth = number === 0 ? 2.4 : 1.5;
  cx.beginPath();
  let end = null;
  for (const bin of bins) {
    const value = panel.value(bin);
    if (!isThere(value)) { if (!panel.sparse && !panel.each) end = null; continue; }
    const span = panel.loads ? value : panel.each ?? 0;
    const joined = end !== null && !panel.loads && (!span || bin.t - span < end + BIN / 2);
    const start = [x(bin.t - span), y(panel.loads ? 0 : value)];
    if (joined) cx.lineTo(...start); else cx.moveTo(...start);
    if (span) cx.lineTo(x(bin.t), y(value));
    end = bin.t;
  }
  const loading = panel.loading ? loadingFor(panel, bins) : 0;
  if (loading) {
    const { t } = bins[bins.length - 1];
    cx.moveTo(x(t - loading), y(0)); cx.lineTo(x(t), y(loading));
  }
  cx.stroke();
}

// The letter of a side, at the end of a line.
function letter(cx, last, x, panel, y, number, frame) {
  cx.fillStyle = ink["ab"[number]]; cx.font = "bold 12px system-ui"; cx.textAlign = "left";
  cx.fillText("AB"[number], Math.min(x(last.t) + 3 + number * 9, frame.right + 2 + number * 9), Math.max(frame.top + 6, Math.min(frame.bottom, y(panel.value(last)) + 4)));
}

// A row for each side: a stroke for each bin with drops or marks, and a shade while CoDel drops.
function drawRug(cx, top, left, right, x) {
  cx.font = "12px system-ui"; cx.textAlign = "left";
  heading(cx, "Drops", 10, top - 12);
  cx.fillStyle = ink.bad; cx.fillRect(48, top - 22, 3, 12);
  heading(cx, "marks", 66, top - 12);
  cx.fillStyle = ink.mark; cx.fillRect(107, top - 22, 3, 12);
  lab.sides.forEach((side, number) => {
    const row = { top: top + number * 20, bottom: top + number * 20 + 16, left, right };
    cx.strokeStyle = ink.grid; cx.lineWidth = 1; cx.strokeRect(left, row.top, right - left, 16);
    cx.fillStyle = ink["ab"[number]]; cx.font = "bold 12px system-ui"; cx.textAlign = "right";
    cx.fillText("AB"[number], left - 6, row.bottom - 3);
    clipped(cx, row, () => {
      for (const bin of visible(side)) {
        const [from, to] = [x(bin.t - BIN), x(bin.t)];
        if (bin.state.dropping > 0 || bin.state.dropping_flows > 0) {
          cx.globalAlpha = 0.15; cx.fillStyle = ink.bad; cx.fillRect(from, row.top, to - from + 0.5, 16); cx.globalAlpha = 1;
        }
        if (bin.marks) { cx.fillStyle = ink.mark; cx.fillRect(to - 1, row.top, 2, 16); }
        if (bin.drops) { cx.fillStyle = ink.bad; cx.fillRect(to - 1, row.top, 2, 16); }
      }
    });
  });
}

function drawTimes(cx, x, bottom, left, right) {
  cx.fillStyle = ink.soft; cx.textAlign = "center"; cx.font = "11px system-ui";
  const every = right - left < 400 ? 2 : 1;
  for (let second = Math.ceil(window0() / every) * every; x(second) <= right + 1; second += every) cx.fillText(String(second), x(second), bottom + 12);
  cx.fillText("time (s)", (left + right) / 2, bottom + 27);
}

// The probability that the control has come to.
const probability = (state) => state.drop_probability ?? state.classic_probability ?? state.blue_probability;

// The delay that a discipline aims at, in seconds.
function targetOf(number) {
  if (lab.scene.toml) return null;
  const side = lab.scene.sides[number];
  const spec = queueOf(side?.discipline)?.params.find((param) => param.name === "target");
  if (!spec || spec.kind !== "time") return null;
  const text = side.params.target ?? queueOf(side.discipline).settings?.target ?? spec.default;
  return seconds(text);
}
function bits(text) {
  const parts = /^([\d.]+)\s*([kmgt]?)bit$/i.exec((text ?? "").trim());
  return parts ? Number(parts[1]) * { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[parts[2].toLowerCase()] : NaN;
}
