#!/usr/bin/env python3
"""What botocore makes of AWS's files, for comparison: prints one JSON object.

Usage: aws_botocore.py files FOLDER      each file of the folder: {"sections", "profiles"}, or null where it is refused
       aws_botocore.py together CONFIG CREDENTIALS   the profiles that both files make together
       aws_botocore.py split FILE        the file's lines, each split as a shell does, or null
       aws_botocore.py chain FILE        a JSON list of {"env", "config", "credentials"}: who gives credentials there,
                                         {"method", "access_key"} or {"error"}
       aws_botocore.py order             the names of its providers
"""
import json
import os
import pathlib
import shlex
import sys
import tempfile

import botocore.configloader
import botocore.credentials
import botocore.exceptions
import botocore.session


def clean_environment(extra):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update(extra)


def read(path):
    try:
        return {"sections": botocore.configloader.raw_config_parse(str(path)),
                "profiles": botocore.configloader.load_config(str(path))["profiles"]}
    except botocore.exceptions.ConfigParseError:
        return None


def together(config, credentials):
    clean_environment({"AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": credentials})
    return botocore.session.Session().full_config["profiles"]


def split(line):
    try:
        return shlex.split(line)
    except ValueError:
        return None


def chain(scenario):
    with tempfile.TemporaryDirectory() as folder:
        files = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
        environment = {name: os.path.join(folder, file) for name, file in files.items()}
        for file in files.values():
            pathlib.Path(folder, file).write_text(scenario.get(file, ""), encoding="utf-8")
        clean_environment({**environment, "AWS_EC2_METADATA_DISABLED": "true", **scenario.get("env", {})})
        try:
            found = botocore.session.Session().get_credentials()
            if found is None:
                return {"method": None}
            # Roles are asked for only when their keys are needed: there is no STS here.
            static = found.method in ("env", "shared-credentials-file", "config-file", "custom-process")
            return {"method": found.method, **({"access_key": found.access_key} if static else {})}
        except Exception as error:  # whatever it raises, it stops there
            return {"error": type(error).__name__}


def main():
    what = sys.argv[1]
    if what == "files":
        result = {path.name: read(path) for path in sorted(pathlib.Path(sys.argv[2]).glob("*.ini"))}
    elif what == "together":
        result = together(sys.argv[2], sys.argv[3])
    elif what == "split":
        result = [split(line) for line in pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").split("\n")]
    elif what == "chain":
        result = [chain(scenario) for scenario in json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))]
    elif what == "order":
        clean_environment({})
        resolver = botocore.credentials.create_credential_resolver(botocore.session.Session())
        result = [provider.METHOD for provider in resolver.providers]
    else:
        sys.exit(__doc__)
    json.dump(result, sys.stdout)


main()
