"""Secrets are found in every planted shape, look-alikes are left alone, and the time stays linear.

No line of this file holds a whole token: each is put together here, so that scanners of repositories
stay quiet.
"""

from __future__ import annotations

import base64
import random
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.redact import Finding, find_secrets, redact

_LETTERS = string.ascii_letters + string.digits


def _random(size: int, alphabet: str = _LETTERS, seed: int = 1) -> str:
    """Return fixed pseudo-random text that has lower case, upper case and digits, where they exist."""
    source = random.Random(f"{seed}/{size}/{alphabet}")
    while True:
        text = "".join(source.choice(alphabet) for _ in range(size))
        wanted = [kind for kind in (str.islower, str.isupper, str.isdigit) if any(map(kind, alphabet))]
        if size < 12 or all(any(kind(c) for c in text) for kind in wanted):
            return text


_HEX = "0123456789abcdef"
_R = _random
_B64 = base64.b64encode(random.Random(7).randbytes(64)).decode()
_PEM = "\n".join(_B64[i : i + 44] for i in range(0, 88, 44))
_KEY = " PRIVATE KEY-----"


def _jwt() -> str:
    part = base64.urlsafe_b64encode
    head = part(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = part(b'{"sub":"1234","name":"Ada","iat":1516239022}').decode().rstrip("=")
    return f"{head}.{body}.{_R(43)}"


_SNOWFLAKE = base64.b64encode(b"811234567890123456").decode().rstrip("=")

# kind, the secret itself, a text around it with {} in its place
PLANTED: list[tuple[str, str, str]] = [
    ("aws_access_key", "AKI" + "A" + _R(16, string.ascii_uppercase + "234567"), "key {} in us-east-1"),
    ("aws_access_key", "ASI" + "A" + _R(16, string.ascii_uppercase + "234567"), "export AWS_ACCESS_KEY_ID={}"),
    ("assigned_secret", _R(40, _LETTERS + "+/"), "aws_secret_access_key = {}"),
    ("github_token", "gh" + "p_" + _R(36), "git push with {}."),
    ("github_token", "gh" + "s_" + _R(36), "{}"),
    ("github_token", "github" + "_pat_" + _R(22) + "_" + _R(59), "token: {}"),
    ("gitlab_token", "glp" + "at-" + _R(20), "PRIVATE-TOKEN: {}"),
    ("slack_token", "xo" + "xb-" + "2" * 3 + _R(9, "123456789") + "-" + _R(24), "bot uses {}"),
    ("slack_webhook", "hooks.slack" + ".com/services/T" + _R(8) + "/B" + _R(8) + "/" + _R(24), "https://{}"),
    ("stripe_key", "sk_" + "live_" + _R(24), "stripe.api_key = '{}'"),
    ("stripe_key", "rk_" + "live_" + _R(24), "({})"),
    ("webhook_secret", "whs" + "ec_" + _R(32), "STRIPE_WEBHOOK={}"),
    ("google_api_key", "AI" + "za" + _R(35), "maps key `{}`"),
    ("google_oauth_token", "ya" + "29." + _R(60), "access {}"),
    ("google_oauth_token", "GOC" + "SPX-" + _R(28), "client {}"),
    ("openai_key", "sk-" + "proj-" + _R(48), "OPENAI_API_KEY={}"),
    ("api_key", "sk" + "-" + _R(48), "{} works"),
    ("api_key", "sk" + "-sp-" + _R(18) + "." + _R(36), "api_key: {}"),
    ("anthropic_key", "sk-" + "ant-api03-" + _R(80), "key={}"),
    ("npm_token", "np" + "m_" + _R(36), "//registry/:_authToken={}"),
    ("pypi_token", "py" + "pi-AgEI" + _R(60), "twine: {}"),
    ("sendgrid_key", "S" + "G." + _R(22) + "." + _R(43), "mail via {}"),
    ("twilio_key", "S" + "K" + _R(32, _HEX), "twilio {}"),
    ("huggingface_token", "h" + "f_" + _R(34), "HF {}"),
    ("jwt", _jwt(), "cookie {}; path=/"),
    ("telegram_token", _R(9, "123456789") + ":A" + "A" + _R(33), "bot {}"),
    ("digitalocean_token", "do" + "p_v1_" + _R(64, _HEX), "{}"),
    ("azure_key", _R(86) + "==", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};"),
    ("azure_signature", _R(43) + "%3D", "https://x.blob/y?sv=2022&sig={}"),
    ("databricks_token", "da" + "pi" + _R(32, _HEX), "{}"),
    ("shopify_token", "shp" + "at_" + _R(32, _HEX), "{}"),
    ("linear_key", "lin" + "_api_" + _R(40), "{}"),
    ("square_token", "sq0" + "atp-" + _R(22), "{}"),
    ("discord_token", _SNOWFLAKE + "." + _R(6) + "." + _R(38), "login({})"),
    ("age_secret_key", "AGE-SECRET" + "-KEY-1" + _R(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "{}"),
    ("onepassword_token", "op" + "s_eyJ" + _R(200), "{}"),
    ("vault_token", "hv" + "s." + _R(28), "VAULT {}"),
    ("docker_token", "dckr" + "_pat_" + _R(27), "docker login -p {}"),
    ("atlassian_token", "ATA" + "TT3" + _R(100), "{}"),
    ("grafana_token", "gl" + "sa_" + _R(32) + "_" + _R(8, _HEX), "{}"),
    ("api_key", _R(32, _HEX) + "." + _R(16), "GLM key {} (no marker at all)"),
    ("url_password", "s3cr" + "et-Pass9", "postgres://app:{}@db.internal:5432/app"),
    ("url_password", _R(12), "redis://:{}@10.0.0.3:6379/0"),
    ("private_key", f"-----BEGIN RSA{_KEY}\n{_PEM}\n-----END RSA{_KEY}", "the key:\n{}\nuse it"),
    ("private_key", f"-----BEGIN{_KEY}\n{_PEM}", "cut off:\n{}"),
    ("private_key", f"-----BEGIN{_KEY}\\n{_B64}\\n-----END{_KEY}", '{{"private_key": "{}"}}'),
    ("bearer_token", _R(40), "curl -H 'Authorization: Bearer {}' https://x"),
    ("basic_auth", base64.b64encode(b"deploy:hunter2hunter2").decode(), "Authorization: Basic {}"),
    ("authorization", _R(32), "Authorization: {}"),
    ("password", "Tr0ub4dor" + "&3", "password={}"),
    ("password", "hunter" + "2", "db.password: {}"),
    ("password", "p@ss!" + "word", 'PGPASSWORD="{}" psql'),
    ("password", "Zx9" + "kLmQ2", "the staging password is {}, ask Kim"),
    ("password", "hunter" + "22", "mysql --password {} -u root"),
    ("password", "n3t" + "rcPass", "machine h login joe password {}"),
    ("password", "xK7" + "-mzP2q", "<password>{}</password>"),
    ("password", "xK7" + "mzP2q", 'password: str = "{}"'),
    ("password", "c0rrect" + "H0rse", "curl -s -u admin:{} https://x"),
    ("assigned_secret", _R(32, _HEX), "api.key={}"),
    ("assigned_secret", _R(32, _HEX), "spring.cloud.config.token: {}"),
    ("assigned_secret", _R(24), '{{"client_secret": "{}"}}'),
    ("assigned_secret", _R(24), '\\"apiKey\\": \\"{}\\"'),
    ("assigned_secret", _R(24), "https://x/y?api_key={}&page=2"),
    ("assigned_secret", _R(20), "- name: DEPLOY_TOKEN\n  value: {}"),
    ("assigned_secret", "9" + _R(8, _HEX) + "-1c2d-4e3f-8a9b-" + _R(12, _HEX), "HEROKU_API_KEY={}"),
    ("assigned_secret", _R(40, _LETTERS + "+/"), "key = {}"),
]


@pytest.mark.parametrize(("kind", "secret", "around"), PLANTED, ids=[f"{n}-{p[0]}" for n, p in enumerate(PLANTED)])
def test_a_planted_secret_is_replaced_by_a_placeholder_of_its_kind(kind: str, secret: str, around: str) -> None:
    text = around.replace("{{", "{").replace("}}", "}").replace("{}", secret)
    clean = redact(text)
    assert secret not in clean
    # Nothing of its random part is left over either.
    assert not any(secret[at : at + 8] in clean for at in range(4, max(5, len(secret) - 8)))
    assert f"[redacted:{kind}]" in clean
    assert redact(clean) == clean


@pytest.mark.parametrize("secret", [p[1] for p in PLANTED[:5]])
@pytest.mark.parametrize("before", ['"', "=", "\\n", "%3D", "(", "中", "`", ">", "openai_"])
def test_what_stands_before_a_token_does_not_hide_it(secret: str, before: str) -> None:
    if secret == PLANTED[2][1]:
        return  # found by its name alone
    assert [f.kind for f in find_secrets(before + secret + '"')]


_SHA = _R(40, _HEX)
LOOK_ALIKES = [
    "apiKey: import.meta.env.VITE_FIREBASE_API_KEY,",
    "const key = env.API_KEY",
    'token = os.environ["TOKEN"]',
    'password = os.getenv("DB_PASSWORD", "")',
    "password=${SECRET}",
    "PASSWORD=$DB_PASSWORD",
    "password=$(pass show db/prod2)",
    "set PASSWORD=%DB_PASS1%",
    "api_key: <your-token>",
    "api_key: YOUR_API_KEY_123456",
    "token: xxxxxxxxxxxxxxxx1",
    "token = process.env.GITHUB_TOKEN",
    "password: changeme123",
    "password = example-passw0rd-1",
    "password: str",
    "password: string | null = null;",
    "def login(user: str, password: str = None) -> Token:",
    "the token limit is 80000",
    "max_tokens: 4096, token_count=12000",
    "the token is refreshed every 3600s by the gateway",
    "tokens: 166_000 of 200_000",
    f"commit {_SHA} fixes it",
    f"git_token_commit_id: {_SHA}",
    f"sha256:{_R(64, _HEX)}",
    f"secret_sha256 = {_R(64, _HEX)}",
    f"image: app@sha256:{_R(64, _HEX)}",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "request_id=550e8400-e29b-41d4-a716-446655440000",
    "session 0199c5d2-7f3a-7cc1-9f62-4d1b6d2c8a11",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "integrity sha512-" + _R(86) + "==",
    "/home/joe/.config/tokens/v2/session-01.json",
    "token_path: /var/run/secrets/kubernetes.io/token",
    "secret: /run/secrets/db2_password",
    "secretName: db-credentials-v2",
    "secretKeyRef: {name: app-secret-1, key: password1}",
    "passwordHash = bcrypt.hashpw(password, salt)",
    "password_hash: $2b$12$" + _R(22),
    "tokenizer: cl100k_base",
    "secretary: Alice2 Smith3",
    "password: sha256",
    "token: tokens[index2]",
    "token = self.refresh_token(user1, scope2)",
    "password=user_password2",
    "api_key: settings.external.api_key_v2",
    "vault: secret/data/app2/config1",
    "password: op://vault/item2/password1",
    "password: vault:secret/data/app1#password2",
    "sk-learn-based-pipeline-for-things-2024",
    "risk-averse-strategy-number-12345678",
    "AKIAIOSFODNN7" + "EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY is in the documentation",
    "ghp_" + "x" * 36,
    "ghp_xxx, glpat-..., xoxb-your-token",
    "keys start with the ghp_ prefix; sk-ant- is another",
    "postgres://user:password@localhost/db",
    "postgres://postgres:postgres@localhost/db",
    "postgres://app:${DB_PASSWORD}@db/app",
    "postgres://app:<password>@db/app",
    "https://example.com:8080/a@b",
    "ssh://git@github.com:22/x.git",
    "http://localhost:3000/@vite/client1",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "we use Bearer authentication and Basic authentication",
    "look for `-----BEGIN" + " PRIVATE KEY-----` in the file",
    "-----BEGIN" + " PRIVATE KEY-----\n...\n-----END" + " PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + _PEM + "\n-----END PUBLIC KEY-----",
    "primary_key=user_id2, foreign_key: orders.id3",
    "cache-key: npm-Linux-x64-" + _R(64, _HEX),
    "key: ctrl+shift+p2",
    "public_key: " + _R(43) + "=",
    "next_page_token: " + _R(24),
    "if token == expected_token1:",
    "password must be at least 12 characters, 1 digit",
    "docker run -u 1000:1000 app",
    "curl --user $USER:$PASS https://x",
    "pwd: /home/joe/work2/app1",
    "PWD=/home/joe/work2/app1",
    "main." + _R(32, _HEX) + ".chunk.js",
    "secrets: inherit",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    'name: "token", type: "string2", required: true',
    "assert token.kind == TokenKind.NAME2",
    "f'password={password1}'",
    "token budget: 14000 characters (3500 tokens)",
    "密码：请联系管理员",
    "[redacted:github_token] and password=[redacted:password]",
]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_is_left_as_it_is(text: str) -> None:
    assert find_secrets(text) == ()
    assert redact(text) == text


def test_the_labelled_sets_are_as_large_as_promised() -> None:
    assert len(PLANTED) >= 30
    assert len({kind for kind, _, _ in PLANTED}) >= 30
    assert len(LOOK_ALIKES) >= 40


def test_only_the_password_of_a_url_is_replaced() -> None:
    text = "postgres://app:" + "s3cr" + "et-Pass9" + "@db:5432/app"
    assert redact(text) == "postgres://app:[redacted:url_password]@db:5432/app"


def test_findings_say_where_the_secret_stands() -> None:
    secret = "gh" + "p_" + _R(36)
    assert find_secrets(f"use {secret} now") == (Finding("github_token", 4, 4 + len(secret)),)


def test_several_secrets_are_found_each_in_its_place() -> None:
    secrets = [p[1] for p in PLANTED if p[0] in ("github_token", "stripe_key", "jwt")]
    text = "\n".join(f"- {secret}" for secret in secrets)
    found = find_secrets(text)
    assert [text[f.start : f.end] for f in found] == secrets


_FRAGMENTS = st.sampled_from(
    [p[1] for p in PLANTED]
    + ["password=", "token: ", "://", ":", "@", "-----BEGIN" + _KEY, "-----END" + _KEY, "\n", '"', "eyJ", "."]
    + ["[redacted:x]", "Bearer ", "curl -u ", " is ", "--secret "]
)


@given(st.lists(st.one_of(_FRAGMENTS, st.text(max_size=8)), max_size=12).map("".join))
def test_findings_are_ordered_apart_and_gone_after_redaction(text: str) -> None:
    found = find_secrets(text)
    at = 0
    for finding in found:
        assert at <= finding.start < finding.end <= len(text)
        at = finding.end
    once = redact(text)
    assert redact(once) == once


_HOSTILE = [
    "a", " ", "\n", "A", "0", "/", "=", ":", "@", "-", "_", ".", '"', "\\", "\\n", "(", "$", "é",
    "password=", "password:", "password", "token is ", "--token ", "secret>", "password: a",
    "key", "api_key=a&", 'password="', "password: str = ", "token value: ", "name: token value: ",
    "://", "://a:", "://a:b", "eyJ", "eyJa.", "-eyJ", "eyJaaaaaaaaaa.", "sk-", "sk-a", "ghp_", "SG.",
    "SG.aaaaaaaaaaaaaaaaaaaa.",
    "-----BEGIN" + _KEY, "-----END ", "-----BEGIN" + _KEY + "A", "Private-Lines: 1\nA",
    "curl ", "curl -u ", "login ", "login a password ", "bearer ", "Bearer a", "basic ", "authorization:",
    "AccountKey=", "&sig=",
    "00000000000000000000000000000000.", "MMMMMMMMMMMMMMMMMMMMMMMM.", "1//0", "AQ.", "xoxe.xox", "ya29.",
]


def test_hostile_text_is_read_to_the_end() -> None:
    # In a process of its own, which can be ended: a pattern that backtracks would run for hours. Every text
    # was also tried at a megabyte.
    code = (
        "import sys; from context_anchor.redact import find_secrets\n"
        "for unit in sys.stdin.buffer.read().decode().split('\\0'):\n"
        "    find_secrets(unit * (120_000 // len(unit)))\n"
        "print('read')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\0".join(_HOSTILE).encode(),
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    assert done.stdout.strip() == b"read"
