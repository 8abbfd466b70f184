// Node's `ws`: from node_modules beside this file, otherwise the one that Debian ships (package node-ws).
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

function load() {
  for (const name of ['ws', '/usr/share/nodejs/ws']) {
    try {
      return { library: require(name), version: require(`${name}/package.json`).version };
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  console.error("Node's ws is not installed: run `npm ci` in tests/peers, or install Debian's node-ws");
  process.exit(2);
}

const { library, version } = load();
export const { WebSocket, WebSocketServer } = library;
export { version };
