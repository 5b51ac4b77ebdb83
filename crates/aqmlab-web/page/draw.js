// The pictures: packets in the queues, and charts over time.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7a00", "#7a5195", "#6b6b6b", "#b2182b"];
const FLOW_QUEUES = /^(fq|sfq|drr|cake|dualpi2)/;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const darkness = matchMedia("(prefers-color-scheme: dark)");
let ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "panel", "bad", "mark", "grid", "accent"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
}
darkness.addEventListener("change", () => readInk());
const redraw = () => { drawn.state = ""; };
const colourOf = (group) => COLOURS[group % COLOURS.length];
const SPAN = 10;

function prepare(canvas) {
  const scale = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const cx = canvas.getContext("2d");
  cx.setTransform(scale, 0, 0, scale, 0, 0);
  cx.clearRect(0, 0, width, height);
  return [cx, width, height];
}

// Queues move with every frame, charts fifteen times a second; what stands still is not drawn.
const CHART_MS = 66;
const drawn = { time: -1, charts: 0, state: "" };
function draw(now) {
  const moving = lab.sides.some((side) => side.falling.length + side.leaving.length > 0);
  const state = `${lab.time} ${lab.seen} ${innerWidth} ${devicePixelRatio} ${ink.ink} ${lab.log.length} ${lab.first.rate} ${lab.sides[0].groups.length}`;
  const changed = state !== drawn.state;
  if (changed || moving) {
    lab.sides.forEach((side, number) => {
      drawQueue(side, number, now, ...prepare(byId(`queue-${number}`)));
    });
  }
  if (changed) drawn.due = true;
  if (!drawn.due || (lab.playing && now - drawn.charts < CHART_MS)) { drawn.state = state; return; }
  Object.assign(drawn, { charts: now, state, due: false });
  const scales = chartScales();
  lab.sides.forEach((side, number) => {
    drawCharts(side, number, scales, ...prepare(byId(`chart-${number}`)));
  });
}

// Packets stand in columns, the first to leave at the right. Queues of flows have a lane each.
function drawQueue(side, number, now, cx, width, height) {
  const box = { x: 14, y: 16, w: width - 92, h: height - 62 };
  cx.strokeStyle = ink.soft;
  cx.lineWidth = 1.5;
  cx.beginPath();
  cx.moveTo(box.x, box.y); cx.lineTo(box.x + box.w, box.y);
  cx.moveTo(box.x, box.y + box.h); cx.lineTo(box.x + box.w, box.y + box.h);
  cx.stroke();
  const head = { x: box.x + box.w + 26, y: box.y + box.h / 2 };
  cx.beginPath(); cx.arc(head.x, head.y, 15, 0, 7); cx.stroke();
  cx.fillStyle = ink.soft; cx.font = "12px system-ui"; cx.textAlign = "center";
  cx.fillText(lab.scene.toml ? "link" : lab.scene.rate, head.x + 8, head.y + 32);
  const discipline = lab.scene.sides[number]?.discipline ?? "";
  const lanes = FLOW_QUEUES.test(discipline) ? [...new Set(side.queue.map((packet) => packet.group))].sort((a, b) => a - b) : [null];
  const room = box.h / Math.max(1, lanes.length);
  lanes.forEach((lane, place) => {
    const packets = lane === null ? side.queue : side.queue.filter((packet) => packet.group === lane);
    drawLane(cx, packets, box.x, box.y + place * room, box.w, room, place > 0);
  });
  drawMoving(side, now, cx, box, head, width);
  cx.fillStyle = ink.ink; cx.textAlign = "left"; cx.font = "13px system-ui";
  const waited = side.last?.sojourn;
  cx.fillText(`${side.queue.length} packets${waited === null || waited === undefined ? "" : `, ${ms(waited)} in the queue`}`, box.x, height - 8);
}

function drawLane(cx, packets, x, y, w, h, line) {
  if (line) {
    cx.strokeStyle = ink.grid; cx.beginPath(); cx.moveTo(x, y); cx.lineTo(x + w, y); cx.stroke();
  }
  let size = 14;
  const fits = (dot) => Math.max(1, Math.floor((h - 4) / dot)) * Math.floor(w / dot);
  while (size > 2 && fits(size) < packets.length) size -= size > 6 ? 1 : 0.5;
  const rows = Math.max(1, Math.floor((h - 4) / size));
  const top = y + (h - rows * size) / 2;
  packets.forEach((packet, index) => {
    const [column, row] = [Math.floor(index / rows), index % rows];
    const px = x + w - (column + 0.5) * size;
    if (px < x) return;
    cx.fillStyle = colourOf(packet.group);
    if (size < 5) cx.fillRect(px - size / 2, top + row * size, size - 0.5, size - 0.5);
    else { cx.beginPath(); cx.arc(px, top + (row + 0.5) * size, size / 2 - 0.8, 0, 7); cx.fill(); }
  });
}

// What is dropped falls; what leaves goes along the wire, and glows if it is marked.
function drawMoving(side, now, cx, box, head, width) {
  side.falling = side.falling.filter((packet) => now - packet.since < 900);
  for (const packet of side.falling) {
    const age = still.matches ? 0.4 : (now - packet.since) / 900;
    const atHead = /^(codel|cobalt)$/.test(packet.reason);
    const x = (atHead ? box.x + box.w - 12 : box.x + 12) + ((packet.flow * 37 + packet.arrival * 1e4) % 40) * (atHead ? -1 : 1);
    const y = box.y + box.h + 4 + age * age * 40;
    cx.globalAlpha = still.matches ? 1 : 1 - age;
    cx.fillStyle = colourOf(packet.group);
    cx.beginPath(); cx.arc(x, y, 5, 0, 7); cx.fill();
    cx.strokeStyle = ink.bad; cx.lineWidth = 1.6;
    cx.beginPath(); cx.moveTo(x - 4, y - 4); cx.lineTo(x + 4, y + 4); cx.moveTo(x + 4, y - 4); cx.lineTo(x - 4, y + 4); cx.stroke();
  }
  cx.globalAlpha = 1;
  side.leaving = side.leaving.filter((packet) => now - packet.since < 500);
  for (const packet of side.leaving.slice(-12)) {
    const age = still.matches ? 0 : (now - packet.since) / 500;
    const x = head.x + age * (width - head.x);
    if (packet.marked) {
      cx.strokeStyle = ink.mark; cx.lineWidth = 3;
      cx.beginPath(); cx.arc(x, head.y, 9, 0, 7); cx.stroke();
    }
    cx.fillStyle = colourOf(packet.group);
    cx.beginPath(); cx.arc(x, head.y, 5, 0, 7); cx.fill();
  }
}

const ms = (seconds) => (seconds < 0.01 ? `${(seconds * 1000).toFixed(1)} ms` : `${Math.round(seconds * 1000)} ms`);
const window0 = () => Math.max(0, lab.time - SPAN * 0.85);

function visible(side) {
  const first = Math.floor(window0() / BIN);
  return side.bins.slice(first, first + Math.ceil(SPAN / BIN));
}

function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= value);
}

// The same scales on both sides, so that they can be compared.
function chartScales() {
  const most = { sojourn: 0.02, goodput: 0, window: 0, lost: 4 };
  for (const side of lab.sides) {
    for (const bin of visible(side)) {
      if (!bin) continue;
      most.sojourn = Math.max(most.sojourn, bin.sojourn ?? 0);
      for (const window of bin.windows) most.window = Math.max(most.window, window ?? 0);
      most.lost = Math.max(most.lost, bin.drops, bin.marks);
    }
  }
  const rates = lab.sides.flatMap((side) => smooth(visible(side)).flatMap((bin) => bin.goodput));
  // Acknowledgements after a recovery count for what came before: they may stand out.
  const link = lab.scene.toml ? Infinity : 1.25 * bits(lab.scene.rate);
  most.goodput = Math.min(Math.max(...rates, 1e5), link || Infinity);
  return Object.fromEntries(Object.entries(most).map(([key, value]) => [key, nice(value)]));
}

// Goodput over a fifth of a second: of 20 ms it is a packet or two.
function smooth(bins) {
  const many = Math.max(1, Math.round(0.2 / BIN));
  const out = [];
  for (let at = many; at < bins.length; at += many > 1 ? 2 : 1) {
    const [now, before] = [bins[at], bins[at - many]];
    if (!now || !before) continue;
    const goodput = now.delivered.map((sum, group) => ((sum - (before.delivered[group] ?? 0)) * 8) / (now.t - before.t));
    out.push({ t: now.t, goodput });
  }
  return out;
}

function drawCharts(side, number, scales, cx, width, height) {
  const bins = visible(side).filter(Boolean);
  const left = 50;
  const right = width - 8;
  const x = (time) => left + ((time - window0()) / SPAN) * (right - left);
  const panels = [
    ["Time in the queue", scales.sojourn, (value) => ms(value)],
    ["Goodput", scales.goodput, (value) => `${+(value / 1e6).toPrecision(3)} Mbit/s`],
    ["Window", scales.window, (value) => `${Math.round(value / 1000)} kB`],
    ["Drops, marks", scales.lost, (value) => `${value}`],
  ].filter(([title]) => title !== "Window" || !lab.scene.live);
  const gap = 22;
  const each = (height - 24) / panels.length;
  const frames = panels.map(([title, most, text], place) => {
    const top = place * each + gap - 4;
    const bottom = (place + 1) * each - 2;
    cx.strokeStyle = ink.grid; cx.lineWidth = 1;
    cx.strokeRect(left, top, right - left, bottom - top);
    cx.fillStyle = ink.soft; cx.font = "12px system-ui"; cx.textAlign = "left";
    cx.fillText(`${title}, up to ${text(most)}`, left, top - 5);
    return { y: (value) => bottom - (Math.min(value, most) / most) * (bottom - top), top, bottom };
  });
  const [waits, goodput, lost] = [frames[0], frames[1], frames[frames.length - 1]];
  drawAxis(cx, x, lost.bottom, left, right);
  cx.save();
  cx.beginPath(); cx.rect(left, 0, right - left, height - 20); cx.clip();
  drawSojourn(cx, side, number, bins, x, waits);
  const groups = side.groups.length;
  const rates = smooth(bins);
  for (let group = 0; group < groups; group += 1) {
    line(cx, rates, x, (bin) => bin.goodput[group], goodput, colourOf(group), group);
    if (!lab.scene.live) line(cx, bins, x, (bin) => bin.windows[group], frames[2], colourOf(group), group);
  }
  for (const bin of bins) {
    bar(cx, x(bin.t), lost, bin.drops, ink.bad, 0);
    bar(cx, x(bin.t), lost, bin.marks, ink.mark, 1.5);
  }
  drawControl(cx, bins, x, lost);
  cx.strokeStyle = ink.accent; cx.lineWidth = 1.5;
  cx.beginPath(); cx.moveTo(x(lab.time), waits.top); cx.lineTo(x(lab.time), lost.bottom); cx.stroke();
  cx.restore();
}

function drawAxis(cx, x, bottom, left, right) {
  cx.fillStyle = ink.soft; cx.textAlign = "center"; cx.font = "11px system-ui";
  for (let second = Math.ceil(window0()); x(second) <= right; second += 2) {
    if (x(second) >= left + 8 && x(second) < right - 14) cx.fillText(`${second} s`, x(second), bottom + 14);
  }
}

function drawSojourn(cx, side, number, bins, x, frame) {
  const target = targetOf(number);
  for (const bin of bins) {
    if (!(bin.state.dropping > 0 || bin.state.dropping_flows > 0)) continue;
    cx.globalAlpha = 0.16; cx.fillStyle = ink.bad;
    cx.fillRect(x(bin.t - BIN), frame.top, x(bin.t) - x(bin.t - BIN) + 0.5, frame.bottom - frame.top);
    cx.globalAlpha = 1;
  }
  line(cx, bins, x, (bin) => bin.sojourn, frame, ink.ink, 0);
  if (target === null) return;
  cx.setLineDash([5, 4]); cx.strokeStyle = ink.accent; cx.lineWidth = 1.5;
  cx.beginPath(); cx.moveTo(x(window0()), frame.y(target)); cx.lineTo(x(window0() + SPAN), frame.y(target)); cx.stroke();
  cx.setLineDash([]);
}

const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4]];
function line(cx, bins, x, value, frame, colour, group) {
  cx.strokeStyle = colour; cx.lineWidth = 1.6;
  cx.setLineDash(DASHES[Math.floor(group / COLOURS.length) % DASHES.length]);
  cx.beginPath();
  let open = false;
  for (const bin of bins) {
    const each = value(bin);
    if (each === null || each === undefined) { open = false; continue; }
    if (open) cx.lineTo(x(bin.t), frame.y(each)); else cx.moveTo(x(bin.t), frame.y(each));
    open = true;
  }
  cx.stroke();
  cx.setLineDash([]);
}

function bar(cx, x, frame, value, colour, shift) {
  if (!value) return;
  cx.fillStyle = colour;
  cx.fillRect(x + shift - 1, frame.y(value), 1.8, frame.bottom - frame.y(value));
}

// The probability that the control has come to, as a line of its own scale: 0 to 1.
const probability = (state) => state.drop_probability ?? state.classic_probability ?? state.blue_probability;
function drawControl(cx, bins, x, frame) {
  if (!bins.some((bin) => probability(bin.state) > 0)) return;
  const unit = { y: (value) => frame.bottom - Math.min(1, Math.sqrt(value)) * (frame.bottom - frame.top) };
  line(cx, bins, x, (bin) => probability(bin.state) ?? null, unit, ink.soft, 0);
  cx.fillStyle = ink.soft; cx.textAlign = "right"; cx.font = "11px system-ui";
  const last = bins.findLast((bin) => probability(bin.state) !== undefined);
  cx.fillText(`probability ${(probability(last.state) * 100).toPrecision(2)} %`, x(window0() + SPAN) - 4, frame.top + 13);
}

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
  const parts = /^([\d.]+)\s*([kmgt]?)bit$/.exec((text ?? "").trim());
  return parts ? Number(parts[1]) * { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[parts[2]] : NaN;
}
function seconds(text) {
  const parts = /^([\d.]+)\s*(ns|us|µs|ms|s)$/.exec(text ?? "");
  return parts ? Number(parts[1]) * { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1 }[parts[2]] : null;
}
