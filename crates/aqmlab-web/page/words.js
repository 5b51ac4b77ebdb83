// What is seen, in words: from the bins of the last second.
function describe(number) {
  const side = lab.sides[number];
  const end = Math.floor(lab.time / BIN + 1e-6);
  const second = Math.max(1, Math.round(1 / BIN));
  const bins = side.bins.slice(Math.max(0, end - second), end).filter(Boolean);
  if (lab.scene.live && !bins.length) return ["Waiting for the emulator."];
  if (bins.length < Math.min(5, second)) return ["Press Play: packets of each flow have a colour, and queue for the link."];
  const sum = (of) => bins.reduce((total, bin) => total + of(bin), 0);
  const waits = bins.filter((bin) => bin.least !== null);
  const now = bins[bins.length - 1];
  const out = [];
  out.push(standing(number, waits, bins));
  out.push(signals(number, sum((bin) => bin.drops), sum((bin) => bin.marks), bins));
  const busy = busyOf(now, side.bins[end - bins.length - 1]);
  if (busy > 0 && busy < 0.9) out.push(`The link was busy for ${percent(busy)} of the last second.`);
  const packets = sum((bin) => bin.left + bin.drops);
  out.push(control(number, now, bins, packets && sum((bin) => bin.drops + bin.marks) / packets));
  return out.filter(Boolean);
}

// The share of the time in which a link of a known rate sends.
function busyOf(now, before) {
  if (lab.scene.toml) return null;
  const sent = now.state.delivered_bytes - (before?.state.delivered_bytes ?? 0);
  return (sent * 8) / (bits(lab.scene.rate) * (now.t - (before?.t ?? 0)));
}

function standing(number, waits, bins) {
  if (!waits.length) return "No packet passes.";
  if (lab.scene.live) return livelyStanding(waits[waits.length - 1]);
  const least = Math.min(...waits.slice(-10).map((bin) => bin.least));
  const most = Math.max(...waits.map((bin) => bin.sojourn));
  const target = targetOf(number);
  const rtt = lab.scene.toml ? null : seconds(lab.scene.rtt);
  const apart = FLOW_QUEUES.test(lab.scene.sides[number]?.discipline ?? "") ? byGroup(number, bins) : null;
  if (apart && most > 0.005) return apart;
  if (target !== null && least > target) {
    const since = bins.length - 1 - bins.findLastIndex((bin) => bin.least !== null && bin.least <= target);
    const span = since >= bins.length ? "more than a second" : ms(since * BIN);
    return `The queue has been above its target of ${ms(target)} for ${span}: each packet waits at least ${ms(least)}.`;
  }
  if (rtt && least > rtt) return `Standing queue: each packet waits at least ${ms(least)}, ${(least / rtt).toFixed(1)} times the base round-trip time.`;
  if (least < 0.001 && most < 0.005) return `The queue is nearly empty: packets wait at most ${ms(most)}.`;
  if (least < 0.002) return `The queue absorbs bursts of up to ${ms(most)} and drains again.`;
  return `Packets wait ${ms(least)} to ${ms(most)}.`;
}

// With a queue for each flow, one can stand while another is empty: the groups that wait longest and least.
function byGroup(number, bins) {
  const waits = [];
  for (const bin of bins) bin.waits.forEach((waited, group) => { waits[group] = Math.max(waits[group] ?? 0, waited); });
  const order = Object.keys(waits).sort((one, other) => waits[one] - waits[other]);
  if (order.length < 2) return null;
  const [least, most] = [order[0], order[order.length - 1]];
  const name = (group) => lab.sides[number].groups[group];
  return `Packets of ${name(most)} wait up to ${ms(waits[most])}, those of ${name(least)} up to ${ms(waits[least])}.`;
}

// An emulator tells quantiles, of the half second before.
function livelyStanding(bin) {
  return `Half of the packets wait at most ${ms(bin.least)}, one in twenty ${ms(bin.sojourn)} or more.`;
}

// The reasons of drops, the most frequent first.
function why(reasons) {
  const order = Object.entries(reasons).sort((a, b) => b[1] - a[1]);
  const named = ([name, count]) => `${count} ${name === "overlimit" ? "full buffer" : name.replaceAll("_", " ")}`;
  if (order.length > 1) return ` (${order.map(named).join(", ")})`;
  const [reason] = order[0] ?? [""];
  if (reason === "overlimit") return " because the buffer was full";
  return reason ? ` (${reason.replaceAll("_", " ")})` : "";
}

function signals(number, drops, marks, bins) {
  const reasons = {};
  for (const bin of bins) for (const [name, count] of Object.entries(bin.reason)) reasons[name] = (reasons[name] ?? 0) + count;
  if (!drops && !marks) return "Nothing was dropped or marked in the last second.";
  const parts = [];
  if (drops) parts.push(`${drops} ${drops === 1 ? "packet was" : "packets were"} dropped${why(reasons)}`);
  if (marks) parts.push(`${marks} ${marks === 1 ? "was" : "were"} marked`);
  return `In the last second ${parts.join(", and ")}.`;
}

function control(number, now, bins, hit) {
  const name = lab.scene.sides[number]?.discipline ?? "";
  const state = now.state;
  if ("dropping" in state) {
    const before = bins[0].state.dropping;
    if (state.dropping > 0 && !before) return `${title(name)} has begun to drop: one packet now, the next sooner, until the queue gives way.`;
    if (state.dropping > 0) return `${title(name)} is dropping, each time a little sooner (count ${state.count}).`;
    return before ? `${title(name)} has stopped dropping: a packet came through in less than the target.` : null;
  }
  if (state.dropping_flows > 0) return `${state.dropping_flows} of ${state.active_flows ?? "the"} flow queues are being signalled; the others are left alone.`;
  if (FLOW_QUEUES.test(name) && state.active_flows !== undefined) {
    if (state.active_flows === 0) return null;
    return state.active_flows === 1 ? "One flow queue has packets." : `${state.active_flows} flow queues have packets and are served in turn.`;
  }
  if ("l4s_probability" in state && state.l4s_probability > 0) return `A base probability of ${percent(state.base_probability)} marks L4S packets with ${percent(state.l4s_probability)} (coupled) and drops or marks classic ones with ${percent(state.classic_probability)} (its square).`;
  const chance = probability(state);
  if (chance > 0) {
    const before = probability(bins[0].state) ?? 0;
    const way = chance > before * 1.1 ? "has risen to" : chance < before * 0.9 ? "has fallen to" : "is";
    // Controls spare short queues, and space their drops: the share may be far from the probability.
    return `The probability of a drop or mark ${way} ${percent(chance)}; ${percent(hit)} of the last second's packets were dropped or marked.`;
  }
  return null;
}

// What users feel, of both sides: the last value of each chart.
function describeFelt() {
  return feltPanels().map((panel) => {
    const values = panel.lines.map((bins, number) => {
      const value = bins.findLast((bin) => bin.t <= lab.time + 1e-9 && isThere(panel.value(bin)));
      return `${"AB"[number]} ${value ? `${+(panel.value(value) * panel.factor).toPrecision(3)} ${panel.unit.split(" ")[0]}` : "no value"}`;
    });
    return `${panel.title}: ${values.join(", ")}.`;
  }).join(" ");
}
const percent = (share) => `${(share * 100).toPrecision(2)}\u00a0%`;
const title = (name) => ({ codel: "CoDel", cobalt: "COBALT", codel_dt: "CoDel", pie: "PIE" })[name] ?? name;
