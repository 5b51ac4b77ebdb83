// The run of both sides: time, what was seen, and what changes.
let BIN = 0.02;
const lab = { scene: null, first: null, log: [], time: 0, seen: 0, speed: 1, playing: false, sides: [], reasons: [] };

function newSide() {
  return { bins: [], queue: [], falling: [], leaving: [], last: null, open: emptyBin(), flows: [], recent: [] };
}
const emptyBin = () => ({ sojourn: 0, least: Infinity, left: 0, drops: 0, marks: 0, reason: {}, lost: [], waits: [], delays: [] });

// Opens a scene at its start.
function openScene(scene) {
  const sides = [0, 1].map((number) => {
    const side = newSide();
    side.info = engine.json("open", number, scene.link ?? 0, sceneToml(scene, number));
    side.groups = side.info.flows;
    if (scene.toml) engine.json("open", number, side.info.bottleneck, sceneToml(scene, number));
    return side;
  });
  Object.assign(lab, { scene, sides, time: 0, seen: 0, first: structuredClone(scene), log: [] });
  ui.sceneChanged();
}

// Goes on, in steps of a bin, to `time`.
function goOn(time) {
  lab.sides.forEach((side, number) => {
    const samples = engine.json("go", number, nanos(time), nanos(BIN));
    take(side, number, samples);
  });
  lab.time = time;
  lab.seen = Math.max(lab.seen, time);
}

function stepPacket() {
  pause();
  // Just after the first of the two packets.
  goOn(Math.min(...[0, 1].map((number) => engine.json("next", number))) + 1e-9);
  ui.show();
}

function goTo(time) {
  if (time > lab.time) {
    while (lab.time < time) goOn(Math.min(time, lab.time + 1));
    return settle();
  }
  lab.sides.forEach((side, number) => {
    engine.bytes("rewind", number, nanos(time));
    loadQueue(side, number);
  });
  lab.time = time;
  return settle();
}

function loadQueue(side, number) {
  const numbers = engine.numbers("waiting", number);
  Object.assign(side, { queue: [], falling: [], leaving: [], recent: [], open: emptyBin() });
  for (let at = 0; at < numbers.length; at += 4) {
    side.queue.push({ flow: numbers[at], group: numbers[at + 1], arrival: numbers[at + 3] });
  }
  const index = Math.floor(lab.time / BIN + 1e-6);
  side.last = side.bins[Math.max(0, index - 1)] ?? null;
}

function take(side, number, samples) {
  const events = engine.numbers("events", number);
  let at = 0;
  for (const sample of samples) {
    while (at < events.length && events[at] < sample.t) { takeEvent(side, events, at); at += 8; }
    closeBin(side, sample);
  }
  for (; at < events.length; at += 8) takeEvent(side, events, at);
  if (side.falling.length > 50) side.falling.splice(0, side.falling.length - 50);
  if (side.leaving.length > 30) side.leaving.splice(0, side.leaving.length - 30);
  if (side.recent.length > 12) side.recent.splice(0, side.recent.length - 12);
}

function takeEvent(side, events, at) {
  const [time, arrival, flow, group] = [events[at], events[at + 1], events[at + 2], events[at + 3]];
  const [size, what, reason, flags] = [events[at + 4], events[at + 5], events[at + 6], events[at + 7]];
  if (what === 0) { side.queue.push({ flow, group, arrival }); return; }
  const place = side.queue.findIndex((packet) => packet.flow === flow && packet.arrival === arrival);
  const packet = place >= 0 ? side.queue.splice(place, 1)[0] : { flow, group, arrival };
  const bin = side.open;
  if (what === 1) {
    const waited = time - arrival;
    bin.sojourn = Math.max(bin.sojourn, waited);
    bin.least = Math.min(bin.least, waited);
    bin.waits[group] = Math.max(bin.waits[group] ?? 0, waited);
    // The path of a scenario from a file is not known here.
    if (!lab.scene.toml) bin.delays[group] = Math.max(bin.delays[group] ?? 0, waited + (size * 8) / bits(lab.scene.rate) + seconds(halved(lab.scene.rtt)));
    bin.left += 1;
    packet.marked = (flags & 1) === 1;
    bin.marks += packet.marked ? 1 : 0;
    packet.since = performance.now();
    side.leaving.push(packet);
  } else {
    bin.drops += 1;
    const name = catalogue.reasons[reason];
    bin.reason[name] = (bin.reason[name] ?? 0) + 1;
    bin.lost[group] = (bin.lost[group] ?? 0) + 1;
    packet.since = performance.now();
    packet.waited = time > arrival;
    side.falling.push(packet);
    side.recent.push({ time, group, name });
  }
}

// A sample ends a bin: rates are what came since the one before.
function closeBin(side, sample) {
  const index = Math.round(sample.t / BIN) - 1;
  const before = index > 0 ? side.bins[index - 1] : null;
  const windows = [];
  for (const [, group, window] of sample.flows) if (window !== null) windows[group] = (windows[group] ?? 0) + window;
  const delivered = sample.delivered;
  const goodput = delivered.map((sum, group) => ((sum - (before?.delivered[group] ?? 0)) * 8) / BIN);
  // What applications measured: by quantity and group the mean of the times that ended in the bin,
  // and the scores of the second that ended with it.
  const [times, felt] = [{}, {}];
  for (const [group, name, count, sum] of sample.times) {
    const key = `${name} ${group}`;
    const [counted, total] = before?.times[key] ?? [0, 0];
    times[key] = [count, sum];
    if (count > counted) felt[key] = (sum - total) / (count - counted);
  }
  for (const [group, name, mean] of sample.scores) felt[`${name} ${group}`] = mean;
  const begun = sample.started.map((count, group) => (count > (before?.started[group] ?? 0) ? sample.t : before?.begun[group]));
  const bin = side.open;
  side.bins[index] = {
    t: sample.t, sojourn: bin.left ? bin.sojourn : null, least: bin.left ? bin.least : null, left: bin.left,
    drops: bin.drops, marks: bin.marks, reason: bin.reason, lost: bin.lost, waits: bin.waits,
    delays: bin.delays, delivered, goodput, windows, state: sample.link,
    times, felt, begun, started: sample.started,
  };
  side.open = emptyBin();
  side.flows = sample.flows;
  side.last = side.bins[index];
}

// What is turned. At the start it makes another scene; later it is an event of the run, of
// one side or of both, and what was seen after it is no longer so.
function act(action) {
  if (lab.time === 0) {
    const scene = structuredClone(lab.scene);
    applyAction(scene, action);
    scene.flows = [...scene.flows, ...scene.later].filter((flow) => flow.stopped === undefined);
    openScene(makeScene({ ...scene, later: [] }));
    return;
  }
  if (lab.seen > lab.time) fork();
  for (const [number, key, value, word = "set"] of changesOf(lab.scene, action)) engine.json(word, number, key, value);
  if (action.kind === "add") lab.sides.forEach((side) => side.groups.push(action.flow.name));
  lab.log.push({ ...action, at: lab.time });
  applyAction(lab.scene, action);
  ui.sceneChanged();
}

// The changes of the scenarios that an action makes: side, key and value of each, and `replace` if only a new queue takes it.
function changesOf(scene, action) {
  const both = (key, value) => [0, 1].map((number) => [number, key, value]);
  const link = "links.bottleneck";
  switch (action.kind) {
    case "queue": return [[action.side, `${link}.queue`, queueTable(scene, action)]];
    case "param": {
      const word = isFixed(scene.sides[action.side].discipline, action.name) ? "replace" : "set";
      return [[action.side, `${link}.queue.${action.name}`, quoted(action.value), word]];
    }
    case "add": return both(`flows.${action.flow.name}`, flowTable(action.flow));
    case "stop": return both(`flows.${action.name}.active`, "false");
    default:
  }
  if (action.key === "rate") return both(`${link}.rate`, quoted(action.value));
  if (action.key === "rtt") {
    const half = quoted(halved(action.value));
    return [...both(`${link}.delay`, half), ...both("links.back.delay", half)];
  }
  const limited = [0, 1].filter((number) => hasLimit(scene.sides[number].discipline));
  return limited.map((number) => [number, `${link}.queue.limit`, quoted(action.value)]);
}

// What a scene is after an action.
function applyAction(scene, action) {
  const flows = [...scene.flows, ...scene.later];
  switch (action.kind) {
    case "queue": scene.sides[action.side] = { discipline: action.discipline, params: { ...action.params } }; break;
    case "param": scene.sides[action.side].params[action.name] = action.value; break;
    case "add": scene.later.push({ ...action.flow }); break;
    case "stop": flows.find((flow) => flow.name === action.name).stopped = true; break;
    default: scene[action.key] = action.value;
  }
}

// The settings are those of the moment that is shown.
function settle() {
  const { control, ecn } = lab.scene;
  lab.scene = structuredClone(lab.first);
  Object.assign(lab.scene, { control, ecn });
  for (const action of lab.log) if (action.at <= lab.time + 1e-9) applyAction(lab.scene, action);
  ui.sceneChanged();
}

function fork() {
  const bins = Math.floor(lab.time / BIN + 1e-6);
  lab.log = lab.log.filter((action) => action.at <= lab.time + 1e-9);
  const groups = lab.first.flows.length + lab.log.filter((action) => action.kind === "add").length;
  lab.sides.forEach((side, number) => {
    engine.bytes("fork", number);
    side.bins.length = Math.min(side.bins.length, bins);
    if (!lab.scene.toml) side.groups.length = Math.max(groups, lab.first.flows.length ? 0 : 1);
  });
  lab.seen = lab.time;
}

// A scene and all that was done to it, done again.
function replay(shared) {
  openScene(makeScene(shared.first));
  for (const action of shared.log) {
    goTo(action.at);
    act(action);
  }
  goTo(shared.time);
  ui.show();
}

const lasts = () => Math.min(...lab.sides.map((side) => side.info.duration));
function play() { lab.playing = !lab.scene.live; ui.show(); }
function pause() {
  const played = lab.playing;
  lab.playing = false;
  ui.show();
  if (played) ui.speak();
}

// One frame: as much virtual time as the speed says, or as the engine can do.
let frameBefore = null;
function frame(now) {
  const passed = frameBefore === null ? 0 : Math.min(0.1, (now - frameBefore) / 1000);
  frameBefore = now;
  if (lab.playing && passed > 0) {
    try {
      const target = Math.min(lasts(), lab.time + passed * lab.speed);
      const until = tours.until();
      goOn(until !== null && target >= until ? until : target);
      if (until !== null && target >= until) tours.arrived();
      if (target >= lasts()) pause();
    } catch (error) { pause(); ui.say(error); }
  }
  draw(now);
  meter.frames += 1;
  if (meter.first === null && lab.sides.some((side) => side.queue.length + side.leaving.length > 0)) meter.first = performance.now();
  requestAnimationFrame(frame);
}
// For measuring: frames drawn, and when the script began, was ready and drew the first packet.
const meter = { frames: 0, start: performance.now(), ready: null, first: null };
