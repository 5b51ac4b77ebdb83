// What can be taken away: TOML, a link, pictures, a table.
function offer(title, text, value, files = []) {
  byId("dialog-title").textContent = title;
  byId("dialog-text").textContent = text;
  byId("dialog-value").value = value;
  byId("dialog-files").replaceChildren(...files.map(([label, name, content]) => element("a", { className: "button", textContent: label, download: name,
    href: URL.createObjectURL(new Blob([content], { type: "text/plain" })) })));
  byId("dialog").showModal();
  byId("dialog-value").setSelectionRange(0, 0);
  byId("dialog-value").scrollTop = 0;
}

function saveToml() {
  pause();
  const saved = [0, 1].map((number) => engine.json("save", number, nanos(lab.time)));
  const parts = saved.map((each, number) => [
    `# Queue ${"AB"[number]} of the live lab, up to ${lab.time.toFixed(3)} s.`,
    `# scenario ${each.scenario}`, `# result ${each.result}`, "", each.toml].join("\n"));
  byId("dialog").dataset.results = JSON.stringify(saved.map((each) => each.result));
  const text = "Two scenarios, one for each side, a file each. \"aqmlab lab --digest FILE\" prints the same result digest, and \"aqmlab run FILE\" the figures.";
  const files = parts.map((part, number) => [`Download ${"AB"[number]}`, `aqmlab-lab-${"ab"[number]}.toml`, part]);
  offer("Scenario", text, parts.join("\n# ----------------------------------------\n"), files);
}

async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

async function shareLink() {
  pause();
  const shared = JSON.stringify({ first: lab.first, log: lab.log, time: lab.time });
  const address = `${location.href.split("#")[0]}#s=${await pack(shared)}`;
  offer("Link", "This address contains the scenario and all changes: it opens the lab in the same state.", address);
}

function picture() {
  const [one, other] = ["queue-0", "queue-1"].map(byId);
  const [width, height] = [one.clientWidth, one.clientHeight];
  const groups = chartGroups();
  const below = groups.reduce((sum, group) => sum + chartHeight(group), 0);
  const canvas = element("canvas", { width: 2 * (2 * width + 30), height: 2 * (height + below + 70) });
  const cx = canvas.getContext("2d");
  cx.scale(2, 2);
  cx.fillStyle = ink.panel; cx.fillRect(0, 0, canvas.width, canvas.height);
  cx.fillStyle = ink.ink; cx.font = "600 15px system-ui";
  [one, other].forEach((box, number) => {
    const x = 10 + number * (width + 10);
    cx.fillText(`${"AB"[number]}  ${byId(`name-${number}`).textContent}`, x, 20);
    cx.drawImage(box, x, 30, width, height);
  });
  cx.save();
  cx.translate(10, height + 40);
  for (const group of groups) { drawCharts(group, cx, 2 * width + 10); cx.translate(0, chartHeight(group)); }
  cx.restore();
  cx.fillStyle = ink.ink; cx.font = "12px system-ui"; cx.textAlign = "left";
  cx.fillText(`aqmlab live lab, ${lab.time.toFixed(2)} s`, 10, height + below + 60);
  return canvas;
}

function download(name, content, type) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  return content;
}

function savePng() {
  picture().toBlob((blob) => download("aqmlab-lab.png", blob, "image/png"));
}

// The charts as vectors: drawn again by a context that writes SVG.
function svgText() {
  const width = 900;
  let height = 30;
  const charts = chartGroups().map((group) => {
    const recorder = new SvgContext();
    drawCharts(group, recorder, width);
    height += chartHeight(group);
    return `<g transform="translate(0 ${height - chartHeight(group)})">${recorder.text()}</g>`;
  });
  const names = [0, 1].map((number) => `<tspan fill="${ink["ab"[number]]}">${"AB"[number]}</tspan> ${escaped(byId(`name-${number}`).textContent)}`);
  const title = `<text x="${MARGIN.left}" y="20" font-weight="600" fill="${ink.ink}">${names.join("&#160;&#160;")}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12"><rect width="100%" height="100%" fill="${ink.panel}"/>${title}${charts.join("")}</svg>\n`;
}
const saveSvg = () => download("aqmlab-lab.svg", svgText(), "image/svg+xml");

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// As much of a canvas's context as the charts use.
class SvgContext {
  constructor() { this.out = []; this.path = ""; this.dash = []; this.globalAlpha = 1; this.textAlign = "left"; this.font = "12px"; this.clips = 0; this.open = []; }
  text() { return this.out.join(""); }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  rect(x, y, w, h) { this.box = [x, y, w, h]; }
  save() { this.open.push(0); }
  restore() { if (this.open.pop()) this.out.push("</g>"); }
  clip() {
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const [x, y, w, h] = this.box;
    this.out.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath><g clip-path="url(#${id})">`);
    this.open[this.open.length - 1] = 1;
  }
  stroke() {
    if (!this.path) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}/>`);
  }
  strokeRect(x, y, w, h) { this.out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="none" stroke="${this.strokeStyle}"/>`); }
  fillRect(x, y, w, h) { this.out.push(`<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${Math.max(0, h).toFixed(1)}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/>`); }
  fillText(text, x, y) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${this.fillStyle}" text-anchor="${anchor}">${escaped(text)}</text>`);
  }
}

function csvText() {
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = ["side,queue,time_s,sojourn_max_s,backlog_packets,drops,marks,group,group_drops,delay_max_s,goodput_bps,window_bytes,mos,page_load_s,frames_missed,packets_late,rtt_s"];
  lab.sides.forEach((side, number) => {
    const name = byId(`name-${number}`).textContent;
    side.bins.forEach((bin) => {
      if (!bin) return;
      const add = (...cells) => rows.push(["AB"[number], quote(name), bin.t.toFixed(3), ...cells].join(","));
      add(bin.sojourn ?? "", bin.state.backlog_packets, bin.drops, bin.marks, ",,,,,,,,,");
      side.groups.forEach((group, index) => add(",,,", quote(group), bin.lost[index] ?? 0,
        bin.delays[index]?.toFixed(6) ?? "", bin.goodput[index]?.toFixed(0) ?? "", bin.windows[index] ?? "",
        ...FELT.map((each) => bin.felt[`${each.quantity} ${index}`]?.toFixed(6) ?? "")));
    });
  });
  return `${rows.join("\n")}\n`;
}
const saveCsv = () => download("aqmlab-lab.csv", csvText(), "text/csv");
