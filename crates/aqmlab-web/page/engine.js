// The engine: commands in, answers out. See crates/aqmlab-web/src/lab.rs.
const engine = {
  async load() {
    const text = atob(document.getElementById("engine").textContent.trim());
    const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = await new Response(plain).arrayBuffer();
    this.wasm = (await WebAssembly.instantiate(bytes, {})).instance.exports;
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
