"""Writes a JSON schema, which allows no unknown field, for each version of custom resource definitions: DIRECTORY CRD..."""

import json
import pathlib
import sys

import yaml


def close(schema):
    """Forbids the fields that an object's schema does not name."""
    if not isinstance(schema, dict):
        return
    if "properties" in schema and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema["additionalProperties"] = False
    for key, value in schema.items():
        children = value.values() if key == "properties" else value if isinstance(value, list) else [value]
        for child in children:
            close(child)


for path in sys.argv[2:]:
    for crd in yaml.safe_load_all(open(path)):
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"type": "object"}
            close(schema)
            name = f'{crd["spec"]["names"]["kind"].lower()}.json'
            pathlib.Path(sys.argv[1], name).write_text(json.dumps(schema))
