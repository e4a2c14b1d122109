"""Validate a CycloneDX 1.6 document against the schema in the library of CycloneDX, strictly."""
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as document:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document.read())
sys.exit(str(error) if error else 0)
