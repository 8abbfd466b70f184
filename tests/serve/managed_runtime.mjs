// What AWS's own Node runtime does, as far as an example needs it: managed_runtime.mjs HANDLER_FILE
import http from "node:http";
import { pathToFileURL } from "node:url";

const { handler } = await import(pathToFileURL(process.argv[2]));
const base = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;

// Not fetch(): it gives up after five minutes.
function ask(method, path, headers = {}, body = "") {
  return new Promise((resolve, reject) => {
    const request = http.request(`${base}${path}`, { method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => (text += piece));
      answer.on("end", () => resolve({ headers: answer.headers, text }));
    });
    request.on("error", reject).end(body);
  });
}

for (;;) {
  const { headers, text } = await ask("GET", "/next");
  const awsRequestId = headers["lambda-runtime-aws-request-id"];
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const context = { awsRequestId, getRemainingTimeInMillis: () => deadline - Date.now() };
  let end;
  try {
    end = ["response", await handler(JSON.parse(text), context), {}];
  } catch (error) {
    end = ["error", { errorMessage: error.message, errorType: error.name },
           { "Lambda-Runtime-Function-Error-Type": error.name }];
  }
  const body = JSON.stringify(end[1]);
  await ask("POST", `/${awsRequestId}/${end[0]}`, { ...end[2], "Content-Length": Buffer.byteLength(body) }, body);
}
