// A scene: a path, two queues, flows, and those that came later. It becomes one scenario for
// each side, which differ in their queue only.
const WORKLOADS = {
  download: {},
  call: { workload: "voip" },
  web: { workload: "page", quic: '{ kind = "page", connections = 1, streams = 100, tls = 0 }' },
  video: { workload: "video" },
  game: { workload: "game" },
  flood: {},
};
const DEFAULT_SCENE = {
  rate: "10mbit", rtt: "40ms", buffer: "250p", seed: 1, control: "cubic", ecn: "off",
  sides: [{ discipline: "droptail", params: {} }, { discipline: "codel", params: {} }],
  flows: [{ kind: "download" }, { kind: "download" }, { kind: "call" }],
  later: [],
};
// Calls, video, games and floods are datagrams without congestion control.
const canBeQuic = (kind) => kind === "download" || kind === "web";
// The stack and the controller of a flow of QUIC, `null` of others.
const quicOf = (flow) => (canBeQuic(flow.kind) && flow.control?.includes(":") ? flow.control.split(":") : null);
const senders = () => [...catalogue.controls, ...catalogue.quic];
const quoted = (text) => JSON.stringify(String(text));

const TIMES = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60 };
// The number and the unit of a time, or null.
function timeParts(text) {
  const parts = /^\s*(\d+\.?\d*|\.\d+)\s*(ns|us|ms|s|min)\s*$/i.exec(text ?? "");
  return parts && [Number(parts[1]), parts[2].toLowerCase()];
}

function seconds(text) {
  const parts = timeParts(text);
  return parts && parts[0] * TIMES[parts[1]];
}

function halved(rtt) {
  const parts = timeParts(rtt);
  if (!parts) throw new Error(`round-trip time: expected a time such as 40ms (units: ${Object.keys(TIMES).join(", ")}), got "${rtt}"`);
  return `${parts[0] / 2}${parts[1]}`;
}

function floodRate(rate) {
  const parts = /^\s*([\d.]+)\s*([a-z]+)\s*$/i.exec(rate);
  return parts ? `${Number((Number(parts[1]) * 0.8).toPrecision(6))}${parts[2]}` : "8mbit";
}

// A flow: the keys of `flows.NAME`.
function flowParts(flow) {
  const parts = ['path = ["bottleneck"]', 'return_path = ["back"]'];
  if (flow.kind === "flood") parts.push(`workload = { kind = "cbr", rate = ${quoted(flow.rate)}, packet = "1500b", vary = 0.1 }`);
  const known = WORKLOADS[flow.kind];
  const quic = quicOf(flow);
  // QUIC has no connection for each host, and its handshake contains TLS.
  if (known.workload) parts.push(`workload = ${quic ? known.quic : quoted(known.workload)}`);
  // Accurate feedback is what L4S builds on: its packets ask for it by ECT(1) (RFC 9331).
  const codepoint = flow.ecn === "accurate" ? ', ecn_codepoint = "ect1"' : "";
  if (quic) parts.push(`endpoint = { kind = "quic", stack = ${quoted(quic[0])}, controller = ${quoted(quic[1])}, ecn = ${flow.ecn !== "off"} }`);
  else parts.push(`transport = { congestion_control = ${quoted(flow.control.includes(":") ? "cubic" : flow.control)}, ecn = ${quoted(flow.ecn)}${codepoint} }`);
  if (flow.start) parts.push(`start = ${quoted(flow.start)}`);
  return parts;
}
const flowTable = (flow) => `{ ${flowParts(flow).join(", ")} }`;

function queueTable(scene, side) {
  const parts = [`discipline = ${quoted(side.discipline)}`];
  const params = { ...side.params };
  if (scene.buffer && !("limit" in params) && hasLimit(side.discipline)) params.limit = scene.buffer;
  for (const [key, value] of Object.entries(params)) parts.push(`${key} = ${quoted(value)}`);
  return `{ ${parts.join(", ")} }`;
}

const queueOf = (name) => catalogue.queues.find((queue) => queue.name === name);
const isFixed = (name, key) => (catalogue.fixed[queueOf(name)?.of ?? name] ?? []).includes(key);
const hasLimit = (name) => (queueOf(name)?.params ?? []).some((param) => param.name === "limit");

function sceneToml(scene, number) {
  if (scene.toml) return scene.toml[number];
  const half = halved(scene.rtt);
  const lines = [
    'duration = "3600s"', `seed = ${scene.seed}`, 'bottleneck = "bottleneck"', "",
    "[links.bottleneck]", `rate = ${quoted(scene.rate)}`, `delay = ${quoted(half)}`,
    `queue = ${queueTable(scene, scene.sides[number])}`, "",
    "[links.back]", 'rate = "1gbit"', `delay = ${quoted(half)}`, 'queue = { discipline = "droptail", limit = "10000p" }', "",
  ];
  for (const flow of scene.flows) lines.push(`[flows.${flow.name}]`, ...flowParts(flow), "");
  if (!scene.flows.length) lines.push("[flows.none]", 'path = ["bottleneck"]', 'return_path = ["back"]', 'size = "1b"', 'start = "3599s"', "");
  return lines.join("\n");
}

function nameFlow(scene, flow) {
  const taken = new Set([...scene.flows, ...scene.later].map((each) => each.name));
  let number = 1;
  while (taken.has(`${flow.kind}-${number}`)) number += 1;
  flow.name = `${flow.kind}-${number}`;
  flow.control ??= scene.control;
  flow.ecn ??= scene.ecn;
  if (flow.kind === "flood") flow.rate ??= floodRate(scene.rate);
  return flow;
}

function makeScene(given) {
  const scene = structuredClone({ ...DEFAULT_SCENE, ...given });
  if (scene.toml) Object.assign(scene, { sides: scene.names.map((discipline) => ({ discipline, params: {} })), flows: [] });
  for (const flow of scene.flows) if (!flow.name) nameFlow(scene, flow);
  for (const side of scene.sides) side.params ??= {};
  return scene;
}
