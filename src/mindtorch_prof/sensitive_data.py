"""Sensitive data in traces: metadata or the text of a file in; the same without environments, tokens, user and host names out.

Two ways: `without_environment` drops keys of metadata (for files that are derived from a trace), and `redacted` replaces texts in the
bytes of a file and leaves every other byte as it is (for `mindtorch-prof redact`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from .json_text import safe_ends
from .json_types import JSONObject, JSONValue, nests_too_deep

REDACTED = "REDACTED"
_Replacement: TypeAlias = Callable[[re.Match[str]], str]

# ---------------------------------------------------------------------------------------------------- what is sensitive

_ENVIRONMENT_KEY = r"(?:os[._])?env(?:iron(?:ment)?)?(?:[_ .-]?var(?:iable)?s?)?"
_COMMAND_KEY = r"(?:sys\.)?argv|cmd_?line|command(?:[_ ]?line)?|cmd|invocation"
_SECRETS_KEY = (
    r"(?:[\w .-]*[_ .-])?(?:token|secret|password|passwd|passphrase|credentials?|cookie|auth|authorization"
    r"|(?:api|access|secret|private|ssh|license|encryption|account|signing)[_ -]?key)(?:[_ -]?id)?"
    r"|\w*(?:Token|Secret|Password|ApiKey|AccessKey)|apikey"
)
_HOST_KEY = r"host|host_?name|node_?name|node|fqdn|master_addr|ip(?:_?addr(?:ess)?)?"
_USER_KEY = r"user|user_?name|login|logname|started_by|owner|author|email|git_user"
_KINDS = {
    "environment": re.compile(_ENVIRONMENT_KEY, re.IGNORECASE),
    "command line": re.compile(_COMMAND_KEY, re.IGNORECASE),
    "secret": re.compile(_SECRETS_KEY, re.IGNORECASE),
    "host name": re.compile(_HOST_KEY, re.IGNORECASE),
    "user name": re.compile(_USER_KEY, re.IGNORECASE),
}
_PASSWORD = re.compile("passw|passphrase|secret", re.IGNORECASE)  # may be a number
_CONTAINERS = ('"', "{", "[")
_DROPPED_KINDS = ("environment", "command line", "secret")  # from files that are derived from a trace

# variables that every environment has; a dict with some of them is one, whatever it is called
_USUAL_VARIABLES = frozenset(
    "PATH HOME USER LOGNAME HOSTNAME PWD OLDPWD SHELL LANG LD_LIBRARY_PATH PYTHONPATH TERM SHLVL TMPDIR CUDA_VISIBLE_DEVICES"
    " CUDA_VERSION CONDA_PREFIX VIRTUAL_ENV SLURM_JOB_ID MASTER_ADDR RANK LOCAL_RANK WORLD_SIZE OMP_NUM_THREADS HF_HOME".split()
)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z]+_proxy")
_MANY = 6  # upper-case keys with texts that make an environment together with one usual variable

# tokens that are recognised by their form
_TOKENS = (
    r"hf_[A-Za-z0-9]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"sk-[A-Za-z0-9_-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",  # a JSON web token
    r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-nistp256) AAAA[A-Za-z0-9+/=]{20,}",
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_TOKENS) + ")")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^\"]*?(?:-----END [A-Z ]*PRIVATE KEY-----|(?=\"))"
)
# NAME=value and --name value, of names that say that the value is secret
_VALUE = r"(?:[^\"\\\s,;&']|\\(?![\"nrt]))+"
_ASSIGNMENT = re.compile(
    r"((?<![A-Za-z0-9])[A-Za-z0-9_-]*(?:token|secret|password|passwd|passphrase|credentials?|api[_-]?key|access[_-]?key"
    r"(?:[_-]?id)?|private[_-]?key|[_-]auth)(?:=(?!=)| (?=[^-\s\"])))(?!REDACTED|\d{1,8}\b)" + f"({_VALUE})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\b(?:Bearer|Basic) )(?!REDACTED)([A-Za-z0-9._~+/=-]{8,})")
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*:(?:\\?/){2})([^/\s\"@:\\]+):([^/\s\"@\\]+)@")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,12}\b"
)
# the user's name in the path of a home folder; slashes may be escaped, backslashes of Windows are
_SLASH = r"(?:\\?/|\\\\(?:\\\\)*)"
_HOME = re.compile(rf"({_SLASH}(?:home|homes|Users|users){_SLASH})([^/\\\"\s:;,()]+)")
_NO_USERS = frozenset(
    "root user users runner ubuntu admin nobody shared Shared Public public default home REDACTED".split()
)
_NO_HOSTS = frozenset(("localhost", "localhost.localdomain", "127.0.0.1", "0.0.0.0", REDACTED))  # noqa: S104


def kind_of_key(key: str) -> str | None:
    """What the values of a key hold, if that is sensitive: environment, command line, secret, host name, user name."""
    for kind, pattern in _KINDS.items():
        if pattern.fullmatch(key):
            return kind
    return None


def is_environment(value: object) -> bool:
    """Whether a dict holds environment variables, by its keys; or a list or text lines `NAME=value`."""
    if isinstance(value, dict):
        keys = [key for key, inner in value.items() if _VARIABLE.fullmatch(key) and isinstance(inner, str)]
        if len(keys) < 3 or len(keys) < 0.8 * len(value):
            return False
        usual = len(_USUAL_VARIABLES.intersection(keys))
        return usual >= 2 or (usual == 1 and len(keys) >= _MANY)
    if isinstance(value, str):
        value = value.splitlines()
    if isinstance(value, list):
        names = [text.partition("=")[0] for text in value if isinstance(text, str) and "=" in text]
        known = [name for name in names if _VARIABLE.fullmatch(name)]
        usual = bool(_USUAL_VARIABLES.intersection(known))
        return usual and len(known) >= 3 and len(known) >= 0.8 * len(value)
    return False


def holds_secret(text: str) -> bool:
    """Whether a text holds a token, a password or the like, by its form."""
    return any(pattern.sub(replaced, text) != text for pattern, replaced in _SECRETS)


# ---------------------------------------------------------------------------------------------------- metadata


def without_environment(metadata: Mapping[str, JSONValue]) -> tuple[JSONObject, list[str]]:
    """Metadata without environments, command lines and secrets; and the paths of the keys that were dropped. What nests too deep to be
    searched is dropped."""
    dropped = [key for key, value in metadata.items() if nests_too_deep(value)]
    return _without(
        {key: value for key, value in metadata.items() if key not in dropped}, "", dropped
    ), dropped


def _without(value: Mapping[str, JSONValue], path: str, dropped: list[str]) -> JSONObject:
    kept: JSONObject = {}
    for key, inner in value.items():
        place = f"{path}.{key}" if path else key
        if _is_dropped(key, inner):
            dropped.append(place)
        elif isinstance(inner, dict):
            kept[key] = _without(inner, place, dropped)
        elif isinstance(inner, list):
            kept[key] = _without_in_list(inner, place, dropped)
        else:
            kept[key] = inner
    return kept


def _without_in_list(values: list[JSONValue], path: str, dropped: list[str]) -> list[JSONValue]:
    kept: list[JSONValue] = []
    for number, inner in enumerate(values):
        place = f"{path}[{number}]"
        if isinstance(inner, dict) and not is_environment(inner):
            kept.append(_without(inner, place, dropped))
        elif isinstance(inner, list) and not is_environment(inner):
            kept.append(_without_in_list(inner, place, dropped))
        elif isinstance(inner, (dict, list)) or (isinstance(inner, str) and _is_sensitive_text(inner)):
            dropped.append(place)
        else:
            kept.append(inner)
    return kept


def _is_dropped(key: str, value: JSONValue) -> bool:
    if value is None or isinstance(value, bool) or _is_redacted(value):
        return False
    if kind_of_key(key) in _DROPPED_KINDS and (isinstance(value, (str, dict, list)) or _PASSWORD.search(key)):
        return True
    return is_environment(value) or (isinstance(value, str) and _is_sensitive_text(value))


def _is_sensitive_text(text: str) -> bool:
    if is_environment(text) or holds_secret(text):
        return True
    if text[:1] in ("{", "[") and '"' in text:  # JSON inside a text
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return bool(without_environment({"": inner})[1])
    return False


def secrets_in(metadata: Mapping[str, JSONValue]) -> tuple[list[str], list[str]]:
    """The paths of secrets in metadata, and of environments and command lines. Values that were redacted do not count."""
    secrets: list[str] = []
    environments: list[str] = []
    _find(metadata, "", secrets, environments)
    return secrets, environments


def _find(
    value: JSONValue | Mapping[str, JSONValue], path: str, secrets: list[str], environments: list[str]
) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            kind = kind_of_key(key)
            if kind == "secret" and isinstance(inner, str) and inner not in ("", REDACTED):
                secrets.append(place)
                continue
            is_listing = kind in ("environment", "command line") or is_environment(inner)
            if isinstance(inner, (dict, list)) and is_listing and not _is_redacted(inner):
                environments.append(place)
            _find(inner, place, secrets, environments)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _find(inner, f"{path}[{number}]", secrets, environments)
    elif isinstance(value, str) and _is_sensitive_text(value):
        (secrets if holds_secret(value) else environments).append(path)


def _is_redacted(value: JSONValue) -> bool:
    """Whether a value holds nothing but texts that were replaced already."""
    if isinstance(value, (dict, list)):
        return all(map(_is_redacted, value.values() if isinstance(value, dict) else value))
    return value in ("", REDACTED)


# ---------------------------------------------------------------------------------------------------- texts of files


def redacted(text: str) -> tuple[str, Counter[str]]:
    """The JSON text of a file (or a part of it) without sensitive data, and how many texts of each kind were replaced. Only texts inside
    strings change, and numbers that are passwords: everything else stays as it is, byte for byte."""
    return _Redaction(text).run()


def _without_assigned(match: re.Match[str]) -> str:
    """`--token VALUE` and `TOKEN=value` without the value; a sentence such as `the token is` stays."""
    name = match[1]
    if name.endswith(" ") and not name.lstrip().startswith("-"):
        return match[0]
    return name + REDACTED


_SECRETS: tuple[tuple[re.Pattern[str], _Replacement], ...] = (
    (_PRIVATE_KEY, lambda match: REDACTED),
    (_TOKEN, lambda match: REDACTED),
    (_BEARER, lambda match: match[1] + REDACTED),
    (_URL_PASSWORD, lambda match: match[0] if match[3] == REDACTED else f"{match[1]}{REDACTED}:{REDACTED}@"),
    (_ASSIGNMENT, _without_assigned),
)

_ANY_KEY = re.compile(r'(?<!\\)"([^"\\]{1,80})"\s*:')
_FIRST_VARIABLE = re.compile(r'\{\s*(?=(?<!\\)"(?:[A-Z_][A-Z0-9_]*|[a-z]+_proxy)"\s*:\s*")')
_FIRST_LINE = re.compile(r'\[\s*(?=(?<!\\)"[A-Z_][A-Z0-9_]*=)')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


class _Redaction:
    """Redacts one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.counts: Counter[str] = Counter()
        self.users: set[str] = set()
        self.hosts: set[str] = set()

    def run(self) -> tuple[str, Counter[str]]:
        self._replace_values()
        self._replace_texts()
        return self.text, self.counts

    # values of keys that say what they hold --------------------------------------------------------

    def _replace_values(self) -> None:
        places: dict[int, tuple[int, str]] = {}  # start of a value -> its end, its kind
        kinds = {key: kind for key in self._keys() if (kind := kind_of_key(key)) is not None}
        if kinds:
            keys = re.compile(r'(?<!\\)"(' + "|".join(map(re.escape, kinds)) + r')"\s*:\s*')
            for match in keys.finditer(self.text):
                if not (_PASSWORD.search(match[1]) or self.text.startswith(_CONTAINERS, match.end())):
                    continue  # a number, such as max_token
                places[match.end()] = (_value_end(self.text, match.end()), kinds[match[1]])
        for pattern in (_FIRST_VARIABLE, _FIRST_LINE):
            for match in pattern.finditer(self.text):
                end = _value_end(self.text, match.start())
                if _is_environment_text(self.text[match.start() : end]):
                    places[match.start()] = (end, "environment")
        parts, done = [], 0
        for start, (end, kind) in sorted(places.items()):
            if start < done:
                continue  # inside a value that is replaced already
            parts += [self.text[done:start], self._value(self.text[start:end], kind)]
            done = end
        self.text = "".join([*parts, self.text[done:]])

    def _keys(self) -> set[str]:
        """The different keys of all objects: few, however large the file is."""
        return {match[1] for match in _ANY_KEY.finditer(self.text)}

    def _value(self, value: str, kind: str) -> str:
        """A value with its texts replaced. Keys stay; those that are named hosts and users are remembered."""
        if value[:1] in ("{", "["):
            if kind in ("host name", "user name", "secret"):
                return value  # an object that is called `user` or `node`: what is inside is looked at by its own keys
            if kind == "environment":
                self._remember_variables(value)
            return self._strings(value, kind)
        if value[:1] == '"':
            if kind == "host name":
                self._remember(self.hosts, value)
            elif kind == "user name":
                self._remember(self.users, value)
            return self._strings(value, kind)
        number = _SCALAR.fullmatch(value)
        if number and kind == "secret":
            self.counts[kind] += 1
            return f'"{REDACTED}"'
        return value

    def _strings(self, value: str, kind: str) -> str:
        """All strings of a value replaced, but for keys and for strings that say nothing."""

        def replaced(match: re.Match[str]) -> str:
            rest = value[match.end() : match.end() + 8].lstrip()
            if rest.startswith(":") or match[0] in ('""', f'"{REDACTED}"'):
                return match[0]
            self.counts[kind] += 1
            return f'"{REDACTED}"'

        return _STRING.sub(replaced, value)

    def _remember_variables(self, value: str) -> None:
        for names, found in (
            ("USER|LOGNAME|USERNAME", self.users),
            ("HOSTNAME|HOST|MASTER_ADDR", self.hosts),
        ):
            for match in re.finditer(rf'"(?:{names})"\s*:\s*("(?:[^"\\]|\\.)*")', value):
                self._remember(found, match[1])
            for match in re.finditer(rf'"(?:{names})=((?:[^"\\]|\\.)*)"', value):
                self._remember(found, f'"{match[1]}"')

    def _remember(self, found: set[str], literal: str) -> None:
        """Note a name that is replaced wherever it stands alone: not one that could be any word."""
        text = literal[1:-1]
        if re.fullmatch(r"[\w.-]{4,}", text) and text not in _NO_USERS and text not in _NO_HOSTS:
            found.add(text)

    # texts that are recognised by their form ---------------------------------------------------------

    def _replace_texts(self) -> None:
        """Look at each different string once, then replace those that change wherever they stand."""
        counts = Counter(match[0] for match in _STRING.finditer(self.text))
        nested = {
            literal: self._nested(literal) for literal in counts if literal[1] in "{[" and '\\"' in literal
        }
        self.users |= {
            match[2] for literal in counts for match in _HOME.finditer(literal) if match[2] not in _NO_USERS
        }
        patterns = self._patterns()
        table: dict[str, str] = {}
        for literal, count in counts.items():
            clean = nested.get(literal, literal)
            for pattern, kind, replaced in patterns:
                other = pattern.sub(replaced, clean)
                if other != clean:
                    clean = other
                    self.counts[kind] += count
            if clean != literal:
                table[literal] = clean
        if table:
            self.text = _STRING.sub(lambda match: table.get(match[0], match[0]), self.text)

    def _nested(self, literal: str) -> str:
        """A string that holds JSON, redacted as a document of its own."""
        try:
            inner = json.loads(literal)
            json.loads(inner)
        except (ValueError, RecursionError):
            return literal
        part = _Redaction(inner)
        text, counts = part.run()
        self.counts += counts
        self.users |= part.users
        self.hosts |= part.hosts
        return literal if text == inner else safe_ends(json.dumps(text, ensure_ascii=literal.isascii()))

    def _patterns(self) -> list[tuple[re.Pattern[str], str, _Replacement]]:
        """What is replaced in strings: the pattern, its kind, and the text instead."""
        patterns: list[tuple[re.Pattern[str], str, _Replacement]] = [
            *((pattern, "secret", replaced) for pattern, replaced in _SECRETS),
            (_EMAIL, "user name", lambda match: f"{REDACTED}@{REDACTED}"),
            (_HOME, "user name", lambda match: match[0] if match[2] in _NO_USERS else match[1] + REDACTED),
        ]
        if self.users:
            names = "|".join(sorted(map(re.escape, self.users), key=len, reverse=True))
            # a folder of this name, or NAME@host; elsewhere the same word may be something else
            alone = re.compile(rf"({_SLASH}|(?<=~))(?:{names})(?={_SLASH}|\")|\b(?:{names})(?=@)")
            patterns.append((alone, "user name", lambda match: (match[1] or "") + REDACTED))
        if self.hosts:
            names = "|".join(sorted(map(re.escape, self.hosts), key=len, reverse=True))
            alone = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])")
            patterns.append((alone, "host name", lambda match: REDACTED))
        return patterns


def _is_environment_text(text: str) -> bool:
    try:
        return is_environment(json.loads(text))
    except ValueError:  # the file is cut: what is there decides
        strings = [literal[1:-1] for literal in _STRING.findall(text)]
        if text[0] == "[":
            return len(strings) < 3 or is_environment(strings)
        variables = re.findall(r'"([^"\\]+)"\s*:\s*"', text)
        return is_environment(dict.fromkeys(variables, ""))


def _value_end(text: str, start: int) -> int:
    """Where the JSON value that starts here ends; the end of the text if it is cut."""
    first = text[start : start + 1]
    if first == '"':
        match = _STRING.match(text, start)
        return match.end() if match else len(text)
    if first not in ("{", "["):
        match = _SCALAR.match(text, start)
        return match.end() if match else start
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        if match[0] in "{[":
            depth += 1
        elif match[0] in "}]":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(text)
