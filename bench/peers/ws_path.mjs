// The whole path in Node: `ws`, JSON.parse for the number, records to a file stream. URL, folder, messages to let
// pass before the clock starts, and `each` (a write for each record, as one would begin) or `batched` (the records
// of one turn of the event loop in one write).
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from '../../tests/peers/ws.mjs';
import { Meter, failOnError } from './meter.mjs';

const [url, folder, skip, how] = process.argv.slice(2);
const meter = new Meter(Number(skip));
const file = createWriteStream(join(folder, `node-${process.pid}.ndjson`), { highWaterMark: 1 << 20 });
const socket = new WebSocket(url, { perMessageDeflate: false });
let last;
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
  meter.message();
  const data = message.toString();
  const { seq } = JSON.parse(data);
  if (last !== undefined && seq !== last + 1) throw new Error(`a hole after ${last}`);
  last = seq;
  const record = JSON.stringify({ conn: 'bench', epoch: 1, seq, at_ms: Date.now(), data }) + '\n';
  if (how === 'each') return write(record);
  if (!batch) setImmediate(flush);
  batch += record;
});
failOnError(socket);
socket.on('close', () => {
  flush();
  file.end(() => meter.print({ bytes: file.bytesWritten }));
});
