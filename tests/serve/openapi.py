"""Reads an OpenAPI document as far as this project's goes, and judges answers by it."""
import re


class Wrong(Exception):
    pass


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
# What judge() knows; a schema with another word in it would pass unlooked at.
KNOWN = {"$ref", "type", "description", "format", "default", "properties", "required", "propertyNames",
         "additionalProperties", "items",
         "oneOf", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minProperties", "maxProperties", "x-minimum",
         "x-maximum"}


def is_type(value, name: str) -> bool:
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Document:
    def __init__(self, document: dict):
        self.document = document
        self.operations = {}  # (METHOD, template) -> operation
        for template, path in document["paths"].items():
            for method, operation in path.items():
                self.operations[method.upper(), template] = operation

    def resolve(self, thing: dict) -> dict:
        while "$ref" in thing:
            found = self.document
            for part in thing["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            thing = found
        return thing

    def judge(self, value, schema: dict, where: str = "") -> None:
        """Raises Wrong where the value is not as the schema says."""
        if unknown := set(schema) - KNOWN:
            raise Wrong(f"{where}: this test knows no {unknown}")
        schema = self.resolve(schema)
        if "oneOf" in schema:
            fits = sum(self.fits(value, each) for each in schema["oneOf"])
            if fits != 1:
                raise Wrong(f"{where}: {value!r} fits {fits} of {schema['oneOf']}")
        if "type" in schema and not is_type(value, schema["type"]):
            raise Wrong(f"{where}: {value!r} is no {schema['type']}")
        if "enum" in schema and value not in schema["enum"]:
            raise Wrong(f"{where}: {value!r} is none of {schema['enum']}")
        if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            raise Wrong(f"{where}: {value} is out of its bounds")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            raise Wrong(f"{where}: {value!r} does not match")
        for index, each in enumerate(value if isinstance(value, list) else []):
            self.judge(each, schema["items"], f"{where}/{index}")
        if isinstance(value, dict):
            self.judge_object(value, schema, where)

    def judge_object(self, value: dict, schema: dict, where: str) -> None:
        properties = schema.get("properties", {})
        if missing := set(schema.get("required", [])) - set(value):
            raise Wrong(f"{where}: {missing} are missing")
        others = schema.get("additionalProperties", True)
        for name, each in value.items():
            if name in properties:
                self.judge(each, properties[name], f"{where}/{name}")
            elif others is False:
                raise Wrong(f"{where}: nothing is said of {name}")
            elif isinstance(others, dict):
                self.judge(each, others, f"{where}/{name}")

    def fits(self, value, schema: dict) -> bool:
        try:
            self.judge(value, schema)
        except Wrong:
            return False
        return True

    def template_of(self, path: str) -> str:
        """The path's line in the document."""
        path = path.split("?")[0]
        for template in self.document["paths"]:
            if re.fullmatch(re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(template)), path):
                return template
        raise Wrong(f"{path} is not in the document")

    def judge_answer(self, method: str, path: str, status: int, media: str, body) -> str:
        """The operation's name, if its answer is as the document says."""
        operation = self.operations[method, self.template_of(path)]
        name = operation["operationId"]
        said = operation["responses"].get(str(status))
        if said is None:
            if status < 400:
                raise Wrong(f"{name}: the document does not know {status}")
            said = operation["responses"]["default"]
        content = self.resolve(said)["content"]
        if media not in content:
            raise Wrong(f"{name}: {status} came as {media}")
        self.judge(body, content[media]["schema"], f"{name} {status}")
        if status >= 400 and str(status) in operation["responses"] and f"{body['code']}: " not in said["description"]:
            raise Wrong(f"{name}: the document does not know the code {body['code']} of {status}")
        return name
