#!/usr/bin/env python3
"""Writes tests/golden/schema_cases.json: JSON schemas, texts, and whether the jsonschema package finds that a text is
JSON that satisfies the schema.

Run from the repository root. A text in `narrow` is valid, but one that Winnow does not write (see
src/constrain/schema_grammar.h). Schemas and texts were chosen for this project.
"""

import importlib.metadata
import json
import pathlib

import jsonschema

POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"],
         "additionalProperties": False}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": {
    "type": "object", "properties": {"value": {"type": "integer"},
                                     "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["value"], "additionalProperties": False}}}

# name: (schema, texts, narrow)
CASES = {
    "anything": (True, ['{}', '[]', '"a"', '-0.5e+3', 'true', 'null', '[1,[2,{"a":[]}]]', '01', '1.', '[1,]', '{"a"}',
                        '"\\x"', '"\\u12"', '"\\ud83d\\ude00"', '"é😀"', 'nul', '', '"a', '{"a":1,"a":2}'],
                 ['  1', '{ "a" : 1 }', '"\\ud800"', '1e400', '[1 ,2]']),
    "nothing inside": ({"type": "object", "properties": {"a": False}}, ['{}', '{"a":1}'], ['{"b":1}']),
    "point": (POINT, ['{"x":1,"y":-2}', '{ "x": 1, "y": -2 }', '{\n  "x": 1,\n  "y": 2\n}', '{"x":1}', '{"x":1,"y":2,"z":3}',
                      '{"x":1.5,"y":2}', '{"x":"1","y":2}', '[]', '{}'],
              ['{"y":1,"x":2}', '{"x":1.0,"y":2}']),
    "optional": ({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "null"}},
                  "required": ["b"]},
                 ['{"b":true}', '{"a":"","b":false}', '{"b":true,"c":null}', '{"a":"x","b":true,"c":null}', '{"a":"x"}',
                  '{"b":1}', '{,"b":true}', '{"b":true,}'], ['{"b":true,"d":1}']),
    "additional": ({"type": "object", "properties": {"id": {"type": "integer"}, "idx": {"type": "integer"}},
                    "additionalProperties": {"type": "string"}},
                   ['{}', '{"id":1}', '{"id":1,"a":"b"}', '{"a":"b","c":"d"}', '{"i":"b"}', '{"ide":"b"}', '{"idxx":"b"}',
                    '{"é":"b"}', '{"id":"b"}', '{"a":1}', '{"idx":"b"}'],
                   ['{"a":"b","id":1}', '{"a\\n":"b"}']),
    "any object": ({"type": "object"}, ['{}', '{"a":{"b":[1]}}', '[]', '1'], []),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}}, ['{}', '{"a":1,"b":2}', '{"a\\n":1}', '{"a":"b"}'],
            []),
    "required only": ({"type": "object", "required": ["k"]}, ['{"k":1}', '{"k":{"a":[]}}', '{}'], ['{"j":2,"k":1}']),
    "types": ({"type": ["string", "null", "integer"]}, ['"a"', 'null', '5', '5.5', 'true', '[]'], []),
    "array": ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
              ['[1]', '[1,2,3]', '[1, 2]', '[]', '[1,2,3,4]', '["a"]'], []),
    "exact array": ({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
                    ['[true,false]', '[true]', '[true,true,true]'], []),
    "empty array": ({"type": "array", "maxItems": 0}, ['[]', '[ ]', '[1]'], []),
    "tuple": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 1},
              ['["a"]', '["a",1]', '[1]', '[]', '["a","b"]'], ['["a",1,true]']),
    "tuple and rest": ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}, "minItems": 2},
                       ['["a",null]', '["a",null,null]', '["a"]', '["a",1]'], []),
    "short tuple": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 1},
                    ['[]', '["a"]', '["a",1]', '[1]'], []),
    "enum": ({"enum": ["red", "green", 1, 1.5, None, True, [1, {"a": 2}], "gre", 'q"\\\n']},
             ['"red"', '"green"', '"gre"', '1', '1.5', 'null', 'true', '[1,{"a":2}]', '"q\\"\\\\\\n"', '"blue"', '2', 'false',
              '[1]', '"gr"'], ['[1, {"a":2}]', '"r\\u0065d"']),
    "enum of a type": ({"type": "string", "enum": ["a", 1]}, ['"a"', '1', '"b"'], []),
    "const": ({"const": {"k": [1, "x"]}}, ['{"k":[1,"x"]}', '{"k":[1]}'], ['{"k": [1, "x"]}']),
    "any of": ({"anyOf": [POINT, {"type": "string"}, {"type": "array", "items": POINT}]},
               ['{"x":1,"y":2}', '"a"', '[{"x":1,"y":2}]', '[]', '1', '[1]'], []),
    "one of": ({"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]}, ['1', '"ab"', '"abc"', 'null'], []),
    "all of one": ({"allOf": [{"$ref": "#/$defs/p"}], "description": "d", "$defs": {"p": POINT}},
                   ['{"x":1,"y":2}', '{"x":1}'], []),
    "all of objects": ({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                                  {"properties": {"b": {"type": "string"}}, "required": ["b"]}]},
                       ['{"a":1,"b":"x"}', '{"a":1}', '{"b":"x"}', '{"a":1,"b":2}'], []),
    "tree": (TREE, ['{"value":1}', '{"value":1,"children":[]}',
                    '{"value":1,"children":[{"value":2,"children":[{"value":3}]}]}', '{"children":[]}',
                    '{"value":1,"children":[{}]}', '{"value":1,"children":[1]}'], []),
    "recursive root": ({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
                        "required": ["next"]},
                       ['{"next":null}', '{"next":{"next":{"next":null}}}', '{}', '{"next":1}'], []),
    "escaped pointer": ({"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": {"type": "null"}}}, ['null', '1'], []),
    "lengths": ({"type": "string", "minLength": 2, "maxLength": 4},
                ['"ab"', '"abcd"', '"é😀"', '"\\n\\u00e9"', '"\\ud83d\\ude00a"', '"a"', '"abcde"', '""', '"\\n"'], []),
    "min length": ({"type": "string", "minLength": 3}, ['"abc"', '"abcdefgh"', '"ab"'], []),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{2,3}-\\d+(\\.\\d)?$"},
                ['"AB-1"', '"ABC-123.4"', '"A-1"', '"ABCD-1"', '"AB-"', '"AB-1.23"', '"xAB-1"'], ['"\\u0041B-1"']),
    "loose pattern": ({"type": "string", "pattern": "b+c"}, ['"abbcd"', '"bc"', '"b"', '""', '"cb"'], []),
    "pattern choice": ({"type": "string", "pattern": "^(?:a|bc)*$|^[^a-z\\s]$"},
                       ['""', '"abca"', '"bcbc"', '"X"', '"é"', '"\\""', '"\\\\"', '"b"', '"x"', '" "', '"XX"'], []),
    "pattern escapes": ({"type": "string", "pattern": "^\\w\\W\\u0041\\x42\\n\\/[\\]\\-^]$"},
                        ['"a AB\\n/]"', '"_-AB\\n/^"', '"aaAB\\n/]"', '"a AB/]"'], []),
    "date": ({"type": "string", "format": "date"}, ['"2026-02-03"', '"2026-11-30"', '"2026-02-30"', '"2026-13-01"', '"26-1-1"'],
             ['"2024-02-29"']),
    "uuid": ({"type": "string", "format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"', '"123e4567"'], []),
    "ipv4": ({"type": "string", "format": "ipv4"}, ['"10.0.255.1"', '"256.0.0.1"', '"1.2.3"', '"01.2.3.4"'], []),
    "email": ({"type": "string", "format": "email"}, ['"a.b@example.org"', '"example.org"'], []),
    "integer": ({"type": "integer"}, ['0', '-0', '-12', '123456789', '1.5', '01', '+1', '"1"'], ['1e3', '5.0']),
    "number": ({"type": "number"}, ['0', '-1.25', '1e5', '1.5E-7', '.5', '1.', 'NaN', '0x1'], []),
    "integer range": ({"type": "integer", "minimum": -12, "maximum": 305},
                      ['-12', '-9', '-1', '0', '9', '10', '99', '100', '299', '300', '305', '-13', '306', '1000', '-100'], ['-0']),
    "integer exclusive": ({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 17},
                          ['6', '9', '10', '16', '5', '17', '0', '-6', '100'], []),
    "integer minimum": ({"type": "integer", "minimum": 1}, ['1', '9', '10', '123456789', '0', '-1'], []),
    "integer maximum": ({"type": "integer", "maximum": -7}, ['-7', '-10', '-99', '-123', '-6', '0', '7'], []),
    "fractional bounds": ({"type": "integer", "minimum": 0.5, "maximum": 3.5}, ['1', '3', '0', '4'], []),
    "share": ({"type": "number", "minimum": 0, "maximum": 1},
              ['0', '0.0', '0.25', '0.999', '1', '1.0', '1.01', '2', '-0.1'], ['1e-3', '-0']),
    "number range": ({"type": "number", "minimum": -2, "maximum": 12},
                     ['-2', '-2.0', '-1.99', '-0.5', '3.25', '11.9', '12', '-2.01', '12.5', '13', '-3'], []),
    "number exclusive": ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
                         ['0.1', '0.01', '9', '9.99', '5', '0', '0.0', '10', '10.0', '-1'], []),
    "negative range": ({"type": "number", "minimum": -5, "exclusiveMaximum": -3},
                       ['-5', '-4.9', '-3.1', '-3', '-3.0', '-5.1', '0'], []),
    "no type": ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, ['{"a":1}', '{}'], ['"text"']),
    "annotations": ({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.org/x", "title": "t",
                     "description": "d", "default": None, "examples": [1], "deprecated": False, "type": "null"},
                    ['null', '1'], []),
    "names with escapes": ({"type": "object", "properties": {"a\"b": {"type": "null"}, "c\\d\n": {"type": "null"}},
                            "required": ["a\"b", "c\\d\n"], "additionalProperties": False},
                           ['{"a\\"b":null,"c\\\\d\\n":null}', '{"a\\"b":null}'], []),
}


def refuse_constant(name):
    raise ValueError(name)


def is_valid(validator, text):
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        return False
    return validator.is_valid(value)


def main():
    cases = []
    for name, (schema, texts, narrow) in CASES.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        for text in narrow:
            assert is_valid(validator, text), (name, text)
        cases.append({"name": name, "schema": schema,
                      "valid": [text for text in texts if is_valid(validator, text)],
                      "invalid": [text for text in texts if not is_valid(validator, text)],
                      "narrow": narrow})
    provenance = f"tools/make_schema_cases.py, jsonschema {importlib.metadata.version('jsonschema')}, draft 2020-12"
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    pathlib.Path("tests/golden/schema_cases.json").write_text(
        f'{{"provenance": {json.dumps(provenance)},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
