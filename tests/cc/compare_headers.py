#!/usr/bin/env python3
"""Compares the generated classes of ops with those of TensorFlow's own headers.

usage: compare_headers.py OURS STOCK [MISSING]

OURS and STOCK are folders of *_ops.h. Of every class: its header, constructors with types and names, attributes
with their defaults, outputs and aliases. Classes of ops that Runnel lacks must be listed in the file MISSING.
"""
import glob
import os
import re
import struct
import sys


def plain(text):
    return re.sub(r"\s+", " ", text).strip().replace("::tensorflow::", "").replace("( ", "(")


def number(text):
    """A default as it compares: 1e-05f and 9.99999975e-06f are the same."""
    text = re.sub(r"/\*.*?\*/", "", text).strip()
    match = re.fullmatch(r"(-?[0-9.]+(?:e[-+]?[0-9]+)?|-?inf)f?", text)
    if match:
        return repr(struct.unpack("f", struct.pack("f", float(match.group(1))))[0])
    return "{}" if text == "PartialTensorShape({})" else text  # a scalar's shape


def attributes(body):
    match = re.search(r"struct Attrs \{\n(.*?)^  \};", body, re.S | re.M)
    if not match:
        return [], body
    fields = {}
    for field in re.finditer(r"^    ([\w:<>\s]+?) (\w+)_ = (.*?);$", match.group(1), re.S | re.M):
        fields[field.group(2)] = (plain(field.group(1)), number(plain(field.group(3))))
    found = []
    for setter in re.finditer(r"Attrs (\w+)\(\s*([\w:<>\s&]+?)\s+x\) \{\s*Attrs ret = \*this;\s*ret\.(\w+)_ = x;", match.group(1)):
        kind, default = fields[setter.group(3)]
        storage = re.search(r"Default_" + setter.group(3) + r"\(\) \{.*?\{(.*?)\}", match.group(1), re.S)
        if default.startswith("Default_") and storage:
            default = [number(value) for value in plain(storage.group(1)).split(", ")]
        if kind == "TensorProto":
            default = re.findall(r"\d+", default.replace("uint8", ""))[:4]
        found.append((setter.group(1), plain(setter.group(2)), setter.group(3), kind, default))
    return found, body[: match.start()] + body[match.end():]


def constructors(name, body):
    found = []
    for match in re.finditer(r"^  (?:explicit )?" + name + r"\(", body, re.M):
        at, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(body[at], 0)
            at += 1
        found.append(plain(body[match.end(): at - 1]).replace(name + "::Attrs", "Attrs"))
    return found


def classes(folder):
    found = {}
    for path in sorted(glob.glob(folder + "/*_ops.h") + glob.glob(folder + "/*_internal.h") + glob.glob(folder + "/no_op.h")):
        header = os.path.basename(path)
        if header == "standard_ops.h":
            continue
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^ *//[^\n]*", "", file.read(), flags=re.M)
        for match in re.finditer(r"^class (\w+) \{\n(.*?)^\};", text, re.S | re.M):
            attrs, body = attributes(match.group(2))
            outputs = re.search(r"  Operation operation;\n(.*)$", body, re.S).group(1)
            conversions = sorted(plain(x) for x in re.findall(r"^  (?:operator|::tensorflow::\S+) [^;{]*\{[^}]*\}", body, re.M))
            found[match.group(1)] = {
                "header": header,
                "constructors": constructors(match.group(1), body),
                "attributes": attrs,
                "outputs": plain(outputs),
                "conversions": conversions,
                "aliases": re.findall(r"^typedef " + match.group(1) + r" (\w+);", text, re.M),
            }
    return found


def main():
    ours, stock = classes(sys.argv[1]), classes(sys.argv[2])
    missing = set()
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            missing = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    bad = 0
    for name in sorted(set(stock) | set(ours)):
        if name not in ours:
            if name not in missing:
                bad += 1
                print(f"{name}: not here")
            continue
        if name not in stock or name in missing:
            bad += 1
            print(f"{name}: not expected here")
            continue
        for part, value in stock[name].items():
            if ours[name][part] != value:
                bad += 1
                print(f"{name}: {part}\n  ours  {ours[name][part]}\n  stock {value}")
    print(f"{len(ours)} classes, {len(stock)} of stock, {len(missing)} known to be missing, {bad} differences")
    return 1 if bad or not ours else 0


sys.exit(main())
