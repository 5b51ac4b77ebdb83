// Puts the page together.
let catalogue = null;

function setSpeed(speed) {
  lab.speed = Number(speed);
  byId("speed").value = String(speed);
}

function listen() {
  byId("play").addEventListener("click", () => (lab.playing ? pause() : play()));
  byId("step").addEventListener("click", () => ui.attempt(stepPacket));
  byId("restart").addEventListener("click", () => ui.attempt(() => { pause(); goTo(0); ui.show(); }));
  byId("speed").addEventListener("change", (event) => setSpeed(event.target.value));
  byId("time").addEventListener("input", (event) => {
    const time = Number(event.target.value) / 1000; // A pause sets the slider to the present.
    pause();
    ui.attempt(() => { goTo(Math.min(lab.seen, time)); ui.show(); });
  });
  for (const key of ["rate", "rtt", "buffer"]) byId(key).addEventListener("change", (event) => setPath(key, event.target.value.trim()));
  byId("control").append(...senders().map((each) => element("option", { value: each.name, textContent: each.name, title: each.summary })));
  byId("control").addEventListener("change", (event) => { lab.scene.control = event.target.value; });
  byId("ecn").addEventListener("change", (event) => { lab.scene.ecn = event.target.value; });
  document.querySelectorAll("[data-add]").forEach((button) => button.addEventListener("click", () => addFlow(button.dataset.add)));
  const actions = { save: saveToml, link: shareLink, svg: saveSvg, png: savePng, csv: saveCsv };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", () => ui.attempt(action));
  byId("dialog-copy").addEventListener("click", () => {
    byId("dialog-value").select();
    if (navigator.clipboard) navigator.clipboard.writeText(byId("dialog-value").value); else document.execCommand("copy");
  });
  document.addEventListener("keydown", keys);
  setInterval(() => ui.tick(), 200);
}

function keys(event) {
  const has = (names) => event.target.matches(names);
  if (has("input, select, textarea") || (event.key === " " && has("button, summary, a")) || byId("dialog").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const back = (by) => ui.attempt(() => { pause(); goTo(Math.max(0, Math.min(lab.seen, lab.time + by))); ui.show(); });
  const actions = { " ": () => (lab.playing ? pause() : play()), ".": () => ui.attempt(stepPacket), ArrowLeft: () => back(-0.5), ArrowRight: () => back(0.5) };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

// Where the page begins: what a link or a server gives, or the usual scene.
async function firstScene() {
  const given = JSON.parse(byId("given").textContent);
  const shared = /[#&]s=([\w-]+)/.exec(location.hash);
  if (shared) return JSON.parse(await unpack(shared[1]));
  return given;
}

async function start() {
  await engine.load();
  if (location.hash === "#check") {
    byId("check").hidden = false;
    byId("check").textContent = new TextDecoder().decode(engine.bytes("check"));
    return;
  }
  catalogue = engine.json("catalogue");
  byId("version").textContent = catalogue.version;
  readInk();
  tours.fill();
  listen();
  const given = await firstScene();
  if (given?.live) live.begin(given.live);
  else if (given?.log) replay(given);
  else if (given || location.hash === "#free") openScene(makeScene(given));
  else tours.welcome();
  byId("control").value = lab.scene.control;
  byId("ecn").value = lab.scene.ecn;
  meter.ready = performance.now();
  requestAnimationFrame(frame);
}
start().catch((error) => { ui.say(error); throw error; });
window.lab = lab;
window.meter = meter;
