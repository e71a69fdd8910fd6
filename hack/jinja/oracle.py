"""Renders templates one after another with Jinja2, each with its own files and variables.

A line of standard input is a JSON object: `template`, `files` (texts by name), `vars`. The line that answers it has
`output`, or `error` with `class`, `message`, `file` and `line`.
"""

import base64
import hashlib
import json
import posixpath
import re
import resource
import signal
import sys
import traceback

import jinja2
import yaml

SECONDS = 3
BYTES = 1 << 30
ROOT = "t"


class Endless(BaseException):
    pass


def alarm(*_):
    raise Endless


class Environment(jinja2.Environment):
    def join_path(self, template, parent):
        if isinstance(template, str) and template.startswith(("./", "../")):
            return posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))
        return template


class Dumper(yaml.SafeDumper):
    pass


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if len(text.splitlines()) > 1 else None
    ),
)


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: str(node.value))


def merge(into, other):
    for key, value in ({} if other is None else other).items():
        if isinstance(into.get(key), dict) and isinstance(value, dict):
            merge(into[key], value)
        else:
            into[key] = value


def copied(value):
    """Returns a deep copy; as in kluctl, all containers but dictionaries become lists."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return value


def merge_dict(a, b):
    a.items
    made = copied(a)
    merge(made, b)
    return made


def update_dict(a, b):
    merge(a, b)
    return ""


def fail(msg):
    raise jinja2.TemplateError(msg)


@jinja2.pass_context
def render(context, template):
    return context.environment.from_string(template).render(context.get_all())


def sha256(value, digest_len=None):
    return hashlib.sha256(value.encode()).hexdigest()[:digest_len]


FILTERS = {
    "b64encode": lambda text: base64.b64encode(text.encode()).decode(),
    "b64decode": lambda text: base64.b64decode(text.encode()).decode(),
    "to_yaml": lambda value: yaml.dump(value, Dumper=Dumper, sort_keys=False),
    "from_yaml": lambda text: yaml.load(text, Loader),
    "to_json": json.dumps,
    "sha256": sha256,
    "render": render,
}
GLOBALS = {"merge_dict": merge_dict, "update_dict": update_dict, "raise": fail, "render": render}


def answer(request):
    files = dict(request["files"])
    files[ROOT] = request["template"]

    def load(name):
        return (files[name], name, lambda: True) if name in files else None

    environment = Environment(
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(load),
        extensions=["jinja2.ext.loopcontrols"],
    )
    environment.globals.update(request["vars"])
    environment.filters.update(FILTERS)
    environment.globals.update(GLOBALS)
    try:
        return {"output": environment.get_template(ROOT).render()}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if f.filename in files or f.filename in ("<template>", "<unknown>")]
        said = {"class": type(error).__name__, "message": str(error)}
        if ours:
            said.update(file=ours[-1].filename, line=ours[-1].lineno)
        return {"error": said}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, alarm)
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            said = answer(request)
        except Endless:
            said = {}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        text = re.sub(r"\b0(x)[0-9a-f]{8,}\b", r"0\g<1>7F0000000000", json.dumps(said), flags=re.I)
        text = text.replace("0x7F", "0x7f")
        print(text, flush=True)


main()
