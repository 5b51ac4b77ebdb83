"use strict";
const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const AXIS = 90, LETTER = 7;

// Data are CSV in the page. Vega's own reader makes code of the names of the columns, which the
// page's policy does not allow.
function rows(text, kinds) {
  const table = [[]];
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\n]*))(,|\n)/g)) {
    table[table.length - 1].push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    if (end === "\n") table.push([]);
  }
  table.pop();
  const names = table.shift();
  const value = (name, cell) => (kinds[name] === "number" ? (cell === "" ? null : +cell) : cell);
  return table.map((row) => Object.fromEntries(row.map((cell, i) => [names[i], value(names[i], cell)])));
}

for (const id of Object.keys(specs)) {
  specs[id] = JSON.parse(JSON.stringify(specs[id]), (key, value) =>
    key === "data" && value.format?.type === "csv"
      ? { values: rows(value.values, value.format.parse) } : value);
}

function config() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line");
  const narrow = window.innerWidth < 700;
  return {
    background: "transparent",
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    title: { color: ink },
    axis: {
      labelColor: soft, titleColor: ink, gridColor: line, domainColor: soft, tickColor: soft,
      titleFontWeight: "normal", labelFontSize: narrow ? 11.5 : 12.5,
      titleFontSize: narrow ? 12.5 : 13.5, titlePadding: 10,
    },
    axisQuantitative: { labelOverlap: true, labelSeparation: 6 },
    legend: {
      titleColor: ink, titleFontSize: 13, labelColor: ink, labelFontSize: 13, labelLimit: narrow ? 140 : 320, orient: "bottom",
      direction: "horizontal", columns: narrow ? 2 : 3, symbolOpacity: 1, columnPadding: 20,
      rowPadding: 4, offset: 14,
    },
  };
}

// Panels below each other are as wide as the page; of others, as many are side by side as there is
// room for, and all of a row are as wide as the page together.
function fitted(spec, room) {
  if ("vconcat" in spec) {
    const wide = (panel) => ({ ...panel, width: room - AXIS });
    return { ...spec, vconcat: spec.vconcat.map(wide) };
  }
  if ("concat" in spec) {
    const least = Math.min(spec.concat[0].width, room - AXIS);
    const side = Math.min(spec.columns, Math.max(1, Math.floor(room / (least + AXIS))));
    const width = Math.max(least, Math.min(2 * least, Math.floor(room / side) - AXIS));
    return { ...spec, concat: spec.concat.map((panel) => slanted(panel, width)), columns: side };
  }
  const size = { type: "fit", contains: "padding" };
  if (spec.usermeta?.least > room && spec.usermeta.narrow) return fitted(narrowed(spec), room);
  // A picture that needs more room than the page has is drawn in it, and made smaller: see `drawOne`.
  const width = Math.max(room, spec.usermeta?.least ?? 0);
  return { ...spec, width, height: spec.height ?? (room < 600 ? 400 : 430), autosize: size };
}

// A set-up whose words have lines of their own in parentheses.
function narrowed(spec) {
  const { x, y, ...size } = spec.usermeta.narrow;
  const layer = JSON.parse(JSON.stringify(spec.layer), (key, value) => {
    if (key === "domain") return value.expr ? x : y;
    return key === "text" && Array.isArray(value) ? value.flatMap((line) => line.split(/ (?=\()/)) : value;
  });
  return { ...spec, layer, height: size.height, usermeta: { least: size.least } };
}

// A panel of this width; names on its x axis that have too little room there are slanted.
// A panel whose layers have an x each has no names there.
function slanted(panel, width) {
  const x = panel.encoding?.x;
  const letters = (x?.sort ?? []).reduce((sum, name) => sum + name.length + 1, 0);
  if (x?.type !== "nominal" || letters * LETTER <= width) return { ...panel, width };
  const axis = { ...x.axis, labelAngle: -40, labelAlign: "right" };
  return { ...panel, width, encoding: { ...panel.encoding, x: { ...x, axis } } };
}

function legendsFit(spec, room) {
  if (room >= 600) return spec;
  const text = JSON.stringify(spec, (key, value) => (key === "columns" && value === 6 ? 2 : value));
  return JSON.parse(text);
}

// The labels of rows stay in view beside each other while the numbers are scrolled.
function keepLabels() {
  for (const row of document.querySelectorAll("table.points tr")) {
    let left = 0;
    for (const label of row.querySelectorAll("th.label, tbody th")) {
      label.style.left = `${left}px`;
      left += label.offsetWidth;
    }
  }
}
document.addEventListener("toggle", keepLabels, true);
window.addEventListener("resize", keepLabels);
keepLabels();

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function tooltip(handler, event, item, value) {
  tip.hidden = value === undefined || value === null || value === "";
  if (tip.hidden) return;
  tip.replaceChildren();
  for (const [name, text] of Object.entries(value)) {
    const row = document.createElement("div");
    const label = document.createElement("span");
    label.textContent = name;
    row.append(label, String(text));
    tip.append(row);
  }
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below ? event.clientY + 16 : event.clientY - 12 - tip.offsetHeight}px`;
}

// Expressions are interpreted, not compiled: the page's policy allows no code made of text.
const PLAIN = { actions: false, renderer: "svg", ast: true, defaultStyle: false };
const drawn = new Map();

async function drawOne(id) {
  const place = document.getElementById(id);
  const room = place.clientWidth;
  const whole = legendsFit(fitted(specs[id], room), room);
  drawn.get(id)?.finalize();
  drawn.set(id, await vegaEmbed(place, whole, { ...PLAIN, config: config(), tooltip }));
  // A picture that is still too wide is scrolled, so that its words stay legible.
  if (whole.usermeta?.least > room) place.querySelector("svg").style.minWidth = `${0.9 * whole.width}px`;
}

function draw() {
  for (const id of Object.keys(specs)) drawOne(id).catch((error) => console.error(id, error));
}

const PAPER = {
  background: "white", font: "Helvetica, Arial, sans-serif", view: { stroke: null },
  axis: {
    labelColor: "#333", titleColor: "#333", gridColor: "#e3e3e3", domainColor: "#999",
    tickColor: "#999", titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 13,
  },
  legend: {
    titleColor: "#333", titleFontSize: 12, labelColor: "#333", labelFontSize: 12, labelLimit: 300, orient: "bottom", columns: 3,
    direction: "horizontal", symbolOpacity: 1,
  },
};

// The picture as a file, on white paper.
async function picture(id, kind) {
  const whole = "concat" in specs[id] || "vconcat" in specs[id];
  const size = whole ? {} : { width: 760, height: 340 };
  const spec = { ...size, ...specs[id], config: PAPER, padding: 14 };
  const made = await vegaEmbed(document.createElement("div"), spec, PLAIN);
  const url = await made.view.toImageURL(kind, 2);
  made.finalize();
  Object.assign(document.createElement("a"), { href: url, download: `${id}.${kind}` }).click();
}

function offer(id) {
  const caption = document.getElementById(id).parentElement.querySelector("figcaption");
  for (const kind of ["svg", "png"]) {
    const button = document.createElement("button");
    button.textContent = kind.toUpperCase();
    button.addEventListener("click", () => picture(id, kind));
    caption.append(" ", button);
  }
}

// Base 85: five letters are four bytes, the highest first.
function bytesOf(text) {
  const letters =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_/{|}~";
  const values = new Uint8Array(128);
  for (let at = 0; at < letters.length; at++) values[letters.charCodeAt(at)] = at;
  const missing = (5 - (text.length % 5)) % 5;
  const whole = text + "~".repeat(missing);
  const bytes = new Uint8Array((whole.length / 5) * 4);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < whole.length; at += 5) {
    let number = 0;
    for (let i = 0; i < 5; i++) number = number * 85 + values[whole.charCodeAt(at + i)];
    view.setUint32((at / 5) * 4, number);
  }
  return bytes.subarray(0, bytes.length - missing);
}

async function unpacked() {
  const bytes = bytesOf(document.getElementById("library").textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function start() {
  const script = document.createElement("script");
  script.textContent = await unpacked();
  document.head.append(script);
  draw();
  Object.keys(specs).forEach(offer);
  dark.addEventListener("change", draw);
  let room = window.innerWidth, timer = 0;
  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (window.innerWidth !== room) { room = window.innerWidth; draw(); }
    }, 150);
  });
}

start().catch((error) => {
  for (const id of Object.keys(specs)) {
    document.getElementById(id).textContent = `This browser cannot draw the chart (${error}).`;
  }
});
