// Counts the messages of one connection with Node's `ws`: URL, and how many to let pass before the clock starts.
import { WebSocket } from '../../tests/peers/ws.mjs';
import { Meter, failOnError } from './meter.mjs';

const meter = new Meter(Number(process.argv[3]));
const socket = new WebSocket(process.argv[2], { perMessageDeflate: false });
let bytes = 0;
socket.on('message', (data) => {
  meter.message();
  bytes += data.length;
});
failOnError(socket);
socket.on('close', () => meter.print({ total: meter.total, bytes }));
