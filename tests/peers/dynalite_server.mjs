// dynalite, an independent DynamoDB in memory, on a port of 127.0.0.1 that the system chooses; prints the port.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

function load() {
  try {
    return require('dynalite');
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    console.error('dynalite is not installed: run `npm ci` in tests/peers, or ./dev setup test');
    process.exit(2);
  }
}

// What AWS takes seconds for (a table, an index) is there at once.
const server = load()({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
