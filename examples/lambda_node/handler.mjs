// A function of AWS Lambda that does its work alone: however many of it run at once, one of them rebuilds the index.
// Beside it runs Holdfast's extension (docs/serverless.md): this asks it over HTTP, Node's own parts only.
import { randomUUID } from "node:crypto";
import { appendFile } from "node:fs/promises";

const holdfast = process.env.HOLDFAST_URL ?? "http://127.0.0.1:7420";

class Refused extends Error {
  constructor(problem) {
    super(`${problem.code}: ${problem.detail}`);
    this.code = problem.code;
  }
}

// One request of one invocation. Its id has what it holds given back when it is over, and never what the next one holds.
async function ask(context, method, path, body) {
  const request = {
    method,
    headers: { "Content-Type": "application/json", "Lambda-Runtime-Aws-Request-Id": context.awsRequestId },
    body: body === undefined ? undefined : JSON.stringify(body),
  };
  // Where the answer was lost, or the store is away (503): asked for twice, each of these is done once.
  for (;;) {
    let failed;
    const answer = await fetch(holdfast + path, request).catch((error) => { failed = error; });
    if (answer?.ok) return await answer.json();
    const againAfter = Number(answer ? answer.headers.get("Retry-After") ?? NaN : 1) * 1000;
    // Before the invocation's deadline, with a second to spare.
    const isInTime = againAfter <= context.getRemainingTimeInMillis() - 1000;  // false: it is not to be asked again
    if (!isInTime) throw failed ?? new Refused(await answer.json());
    await new Promise((resolve) => setTimeout(resolve, againAfter));
  }
}

// Calls work(guard) while nobody else holds the task, and gives it back whatever comes of it.
async function withTask(context, task, options, work) {
  const guard = await ask(context, "POST", `/v1/tasks/${encodeURIComponent(task)}/acquire`, { guard: randomUUID(), ...options });
  try {
    return await work(guard);
  } finally {
    await ask(context, "POST", `/v1/guards/${guard.guard}/release`, {}).catch((error) => console.error(error.message));
  }
}

export async function handler(event, context) {
  const hold_for = `${Math.max(context.getRemainingTimeInMillis() - 500, 100)}ms`;
  try {
    return await withTask(context, `index/${event.index}`, { hold_for }, async (guard) => {
      for (const part of event.parts) {
        // Before each effect: whether it is still ours. It throws where it is not.
        await ask(context, "GET", `/v1/guards/${guard.guard}`);
        await appendFile(process.env.INDEX_FILE, `${event.index} ${part} epoch ${guard.epoch}\n`);
      }
      return { built: event.parts.length, epoch: guard.epoch };
    });
  } catch (error) {
    if (error.code === "busy") return { built: 0, because: "another one is at it" };
    throw error;
  }
}
