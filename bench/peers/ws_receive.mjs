// Counts the messages of one connection with Node's `ws`: URL, and how many to let pass before the clock starts.
import { WebSocket, version } from '../../tests/peers/ws.mjs';

const [url, skip] = [process.argv[2], Number(process.argv[3])];
const socket = new WebSocket(url, { perMessageDeflate: false });
let count = 0;
let bytes = 0;
let cpu;
let wall;
socket.on('message', (data) => {
  if (count++ === skip) {
    cpu = process.cpuUsage();
    wall = process.hrtime.bigint();
  }
  bytes += data.length;
});
socket.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
socket.on('close', () => {
  const used = process.cpuUsage(cpu);
  const wallSeconds = Number(process.hrtime.bigint() - wall) / 1e9;
  const cpuSeconds = (used.user + used.system) / 1e6;
  const measured = count - skip;
  console.log(JSON.stringify({
    count: measured,
    total: count,
    bytes,
    cpu_s: cpuSeconds,
    wall_s: wallSeconds,
    per_core_second: measured / cpuSeconds,
    per_second: measured / wallSeconds,
    cpu_ns_each: (cpuSeconds / measured) * 1e9,
    ws: version,
  }));
});
