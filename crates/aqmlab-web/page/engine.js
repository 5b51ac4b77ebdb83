// The engine: commands in, answers out. See crates/aqmlab-web/src/lab.rs.
//
// QUIC libraries ask for the system's time and random numbers. Both are constants here: a run takes
// its own from the scenario. There are no variables and no files: 8 is EBADF of WASI.
const memory = () => new DataView(engine.wasm.memory.buffer);
const system = {
  random_get(place, length) { new Uint8Array(memory().buffer, place, length).fill(1); return 0; },
  clock_time_get(_clock, _precision, place) { memory().setBigUint64(place, 0n, true); return 0; },
  environ_sizes_get(count, size) { memory().setUint32(count, 0, true); memory().setUint32(size, 0, true); return 0; },
  environ_get: () => 0,
  fd_write: () => 8,
  proc_exit(status) { throw new Error(`the engine stopped with status ${status}`); },
};
const engine = {
  async load() {
    const text = atob(document.getElementById("engine").textContent.trim());
    const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = await new Response(plain).arrayBuffer();
    this.wasm = (await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: system })).instance.exports;
  },
  bytes(...parts) {
    const command = new TextEncoder().encode(parts.join("\n"));
    const place = this.wasm.input(command.length);
    new Uint8Array(this.wasm.memory.buffer, place, command.length).set(command);
    const length = this.wasm.call();
    return new Uint8Array(this.wasm.memory.buffer, this.wasm.output(), length).slice();
  },
  json(...parts) {
    const text = new TextDecoder().decode(this.bytes(...parts));
    const answer = text === "" ? null : JSON.parse(text);
    if (answer && answer.error) throw new Error(answer.error);
    return answer;
  },
  numbers(...parts) {
    return new Float64Array(this.bytes(...parts).buffer);
  },
};
const nanos = (seconds) => String(Math.round(seconds * 1e9));
