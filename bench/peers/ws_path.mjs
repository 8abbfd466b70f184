// The whole path in Node: `ws`, JSON.parse for the number, records to a file stream. URL, folder, messages to let
// pass before the clock starts, and `each` (a write for each record, as one would begin) or `batched` (the records
// of one turn of the event loop in one write).
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { WebSocket, version } from '../../tests/peers/ws.mjs';

const [url, folder, skipText, how] = process.argv.slice(2);
const skip = Number(skipText);
const file = createWriteStream(join(folder, `node-${process.pid}.ndjson`), { highWaterMark: 1 << 20 });
const socket = new WebSocket(url, { perMessageDeflate: false });
let count = 0;
let last;
let cpu;
let wall;
let batch = '';

function write(text) {
  if (file.write(text)) return;
  socket.pause();
  file.once('drain', () => socket.resume());
}

function flush() {
  const text = batch;
  batch = '';
  if (text) write(text);
}

socket.on('message', (message, binary) => {
  if (count++ === skip) {
    cpu = process.cpuUsage();
    wall = process.hrtime.bigint();
  }
  const data = message.toString();
  const { seq } = JSON.parse(data);
  if (last !== undefined && seq !== last + 1) throw new Error(`a hole after ${last}`);
  last = seq;
  const record = JSON.stringify({ conn: 'bench', epoch: 1, seq, at_ms: Date.now(), data }) + '\n';
  if (how === 'each') return write(record);
  if (!batch) setImmediate(flush);
  batch += record;
});
socket.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
socket.on('close', () => {
  flush();
  file.end(() => {
    const used = process.cpuUsage(cpu);
    const wallSeconds = Number(process.hrtime.bigint() - wall) / 1e9;
    const cpuSeconds = (used.user + used.system) / 1e6;
    const measured = count - skip;
    console.log(JSON.stringify({
      count: measured,
      bytes: file.bytesWritten,
      cpu_s: cpuSeconds,
      wall_s: wallSeconds,
      per_core_second: measured / cpuSeconds,
      per_second: measured / wallSeconds,
      cpu_ns_each: (cpuSeconds / measured) * 1e9,
      ws: version,
    }));
  });
});
