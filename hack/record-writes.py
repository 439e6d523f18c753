#!/usr/bin/env python3
"""Record random writes of single objects on a real kube-apiserver.

The writes, one JSON object per line on standard output, are those of the recorded cases on standard
input (test/vectors/objects.jsonl.gz), with random changes: fields removed,
repeated, exchanged with those of other objects, or set to values at the bounds of types and rules.
All are dry runs. The server needs the flags --allow-privileged, --service-cluster-ip-range=10.0.0.0/16
and --disable-admission-plugins=ServiceAccount, and should be empty. Maps of Go have a random order:
record on two servers, and keep the lines that both have.
"""

import argparse
import collections
import copy
import gzip
import http.client
import json
import random
import re
import ssl
import sys
import urllib.request

VALUES = [
    "", "x", "a_b", "A", "a/b", "a.b/c", "-1", "0", "1", "1Gi", "100m", "50%", "150%", "x" * 64, "x" * 254,
    " a", "a ", "*.a.b", "10.0.0.1", "::1", "1.2.3.4/8", "http", "65536", None, 0, 1, -1, 2, 100, 65535,
    65536, 2147483647, 2147483648, True, False, [], {}, ["a"], ["a", "a"], {"a": "b"}, {"a": ""},
]
KEPT = {"apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"}
CLASSES = [
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "objects"}}),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    ),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
            "provisioner": "a.example/p", "allowVolumeExpansion": True,
        },
    ),
    (
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "rc"},
            "handler": "h", "overhead": {"podFixed": {"cpu": "10m"}},
        },
    ),
]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SUBRESOURCES = ("status", "scale", "resize", "ephemeralcontainers")


def place(path):
    """The last two steps of a path, with any index."""
    return tuple("[]" if isinstance(step, int) else step for step in path)[-2:]


def paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        if step != "managedFields":
            yield from paths(inner, path + (step,))


def at(value, path):
    for step in path:
        value = value[step]
    return value


class Writes:
    """Random writes made of recorded ones."""

    def __init__(self, lines, seed):
        self.random = random.Random(seed)
        self.creates = collections.defaultdict(list)
        self.updates = collections.defaultdict(list)
        self.values = collections.defaultdict(list)
        self.fields = collections.defaultdict(lambda: collections.defaultdict(list))
        for line in lines:
            for mask, value in (("<uid>", "uid-1"), ("<time>", "2026-01-01T00:00:00Z"), ("<rv>", "1")):
                line = line.replace(mask, value)
            case = json.loads(line)
            if case.get("stored") or "{{rv}}" in line:
                continue
            if "before" in case and (case.get("body") is not None or "object" in case):
                self.updates[case["kind"]].append(case)
            elif case["method"] == "POST":
                self.creates[case["kind"]].append(case)
            for whole in (case.get("body"), case.get("object")):
                if isinstance(whole, dict):
                    self.learn(whole)

    def learn(self, whole):
        for path in paths(whole):
            value = at(whole, path)
            self.values[place(path)].append(value)
            if isinstance(value, dict):
                for name, inner in value.items():
                    self.fields[place(path)][name].append(inner)

    def choose(self, values):
        return copy.deepcopy(self.random.choice(values))

    def change(self, whole):
        """Changes one field."""
        found = [path for path in paths(whole) if path and not (len(path) < 3 and path[-1] in KEPT | {"metadata"})]
        objects = [path for path in paths(whole) if isinstance(at(whole, path), dict)]
        if not found:
            return
        path = self.random.choice(found)
        holder, step = at(whole, path[:-1]), path[-1]
        act = self.random.random()
        if act < 0.12:
            del holder[step]
        elif act < 0.42:
            holder[step] = self.choose(self.values[place(path)] or VALUES)
        elif act < 0.64:
            alike = [value for value in VALUES if type(value) is type(holder[step])]
            holder[step] = self.choose(alike if act < 0.6 and alike else VALUES)
        elif act < 0.76 and isinstance(holder[step], list) and holder[step]:
            holder[step].append(self.choose(holder[step]))
        elif objects:
            path = self.random.choice(objects)
            names = [name for name in self.fields[place(path)] if path + (name,) != ("metadata",) and name not in KEPT]
            if names:
                name = self.random.choice(names)
                at(whole, path)[name] = self.choose(self.fields[place(path)][name])

    def case(self, number):
        """Returns a random write without its response."""
        kinds = [self.random.choice(sorted(self.creates)), self.random.choice(self.weighted())]
        kind = self.random.choice(kinds)
        is_create = self.random.random() < 0.5 or not self.updates[kind]
        source = self.choose(self.creates[kind] if is_create else self.updates[kind])
        body = source.get("body")
        if body is None:
            body = source["object"]
            for member in KEPT - {"apiVersion", "kind", "name", "namespace"}:
                body["metadata"].pop(member, None)
        for _ in range(self.random.choice([1, 1, 1, 2, 2, 3])):
            if isinstance(body, (dict, list)):
                self.change(body)
        case = {key: source[key] for key in ("kind", "verb", "method", "path", "query", "headers", "before") if key in source}
        case.update(id=f"{number:05}", about="random", body=body)
        if "before" in case:
            self.rename(case, f"r{number}")
        return case

    def weighted(self):
        return [kind for kind, cases in sorted(self.creates.items()) for _ in cases]

    @staticmethod
    def rename(case, name):
        """Gives the object a name of its own."""
        parts = case["path"].split("/")
        index = -2 if parts[-1] in SUBRESOURCES else -1
        old, parts[index] = parts[index], name
        case["path"] = "/".join(parts)
        case["before"]["metadata"]["name"] = name
        metadata = case["body"].get("metadata") if isinstance(case["body"], dict) else None
        if isinstance(metadata, dict) and metadata.get("name") == old:
            metadata["name"] = name


class Server:
    def __init__(self, url, token):
        self.url, self.token = url, token
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    def send(self, method, path, body, content_type="application/json"):
        headers = {"Content-Type": content_type, "Authorization": f"Bearer {self.token}", "User-Agent": ""}
        request = urllib.request.Request(self.url + path, json.dumps(body, sort_keys=True).encode(), headers, method=method)
        try:
            reply = urllib.request.urlopen(request, context=self.tls, timeout=60)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            return reply.status, reply.headers.get_all("Warning") or [], json.loads(reply.read() or b"null")


def masked(case, value):
    """Replaces what differs between servers, unless the write has it."""
    sent = json.dumps([case["body"], case.get("before")])

    def mask(name):
        return lambda match: match.group(0) if match.group(0) in sent else name

    def text(value):
        if '"{\\"apiVersion\\":' in value:
            value = re.sub(r'Invalid value: "\{\\"apiVersion\\":.*?[^\\]": ', 'Invalid value: "<object>": ', value, flags=re.S)
        value = re.sub(UID, mask("<uid>"), re.sub(TIME, mask("<time>"), value))
        # The path of a source file depends on the build.
        value = value.replace("k8s.io/kubernetes/pkg/", "pkg/")
        return re.sub(r"\b10\.0\.\d+\.\d+\b", mask("<ip>"), value)

    def walk(value, name=""):
        if isinstance(value, dict):
            return {key: walk(inner, key) for key, inner in value.items() if key != "managedFields"}
        if isinstance(value, list):
            return [walk(inner, name) for inner in value]
        if name == "resourceVersion" and isinstance(value, str) and f'"{value}"' not in sent:
            return "<rv>"
        if name in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and str(value) not in sent:
            return "<port>"
        return text(value) if isinstance(value, str) else value

    return walk(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="such as https://127.0.0.1:6443")
    parser.add_argument("token", help="of a member of system:masters")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, help="number of writes")
    options = parser.parse_args()
    with gzip.open(sys.stdin.buffer, "rt") as lines:
        writes = Writes(lines, options.seed)
    server = Server(options.url, options.token)
    for path, body in CLASSES:
        try:
            status, _, reply = server.send("POST", path, body)
        except OSError as error:
            sys.exit(f"record-writes: create {path} on {options.url}: {error}; is the server up?")
        if status not in (201, 409):
            sys.exit(f"record-writes: create {path} on {options.url}: {status} {reply.get('message')}")
    for number in range(options.count):
        case = writes.case(number)
        if "before" in case:
            path = case["path"].rsplit("/", 2 if case["path"].rsplit("/", 1)[1] in SUBRESOURCES else 1)[0]
            status, _, _ = server.send("POST", f"{path}?fieldManager=before", case["before"])
            if status not in (200, 201):
                continue
        content_type = case.get("headers", {}).get("Content-Type", "application/json")
        try:
            status, warnings, body = server.send(case["method"], f"{case['path']}?{case['query']}", case["body"], content_type)
        except http.client.RemoteDisconnected:
            continue  # The server panicked.
        case["status"] = status
        case["warnings"] = [re.sub(r"\\(.)", r"\1", text[len('299 - "'):-1]) for text in warnings]
        if status < 300:
            case["object"] = masked(case, body)
        else:
            case["error"] = masked(case, {key: body.get(key) for key in ("reason", "message", "details", "code")})
        print(json.dumps(case))


if __name__ == "__main__":
    main()
