#!/usr/bin/env python3
"""What botocore makes the Authorization header of a request.

Usage: botocore_signature.py JSON

JSON is a list of requests, {"method", "url", "headers", "body", "access_key_id", "secret_access_key", "session_token",
"region", "service", "date"}; the date is as in X-Amz-Date. Prints one line for each.
"""
import json
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def authorization(case):
    request = AWSRequest(method=case["method"], url=case["url"], headers=case["headers"], data=case["body"])
    request.context["timestamp"] = case["date"]  # add_auth() would take it from the clock
    keys = Credentials(case["access_key_id"], case["secret_access_key"], case["session_token"] or None)
    signer = SigV4Auth(keys, case["service"], case["region"])
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(text, request))
    return request.headers["Authorization"]


for one in json.loads(sys.argv[1]):
    print(authorization(one))
