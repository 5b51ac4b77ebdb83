// The settings: made from what the engine declares.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
const byId = (id) => document.getElementById(id);

function buildSide(number) {
  const box = byId(`side-${number}`);
  const side = lab.scene.sides[number];
  const [focused, wasOpen] = [document.activeElement.id, box.querySelector("details")?.open];
  box.replaceChildren(element("legend", { textContent: `Queue ${"AB"[number]}` }));
  if (lab.scene.toml) { box.append(element("p", { className: "hint", textContent: lab.scene.live ? "A link of the emulator, as it is." : "As the scenario says." })); return; }
  const select = element("select", { id: `discipline-${number}` });
  for (const queue of catalogue.queues) select.append(element("option", { value: queue.name, textContent: queue.name, title: queue.summary }));
  select.value = side.discipline;
  select.addEventListener("change", () => setQueue(number, select.value));
  box.append(element("label", { className: "field" }, "Discipline ", select));
  const known = queueOf(side.discipline);
  box.append(element("p", { className: "hint", textContent: `${known.summary}.` }));
  const first = known.params.filter((param) => /^(target|interval|max_p|min_threshold|max_threshold|ecn|quantum|coupling)$/.test(param.name));
  const rest = known.params.filter((param) => !first.includes(param) && param.name !== "limit");
  first.forEach((param) => box.append(...knob(number, param)));
  if (rest.length) {
    const more = element("details", { open: wasOpen ?? false }, element("summary", { textContent: `All ${known.params.length} parameters` }));
    [...rest, ...known.params.filter((param) => param.name === "limit")].forEach((param) => more.append(...knob(number, param)));
    box.append(more);
  }
  // A control that has just been used is made again, and keeps the focus.
  if (document.activeElement === document.body && focused && box.contains(byId(focused))) byId(focused).focus();
}

// One parameter: its control, what it means, its range and its source.
function knob(number, param) {
  const side = lab.scene.sides[number];
  const usual = queueOf(side.discipline).settings?.[param.name] ?? param.default ?? "";
  const value = side.params[param.name] ?? (param.name === "limit" && lab.scene.buffer ? lab.scene.buffer : usual);
  const choices = param.kind === "switch" ? ["true", "false"] : param.choices;
  const id = `knob-${number}-${param.name}`;
  let input;
  if (choices.length) {
    input = element("select", { id });
    const names = choices.includes(value) ? choices : [value, ...choices];
    for (const choice of names) input.append(element("option", { value: choice, textContent: choice }));
  } else {
    input = element("input", { id, autocomplete: "off" });
  }
  input.value = value;
  input.setAttribute("aria-describedby", `${id}-hint`);
  input.addEventListener("change", () => {
    const action = { kind: "param", side: number, name: param.name, value: input.value.trim() };
    ui.attempt(() => act(action), () => { input.value = value; });
  });
  const range = param.low !== null ? ` ${param.low} to ${param.high}.` : "";
  const anew = isFixed(side.discipline, param.name) ? " A change begins a new queue." : "";
  const meant = `${param.meaning.replaceAll("`", "")}${range} Default ${usual}.${anew} ${param.source}.`;
  return [element("label", { className: "field", htmlFor: id }, element("code", { textContent: param.name }), input),
    element("p", { className: "hint", id: `${id}-hint`, textContent: meant })];
}

function setQueue(number, discipline, params = {}) {
  ui.attempt(() => act({ kind: "queue", side: number, discipline, params }), () => buildSide(number));
}

// Rate, round-trip time and buffer are those of both sides.
function setPath(key, value) {
  ui.attempt(() => act({ kind: "path", key, value }), () => { byId(key).value = lab.scene[key]; });
}

function addFlow(kind, more = {}) {
  ui.attempt(() => act({ kind: "add", flow: nameFlow(lab.scene, { ...more, kind }) }));
}

function stopFlow(flow) {
  ui.attempt(() => act({ kind: "stop", name: flow.name }));
}

// Another control: a flow keeps the one that it began with, so another takes its place.
function replaceFlow(flow, control) {
  stopFlow(flow);
  addFlow(flow.kind, { control, ecn: flow.ecn });
}

const ui = {
  attempt(what, otherwise = () => {}) {
    try { what(); this.say(null); } catch (error) { otherwise(); this.say(error); }
  },
  say(error) {
    const box = byId("message");
    box.hidden = error === null;
    box.textContent = error === null ? "" : error.message;
    clearTimeout(this.timer);
    if (error) this.timer = setTimeout(() => { box.hidden = true; }, 8000);
  },
  sceneChanged() {
    [0, 1].forEach((number) => { buildSide(number); });
    for (const key of ["rate", "rtt", "buffer"]) byId(key).value = lab.scene[key];
    for (const id of ["path", "flows"]) byId(id).hidden = Boolean(lab.scene.toml);
    byId("save").disabled = Boolean(lab.scene.live);
    this.listFlows();
    this.show();
    redraw();
  },
  // What is seen, for those who listen: when the picture stands still.
  speak() {
    byId("spoken").textContent = [0, 1].map((number) => `${"AB"[number]}, ${byId(`name-${number}`).textContent}: ${describe(number).join(" ")}`).join(" ") + ` ${describeFelt()}`;
  },
  listFlows() {
    const flows = [...lab.scene.flows, ...lab.scene.later];
    byId("flow-list").replaceChildren(...flows.map((flow) => this.flowItem(flow)));
    const names = lab.sides[0].groups;
    byId("legend").replaceChildren(...names.map((name, group) => {
      const dot = element("i"); dot.style.background = colourOf(group);
      return element("li", {}, dot, name);
    }));
  },
  flowItem(flow) {
    const gone = flow.stopped !== undefined;
    const item = element("li", { className: gone ? "gone" : "" }, element("span", { textContent: gone ? `${flow.name}, stopped` : flow.name }));
    if (gone) return item;
    if (canBeQuic(flow.kind)) {
      const select = element("select", { ariaLabel: `Control of ${flow.name}` });
      for (const each of senders()) select.append(element("option", { value: each.name, textContent: each.name }));
      select.value = flow.control;
      select.addEventListener("change", () => replaceFlow(flow, select.value));
      item.append(select);
    }
    const stop = element("button", { type: "button", textContent: "Stop", ariaLabel: `Stop ${flow.name}` });
    stop.addEventListener("click", () => stopFlow(flow));
    item.append(stop);
    return item;
  },
  show() {
    byId("play").textContent = lab.playing ? "Pause" : "Play";
    const names = lab.scene.toml ? lab.scene.names : lab.scene.sides.map((side) => side.discipline);
    [0, 1].forEach((number) => { byId(`name-${number}`).textContent = names[number]; });
    this.tick();
  },
  tick() {
    const slider = byId("time");
    slider.max = String(Math.max(10, lab.seen * 1000));
    slider.value = String(lab.time * 1000);
    slider.setAttribute("aria-valuetext", `${lab.time.toFixed(2)} seconds`);
    byId("clock").textContent = lab.time < 1 && lab.speed < 0.1 ? `${(lab.time * 1000).toFixed(2)} ms` : `${lab.time.toFixed(2)} s`;
    [0, 1].forEach((number) => {
      const sentences = describe(number);
      const box = byId(`words-${number}`);
      if (box.textContent !== sentences.join(" ")) box.replaceChildren(...sentences.flatMap((text, place) => [place ? " " : "", element("span", { textContent: text })]));
    });
    byId("felt").setAttribute("aria-label", `Charts over time, A and B in each. ${describeFelt()}`);
  },
};
