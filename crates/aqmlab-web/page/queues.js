// Packets in the queues, and who gets the link. Blue and orange are the sides'; flows have other colours.
const COLOURS = ["#7a5195", "#00845f", "#b8457f", "#6b6b6b", "#8c6d31", "#b2182b", "#3a7d8c", "#5b6abf"];
const FLOW_QUEUES = /^(fq|sfq|drr|cake|dualpi2)/;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const darkness = matchMedia("(prefers-color-scheme: dark)");
let ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "panel", "bad", "mark", "grid", "accent", "a", "b"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
}
darkness.addEventListener("change", () => readInk());
const redraw = () => { drawn.state = ""; };
const colourOf = (group) => COLOURS[group % COLOURS.length];

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
  for (const group of chartGroups()) {
    byId(`${group.id}-box`).hidden = !group.panels.length;
    byId(group.id).style.height = `${chartHeight(group)}px`;
    drawCharts(group, ...prepare(byId(group.id)));
  }
  lab.sides.forEach(showShares);
}

// Packets stand in columns, the first to leave at the right. Queues of flows have a lane each.
function drawQueue(side, number, now, cx, width, height) {
  const narrow = width < 300;
  const box = { x: narrow ? 4 : 14, y: narrow ? 8 : 16, w: width - (narrow ? 54 : 92), h: height - (narrow ? 40 : 62) };
  cx.strokeStyle = ink.soft;
  cx.lineWidth = 1.5;
  cx.beginPath();
  cx.moveTo(box.x, box.y); cx.lineTo(box.x + box.w, box.y);
  cx.moveTo(box.x, box.y + box.h); cx.lineTo(box.x + box.w, box.y + box.h);
  cx.stroke();
  const head = { x: box.x + box.w + (narrow ? 18 : 26), y: box.y + box.h / 2 };
  cx.beginPath(); cx.arc(head.x, head.y, 15, 0, 7); cx.stroke();
  cx.fillStyle = ink.soft; cx.font = "12px system-ui"; cx.textAlign = "center";
  cx.fillText(lab.scene.toml ? "link" : lab.scene.rate, head.x + (narrow ? 4 : 8), head.y + 32);
  const discipline = lab.scene.sides[number]?.discipline ?? "";
  const laneOf = laneWith(discipline);
  const lanes = laneOf.all ?? [...new Set(side.queue.map(laneOf))].sort((a, b) => a - b);
  const room = box.h / Math.max(1, lanes.length);
  lanes.forEach((lane, place) => {
    const packets = side.queue.filter((packet) => laneOf(packet) === lane);
    drawLane(cx, packets, box.x, box.y + place * room, box.w, room, place > 0);
  });
  drawMoving(side, now, cx, box, head, width);
  cx.fillStyle = ink.ink; cx.textAlign = "left"; cx.font = "13px system-ui";
  const waited = side.last?.sojourn;
  const count = side.queue.length === 1 ? "1 packet" : `${side.queue.length} packets`;
  // The wait is that of packets that left: there may be one while the queue is empty.
  const caption = `${count}${waited === null || waited === undefined ? "" : `${narrow ? "," : "; longest wait"} ${ms(waited)}`}`;
  // Packets that fall pass behind it.
  cx.strokeStyle = ink.panel; cx.lineWidth = 5; cx.lineJoin = "round";
  cx.strokeText(caption, box.x, height - 8);
  cx.fillText(caption, box.x, height - 8);
}

// The lane of a packet: one for each flow, or for L4S and the rest, or one for all.
function laneWith(discipline) {
  if (!FLOW_QUEUES.test(discipline)) return () => 0;
  if (!discipline.startsWith("dualpi2")) return (packet) => packet.group;
  const flows = [...lab.scene.flows, ...lab.scene.later];
  const l4s = lab.sides[0].groups.map((name) => isL4s(flows.find((flow) => flow.name === name)));
  return Object.assign((packet) => (l4s[packet.group] ? 0 : 1), { all: [0, 1] });
}
// Datagrams are not ECN-capable, and QUIC's packets are ECT(0).
const isL4s = (flow) => flow?.ecn === "accurate" && canBeQuic(flow.kind) && !quicOf(flow);

// Who got the link in the last second: a part of the bar for each flow, its length the share of the rate.
function showShares(side, number) {
  const bar = byId(`shares-${number}`);
  const end = Math.floor(lab.time / BIN + 1e-6);
  const [now, before] = [side.bins[end - 1], side.bins[Math.max(0, end - 1 - Math.round(1 / BIN))]];
  bar.hidden = Boolean(lab.scene.live);
  if (!now || !before || now.t <= before.t) { bar.replaceChildren(); return; }
  const rates = side.groups.map((_, group) => (((now.delivered[group] ?? 0) - (before.delivered[group] ?? 0)) * 8) / (now.t - before.t));
  const sum = rates.reduce((total, rate) => total + rate, 0);
  const whole = Math.max(sum, lab.scene.toml ? 0 : bits(lab.scene.rate) || 0);
  bar.replaceChildren(...rates.map((rate, group) => {
    const share = whole > 0 ? (100 * rate) / whole : 0;
    const fits = (text) => 8 * text.length < (bar.clientWidth * share) / 100;
    const [short, long] = [`${megabits(rate)}`, `${megabits(rate)} Mbit/s`];
    const part = element("i", { title: `${side.groups[group]}: ${long}`, textContent: [long, short].find(fits) ?? "" });
    part.style.cssText = `width:${share}%;background:${colourOf(group)}`;
    return part;
  }));
  bar.setAttribute("aria-label", `Goodput over queue ${"AB"[number]} in the last second: ${side.groups.map((name, group) => `${name} ${megabits(rates[group])} Mbit/s`).join(", ")}`);
}
const megabits = (rate) => +(rate / 1e6).toPrecision(2);

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
    // An arrival that is dropped has not waited; other drops are of the head of a queue.
    const x = (packet.waited ? box.x + box.w - 12 : box.x + 12) + ((packet.flow * 37 + packet.arrival * 1e4) % 40) * (packet.waited ? -1 : 1);
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

