// Conditional updates with the AWS SDK for JavaScript v3: ENDPOINT COUNT WINDOW REQUEST, the last being the call's
// parameters as JSON; WINDOW of them are in flight at any time. A quarter as many pass before the clock starts. Prints
// the figures as JSON.
import { createRequire } from 'node:module';
import { Agent } from 'node:http';

const require = createRequire(new URL('../../tests/peers/package.json', import.meta.url));
const { DynamoDBClient, UpdateItemCommand } = require('@aws-sdk/client-dynamodb');
const { NodeHttpHandler } = require('@smithy/node-http-handler');

const [endpoint, countText, windowText, requestText] = process.argv.slice(2);
const count = Number(countText);
const windowSize = Number(windowText);
const request = JSON.parse(requestText);
const client = new DynamoDBClient({
  endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test-secret' },
  maxAttempts: 1,
  requestHandler: new NodeHttpHandler({ httpAgent: new Agent({ keepAlive: true, maxSockets: windowSize }) }),
});

let number = 0;
async function lane(end) {
  while (number < end) {
    const input = { ...request, Key: { Pk: { S: `CONN#stream-${number++ % 1000}` } } };
    const answer = await client.send(new UpdateItemCommand(input));
    if (!answer.Attributes || answer.ConsumedCapacity.CapacityUnits !== 3) throw new Error('not an answer');
  }
}
const run = (end) => Promise.all(Array.from({ length: windowSize }, () => lane(end)));

const skip = Math.floor(count / 4);
await run(skip);
const cpu = process.cpuUsage();
const wall = process.hrtime.bigint();
await run(skip + count);
const used = process.cpuUsage(cpu);
const wallSeconds = Number(process.hrtime.bigint() - wall) / 1e9;
const cpuSeconds = (used.user + used.system) / 1e6;
console.log(JSON.stringify({
  count,
  cpu_s: cpuSeconds,
  wall_s: wallSeconds,
  per_core_second: count / cpuSeconds,
  per_second: count / wallSeconds,
  cpu_ns_each: (cpuSeconds / count) * 1e9,
}));
client.destroy();
