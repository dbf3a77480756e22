"""Secrets in text: finding them and putting typed placeholders in their place.

Three kinds of evidence, each bounded so that the time is linear in the text:

1. published token formats, which begin with a fixed marker (`ghp_`, `AKIA`, `sk-ant-`, ...);
2. shapes with a known frame: private-key blocks, passwords in URLs, `Authorization` headers, dotted keys;
3. a value assigned to a name such as `password` or `api.key`, if the value is random enough to be one.

Text that only names a secret (`env.API_KEY`, `${SECRET}`, `<your-token>`) or looks like one (digests,
UUIDs, paths, type annotations, sample values) is left as it is.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from context_anchor.secret_formats import EDGE, FORMATS, WIDE_EDGE


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret in a text: what kind, and where (`text[start:end]`, in characters)."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Return every secret in the text, in order and without overlap."""
    found = [*_formats(text), *_key_blocks(text), *_framed(text), *_assigned(text)]
    return _merged(found)


def redact(text: str) -> str:
    """Return the text with each secret replaced by `[redacted:<kind>]`; applying it twice changes nothing."""
    for _ in range(_MOST_ROUNDS):
        found = find_secrets(text)
        if not found:
            break
        # A placeholder is an edge: a secret that was glued to the one before it is seen in the next round.
        text = _replaced(text, found)
    return text


_MOST_ROUNDS = 10


def _replaced(text: str, found: tuple[Finding, ...]) -> str:
    parts: list[str] = []
    at = 0
    for finding in found:
        parts += (text[at : finding.start], f"[redacted:{finding.kind}]")
        at = finding.end
    parts.append(text[at:])
    return "".join(parts)


def _merged(found: list[Finding]) -> tuple[Finding, ...]:
    """Join overlapping findings; the name of the one found first in the list (the more specific) stays."""
    order = {id(finding): rank for rank, finding in enumerate(found)}
    result: list[tuple[int, Finding]] = []
    for finding in sorted(found, key=lambda f: (f.start, -f.end)):
        rank = order[id(finding)]
        if result and finding.start < result[-1][1].end:
            last_rank, last = result[-1]
            kind = finding.kind if rank < last_rank else last.kind
            result[-1] = (min(rank, last_rank), Finding(kind, last.start, max(last.end, finding.end)))
        else:
            result.append((rank, finding))
    return tuple(finding for _, finding in result)


# --- 1. Published token formats ------------------------------------------------------------------------

_EDGE_BEFORE = re.compile(EDGE)


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """Compile a pattern when a text first has its marker: compiling them all would take 25 ms."""
    return re.compile(source)


def _formats(text: str) -> Iterator[Finding]:
    for kind, markers, source in FORMATS:
        for marker in markers:
            at = text.find(marker)
            if at < 0:
                continue
            body = _pattern(source)
            while at >= 0:
                hit = body.match(text, at + len(marker)) if _EDGE_BEFORE.match(text, at) else None
                if hit and not _is_filler(hit.group()) and not (kind == "api_key" and _weak(hit.group())):
                    yield Finding(kind, at, hit.end())
                    at = text.find(marker, hit.end())
                else:
                    at = text.find(marker, at + len(marker))


def _weak(value: str) -> bool:
    """Tell whether what follows a bare `sk-` is too short or too wordy to be a key (`sk-learn-...`)."""
    return len(value) < 20 or _is_words(value)


# --- 2. Shapes with a known frame ----------------------------------------------------------------------

_BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile(r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"(?:(?:\\[rn]|[ \t\r\n])*[A-Za-z0-9+/=]{16,200}(?=\\[rn]|[\s\"'`]|$))+")
_PUTTY = re.compile(r"Private-Lines: [0-9]{1,4}\r?\n((?:[A-Za-z0-9+/=]{8,80}\r?\n?)+)")


def _key_blocks(text: str) -> Iterator[Finding]:
    begins = list(_BEGIN_KEY.finditer(text))
    limits = [begin.start() for begin in begins[1:]] + [len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        closing = text.find("-----END ", begin.end(), limit)
        end = _END_KEY.match(text, closing + 9) if closing >= 0 else None
        if end:
            if _KEY_RUN.search(text, begin.end(), closing):
                yield Finding("private_key", begin.start(), end.end())
        elif cut_off := _KEY_LINES.match(text, begin.end(), limit):
            yield Finding("private_key", begin.start(), cut_off.end())
    for hit in _PUTTY.finditer(text):
        yield Finding("private_key", hit.start(1), hit.end(1))


_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{30}")

_W = r"[A-Za-z0-9_-]"
_JWT = WIDE_EDGE + rf"eyJ{_W}{{8,4000}}\.{_W}{{8,16000}}(?:\.{_W}{{0,4000}}){{1,3}}"
_TELEGRAM = rf"(?<![0-9A-Za-z])[0-9]{{8,10}}:AA{_W}{{33}}(?!{_W})"
_DISCORD = WIDE_EDGE + rf"([MNO]{_W}{{23,27}})\.{_W}{{6}}\.{_W}{{27,45}}(?!{_W})"
_TERRAFORM = WIDE_EDGE + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}"
_AZURE = r"[A-Za-z0-9_~.-]"
_AZURE_CLIENT = rf"(?<!{_AZURE}){_AZURE}{{3}}[0-9]Q~{_AZURE}{{31,34}}(?![A-Za-z0-9_~-])"
_AZURE_KEY = r"(?:AccountKey|SharedAccessKey|SharedSecretKey)=([A-Za-z0-9+/]{40,100}={0,2})"
_SIGNATURE = r"[?&;]sig=([A-Za-z0-9%+/_-]{40,120}={0,2})"
_MAILCHIMP = r"(?<![A-Za-z0-9])[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"
# Keys without any marker, made of an id and a secret: 32 hexadecimal digits, a dot, mixed characters.
_DOTTED = r"(?<![A-Za-z0-9_.-])[0-9a-f]{32,40}\.([A-Za-z0-9]{10,40})(?![A-Za-z0-9_.-]{2})"
_URL_USER = re.compile(r"[^\s:/@\"'<>`\\]{0,100}:([^\s/@\"'<>`\\]{1,300})@[A-Za-z0-9\[_.%-]")
_BEARER = r"(?i)\bbearer(?:[ \t]|%20){1,4}([A-Za-z0-9_.~+/-]{16,4000}={0,2})"
_BASIC = r"(?i)\bbasic(?:[ \t]|%20){1,4}([A-Za-z0-9+/_-]{8,1000}={0,2})"
_HEADER = (
    r"(?i)\bauthorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?(?:(?:token|apikey|key|ssws|bot)[ \t]{1,4})?"
    r"([A-Za-z0-9_.~+/=:-]{12,4000})"
)
_CURL_USER = (
    r"\bcurl\b[^\n]{0,200}?[ \t](?:-u|--user)[ \t=]{0,2}[\"']?[^\s:\"']{1,100}:([^\s\"']{1,200})"
)
_NETRC = r"\blogin\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(\S{4,200})"
_NPMRC = r"(?<![A-Za-z0-9])_auth[ \t]{0,4}=[ \t]{0,4}[\"']?([A-Za-z0-9+/]{12,400}={0,2})"

# kind, text (lower case) without which it can't occur, pattern (its group 1, if any, is the secret).
_FRAMES: tuple[tuple[str, str, str], ...] = (
    ("jwt", "eyj", _JWT),
    ("telegram_token", ":aa", _TELEGRAM),
    ("terraform_token", ".atlasv1.", _TERRAFORM),
    ("azure_client_secret", "q~", _AZURE_CLIENT),
    ("azure_key", "key=", _AZURE_KEY),
    ("azure_signature", "sig=", _SIGNATURE),
    ("mailchimp_key", "-us", _MAILCHIMP),
    ("bearer_token", "bearer", _BEARER),
    ("authorization", "authorization", _HEADER),
    ("password", "curl", _CURL_USER),
    ("password", "login", _NETRC),
    ("npm_token", "_auth", _NPMRC),
)


def _framed(text: str) -> Iterator[Finding]:
    lowered = text.lower()
    for kind, gate, source in _FRAMES:
        if gate not in lowered:
            continue
        pattern = _pattern(source)
        for hit in pattern.finditer(text):
            group = 1 if pattern.groups else 0
            value = hit.group(group)
            if not _is_filler(value) and not _is_words(value) and not _is_reference(value):
                yield Finding(kind, hit.start(group), hit.end(group))
    if "." in text:
        for hit in _pattern(_DISCORD).finditer(text):
            if _decoded(hit.group(1)).isdigit():
                yield Finding("discord_token", hit.start(), hit.end())
        for hit in _pattern(_DOTTED).finditer(text):
            if _classes(hit.group(1)) == 3:
                yield Finding("api_key", hit.start(), hit.end())
    if "basic" in lowered:
        for hit in _pattern(_BASIC).finditer(text):
            user, colon, password = _decoded(hit.group(1)).partition(b":")
            if colon and password and user + password and (user + password).isascii():
                yield Finding("basic_auth", hit.start(1), hit.end(1))
    yield from _url_passwords(text)


def _url_passwords(text: str) -> Iterator[Finding]:
    at = text.find("://")
    while at >= 0:
        hit = _URL_USER.match(text, at + 3)
        if hit:
            password = hit.group(1)
            user = text[at + 3 : hit.start(1) - 1]
            if password.lower() != user.lower() and not _is_filler(password) and not _is_reference(password):
                yield Finding("url_password", hit.start(1), hit.end(1))
        at = text.find("://", at + 3)


def _decoded(value: str) -> bytes:
    """Return what base64 text of either alphabet stands for, b'' if it is none."""
    bare = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


# --- 3. Values assigned to a secret's name -------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SYMBOLS = "!@#$%^&*?+~"
_PASSWORD_NAME = r"passw(?:or)?ds?|passphrases?|passcodes?|pwds?"
_NAME = re.compile(
    rf"(?i)(?P<password>{_PASSWORD_NAME})|secrets?|tokens?|credentials?"
    r"|(?:api|access|auth|account|app|client|consumer|encryption|master|private|secret|service|session|shared|signing)"
    r"[_.-]?keys?|(?P<bare>(?<![a-z])key)"
)
_NESTED = re.compile(_NAME.pattern + "[=:]")
_TAIL = re.compile(r"[A-Za-z0-9_.-]{0,40}")
_HEAD_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Words in a name that say the value is about a secret, and is none.
_ABOUT = _words(
    "hash hashed digest sha sha1 sha256 md5 checksum fingerprint id ids name names count counts limit limits"
    " length len size max min maximum minimum budget total usage used per path paths file files dir folder url"
    " urls uri endpoint type types kind field fields column param header prefix suffix env var ttl expiry"
    " expires expiration timeout policy rule rules regex pattern label title hint help placeholder version"
    " format public ref reference arn page next cursor cache primary foreign sort partition input output prompt"
    " completion created updated at age strength required enabled reset forgot index"
)
_OPERATOR = re.compile(
    r"(?:\\?[\"'`])?\]?[ \t]{0,8}(?::=|=>|={1,2}|:(?![:/]))[ \t]{0,8}(?:\r?\n[ \t]{1,20}(?=[\"']))?"
)
_TYPED = re.compile(r"[ \t]{0,4}:[ \t]{0,4}[A-Za-z_&][A-Za-z0-9_.\[\]|<>& ]{0,40}?=(?![=>])[ \t]{0,4}")
_MARKUP = re.compile(r">(?=[^<>\n]{1,300}</)")
_LISTED = re.compile(r"[\"']?[ \t]{0,4},?\s{1,20}[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}", re.IGNORECASE)
_SAID = re.compile(r"[ \t]{1,4}(?:is|was)[ \t]{1,4}(?:now[ \t]|set to[ \t])?")
_FLAG = re.compile(r"[ \t]{1,4}(?=[^\s-])")
_QUOTED = re.compile(r"(?P<mark>\\?[\"'`])(?P<value>[^\r\n]{1,400}?)(?P=mark)")
_PLAIN = re.compile(r"(?:(?!&[A-Za-z_.-]{1,30}=)[^\s\"'`<>,;\\]){1,400}")


def _assigned(text: str) -> Iterator[Finding]:
    for name in _NAME.finditer(text):
        tail = _TAIL.match(text, name.end())
        after = tail.end() if tail else name.end()
        if after > name.end() and text[name.end()].islower():
            continue  # `tokenizer`, `secretary`
        head = name.start()
        while head > 0 and name.start() - head < 40 and text[head - 1] in _HEAD_CHARS:
            head -= 1
        words = {word.lower() for word in _WORD.findall(text, head, after)}
        if words & _ABOUT:
            continue
        flag = text.startswith("--", head)
        password, bare = name.group("password") is not None, name.group("bare") is not None
        for operator in (_TYPED, _OPERATOR, _MARKUP, _LISTED, _SAID, _FLAG):
            if operator is _FLAG and not flag:
                continue
            found = operator.match(text, after)
            span = _value_at(text, found.end(), operator is _MARKUP) if found else None
            if span and _is_secret(text[span[0] : span[1]], password, bare, operator is _SAID):
                yield Finding("password" if password else "assigned_secret", *span)
                break


def _value_at(text: str, at: int, markup: bool) -> tuple[int, int] | None:
    """Return where the value that begins here starts and ends, without its quotes."""
    if markup:
        return at, text.index("<", at)
    if text[at : at + 1] in ("b", "r", "u") and text[at + 1 : at + 2] in ('"', "'"):
        at += 1
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted.span("value")
    plain = _PLAIN.match(text, at)
    if not plain:
        return None
    end = plain.end()
    while end > at and text[end - 1] in ".:)]}|":
        end -= 1
    return at, end


def _is_secret(value: str, password: bool, bare: bool, said: bool) -> bool:
    if _NESTED.search(value):
        return False  # `password=token=...`: the inner name is looked at in its turn
    if _is_reference(value) or _is_filler(value) or " " in value.strip() or _is_digest(value):
        return False
    size = len(value)
    letters = any(c.isalpha() for c in value)
    digits = any(c.isdigit() for c in value)
    if password:
        symbols = sum(c in _SYMBOLS for c in value)
        if size < (8 if said else 6) or not letters or not (digits or symbols >= 2):
            return False
        return not _is_words(value) or (value.isalnum() and value.lower() not in _ALGORITHMS)
    if not (letters and digits) or _is_words(value) or len(set(value)) < 6:
        return False
    if bare:
        return size >= 24 and _classes(value) == 3 and _entropy(value) >= 3.8
    if size >= 16:
        return _entropy(value) >= 2.9
    if size >= 12:
        return True
    return size >= 8 and not said and (_classes(value) == 3 or any(c in _SYMBOLS for c in value))


# --- What is none --------------------------------------------------------------------------------------

_ALGORITHMS = _words(
    "sha1 sha224 sha256 sha384 sha512 md4 md5 bcrypt argon2 argon2i argon2id pbkdf2 scrypt base16 base32 base58"
    " base64 utf8 utf8mb4 oauth1 oauth2 hs256 rs256 es256 ed25519 ntlmv2 totp2 http2 sha3"
)
_FILLER = re.compile(
    r"(?i)example|placeholder|change[_-]?me|redacted|dummy|sample|your[_-]|yourtoken|yourkey|yourpass|insert[_-]"
    r"|replace[_-]|todo|xxxx|\*{3}|\.{3}|\u2026|not[_-]?a[_-]?real|fake[_-]|put[_-]"
)
_FILLER_WORDS = _words(
    "password password1 password123 passwd pass pwd secret token test test123 foo foobar bar none null nil"
    " undefined true false user admin root guest postgres mysql redis"
)
_LONGEST_WITH_FILLER = 160  # in longer tokens such words come up by chance
_REFERENCE = re.compile(
    r"(?i)\$[a-z_({]|\$$|%[a-z_]\w*%|[<\[({]|![a-z]+$|@[a-z]\w*$|(?:op|vault|ref\+\w+|file|ssm|sops|keyring|awssm)://?"
    r"|(?:arn|vault|env|ssm|projects|secretsmanager|keychain)[:.(/]|[a-z_][\w.:>-]*[(\[]|0x[0-9a-f]+$"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|\.{0,2}/[\w.@-]+/|~/|[a-z]:\\"
)
_REFERENCE_INSIDE = re.compile(
    r"(?i)\$\{|\$\(|\{\{|\{[a-z_]\w*\}|<%|%\(|\benv\.|\bprocess\.|environ|getenv|\bsecrets\.|://"
)
_DIGEST = re.compile(r"(?i)(?:sha(?:1|256|384|512)|md5|blake[23][bs]?)[:-]")
_PIECE = re.compile(r"[A-Za-z]{0,20}[0-9]{0,4}|[0-9]{1,4}[A-Za-z]{0,3}")
_SPLIT = re.compile(r"[-_./:+,|@#=\s]+|(?<=[a-z])(?=[A-Z])")


def _is_reference(value: str) -> bool:
    """Tell whether a value names where a secret is (a variable, a call, a path) and is none."""
    return _REFERENCE.match(value) is not None or _REFERENCE_INSIDE.search(value) is not None


def _is_filler(value: str) -> bool:
    """Tell whether a value only stands in the place of a secret (`changeme`, `xxxx`, `AKIA...EXAMPLE`)."""
    if len(set(value)) <= 3 or value.lower() in _FILLER_WORDS:
        return True
    return len(value) <= _LONGEST_WITH_FILLER and _FILLER.search(value) is not None


def _is_words(value: str) -> bool:
    """Tell whether a value is made of words and small numbers, as identifiers and versions are."""
    return all(_PIECE.fullmatch(piece) for piece in _SPLIT.split(value))


def _is_digest(value: str) -> bool:
    return _DIGEST.match(value) is not None


def _classes(value: str) -> int:
    """Return how many of lower case, upper case and digits occur."""
    return (
        any(c.islower() for c in value) + any(c.isupper() for c in value) + any(c.isdigit() for c in value)
    )


def _entropy(value: str) -> float:
    """Return the Shannon entropy of the value's characters, in bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())
