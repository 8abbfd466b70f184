// Memory per idle connection of Node's `ws`: URLs (used in turn), and how many connections. Run with --expose-gc.
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from '../../tests/peers/ws.mjs';

const count = Number(process.argv[2]);
const urls = process.argv.slice(3);
const batch = 200;
const sockets = [];

const open = (i) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(urls[i % urls.length], { perMessageDeflate: false, rejectUnauthorized: false });
    socket.on('open', resolve);
    socket.on('error', reject);
    socket.on('message', () => {});
    sockets.push(socket);
  });

async function grow(to) {
  while (sockets.length < to) {
    const first = sockets.length;
    const wanted = Math.min(batch, to - first);
    await Promise.all(Array.from({ length: wanted }, (_, i) => open(first + i)));
  }
}

async function resident() {
  for (let i = 0; i < 3; i++) {
    global.gc();
    await sleep(100);
  }
  return process.memoryUsage.rss();
}

await grow(batch); // code, certificates and buffers that are there once
const before = await resident();
await grow(batch + count);
const after = await resident();
console.log(JSON.stringify({ count, resident_bytes: after, bytes_per_connection: (after - before) / count }));
process.exit(0);
