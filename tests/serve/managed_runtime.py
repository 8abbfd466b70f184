"""What AWS's own Python runtime does, as far as an example needs it: managed_runtime.py HANDLER_FILE"""
import importlib.util
import json
import os
import sys
import time
import urllib.request


class Context:
    def __init__(self, headers):
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.deadline_ms = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self) -> int:
        return int(self.deadline_ms - time.time() * 1000)


def main() -> None:
    spec = importlib.util.spec_from_file_location("handler", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    base = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation"
    while True:
        with urllib.request.urlopen(f"{base}/next") as answer:
            context, event = Context(answer.headers), json.load(answer)
        try:
            path, told, headers = "response", module.handler(event, context), {}
        except Exception as error:  # pylint: disable=broad-except
            path, told = "error", {"errorMessage": str(error), "errorType": type(error).__name__}
            headers = {"Lambda-Runtime-Function-Error-Type": type(error).__name__}
        request = urllib.request.Request(f"{base}/{context.aws_request_id}/{path}", json.dumps(told).encode(), headers)
        with urllib.request.urlopen(request):
            pass


main()
