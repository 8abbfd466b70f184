// A server on Node's `ws` that does what the path of a connection asks for: see README.md.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { parseArgs } from 'node:util';
import { WebSocketServer } from './ws.mjs';

const { values: options } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    cert: { type: 'string' },
    key: { type: 'string' },
  },
});

const known = ['v2.example', 'v1.example'];
const textUnit = Buffer.from('aé€😀');
const binaryUnit = Buffer.from([246, 247, 248, 249, 250, 251, 252, 253, 254, 255]);

function pattern(query) {
  const binary = query.get('binary') === '1';
  const units = Number(query.get('units') ?? 1);
  return { binary, data: Buffer.alloc(units * 10, binary ? binaryUnit : textUnit) };
}

const send = (socket, data, how) =>
  new Promise((resolve, reject) => socket.send(data, how, (error) => (error ? reject(error) : resolve())));

async function sendSmall(socket, query) {
  const count = Number(query.get('count') ?? 0);
  for (let i = 0; i < count; i++) await send(socket, String(i), {});
}

const scenarios = {
  '/echo': (socket) => socket.on('message', (data, binary) => socket.send(data, { binary })),

  '/fragments': async (socket, query) => {
    const { binary, data } = pattern(query);
    const step = Number(query.get('step') ?? 7);
    for (let at = 0; at < data.length; at += step) {
      await send(socket, data.subarray(at, at + step), { binary, fin: at + step >= data.length });
    }
  },

  '/pings': async (socket, query) => {
    const { data } = pattern(query);
    const step = Number(query.get('step') ?? 7);
    let pinged = 0;
    let answered = 0; // a client may leave pings out when a later one has come: RFC 6455, 5.5.3
    let done = false;
    const tell = () => {
      if (done && answered === pinged) socket.send('all answered');
    };
    socket.on('pong', (payload) => {
      const number = Number(payload.toString().replace(/^ping /, ''));
      if (!(number >= answered && number < pinged)) return socket.close(4000, `unexpected pong ${payload}`);
      answered = number + 1;
      tell();
    });
    for (let at = 0; at < data.length; at += step) {
      const fin = at + step >= data.length;
      await send(socket, data.subarray(at, at + step), { binary: false, fin });
      if (!fin) socket.ping(`ping ${pinged++}`);
    }
    done = true;
    tell();
  },

  '/many': async (socket, query) => {
    const count = Number(query.get('count'));
    const size = Number(query.get('size'));
    for (let i = 0; i < count; i++) {
      const message = `${i} `.padEnd(size, 'x');
      if (socket.bufferedAmount > 1 << 20) await send(socket, message, {});
      else socket.send(message);
    }
    socket.close(1000);
  },

  '/large': (socket, query) => {
    const { binary, data } = pattern(query);
    socket.send(data, { binary });
  },

  '/headers': (socket, query, request) => socket.send(JSON.stringify(request.headers)),

  '/close': async (socket, query) => {
    await sendSmall(socket, query);
    socket.close(Number(query.get('code')), query.get('reason') ?? '');
  },

  '/abrupt': async (socket, query) => {
    await sendSmall(socket, query);
    socket.terminate();
  },

  '/report': (socket) => socket.on('close', (code, reason) => console.log(`closed ${code} ${reason}`)),
};

const server = options.cert
  ? createSecureServer({ cert: readFileSync(options.cert), key: readFileSync(options.key) })
  : createServer();
const sockets = new WebSocketServer({
  server,
  handleProtocols: (offered) => known.find((name) => offered.has(name)) ?? false,
});
sockets.on('connection', (socket, request) => {
  const url = new URL(request.url, 'ws://localhost');
  socket.on('error', () => {}); // how it ended is told by 'close'
  const scenario = scenarios[url.pathname];
  if (!scenario) return socket.close(4004, 'no such path');
  Promise.resolve(scenario(socket, url.searchParams, request)).catch(() => socket.terminate());
});
server.listen(0, options.host, () => console.log(server.address().port));
