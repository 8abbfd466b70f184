// What a client under measure has used for its messages, in the form that the bench reads. The first `skip` messages
// pass before the clock starts.
import { version } from '../../tests/peers/ws.mjs';

export class Meter {
  total = 0;

  constructor(skip) {
    this.skip = skip;
  }

  message() {
    if (this.total++ !== this.skip) return;
    this.cpu = process.cpuUsage();
    this.wall = process.hrtime.bigint();
  }

  print(more) {
    const used = process.cpuUsage(this.cpu);
    const wallSeconds = Number(process.hrtime.bigint() - this.wall) / 1e9;
    const cpuSeconds = (used.user + used.system) / 1e6;
    const count = this.total - this.skip;
    console.log(JSON.stringify({
      count,
      ...more,
      cpu_s: cpuSeconds,
      wall_s: wallSeconds,
      per_core_second: count / cpuSeconds,
      per_second: count / wallSeconds,
      cpu_ns_each: (cpuSeconds / count) * 1e9,
      ws: version,
    }));
  }
}

// A client that cannot go on says why and fails.
export function failOnError(socket) {
  socket.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
}
