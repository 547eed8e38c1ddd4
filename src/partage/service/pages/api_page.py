"""The OpenAPI document as a page: its calls by group, and the objects that travel."""

import json
from collections.abc import Mapping
from typing import Any

_SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def documented(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of an OpenAPI document."""
    calls = [
        {"method": method.upper(), "path": path, **_call(operation)}
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    groups = {tag["name"]: [call for call in calls if call["tag"] == tag["name"]] for tag in document["tags"]}
    schemas = document["components"]["schemas"]
    return {"groups": groups, "objects": {name: _object(schemas[name]) for name in sorted(schemas)}}


def _call(operation: Mapping[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = [
        (
            status,
            answer["description"],
            next((_kind(one["schema"]) for one in answer.get("content", {}).values()), ""),
        )
        for status, answer in operation["responses"].items()
    ]
    return {
        "id": operation["operationId"],
        "tag": operation["tags"][0],
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "parameters": operation.get("parameters", []),
        "body": None if body is None else _kind(body),
        "answers": answers,
    }


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    fields = [
        (name, _kind(field), name in required, _limits(field), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    examples = [json.dumps(example, ensure_ascii=False) for example in schema.get("examples", ())]
    return {"description": schema.get("description", ""), "fields": fields, "examples": examples}


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a value, in words.

    >>> _kind({"items": {"$ref": "#/components/schemas/Pull"}, "type": "array"})
    'list of Pull'
    >>> _kind({"oneOf": [{"type": "number"}, {"type": "null"}]})
    'number or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "oneOf" in schema:
        return " or ".join(_kind(part) for part in schema["oneOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("type", "anything"))


def _limits(schema: Mapping[str, Any]) -> str:
    """Return the values that are allowed, and the default."""
    found = []
    for part in schema.get("oneOf", [schema]):
        if "enum" in part:
            found.append(", ".join(map(str, part["enum"])))
        for keyword, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        ):
            if keyword in part:
                found.append(f"{sign} {part[keyword]:,}")
    if schema.get("default") is not None:
        found.append(f"default {json.dumps(schema['default'])}")
    return "; ".join(found)
