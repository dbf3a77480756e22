"""Published token formats: what opens a token of each kind, and what follows.

Data alone. The formats come from the vendors' own documentation and the public rule sets of secret
scanners; lengths are kept a little looser than today's, so that a longer token is still found whole.
"""

from __future__ import annotations

# A token may follow an escape (`\n` in JSON, `%3D` in a URL), whose last letter is no part of it.
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
# Long shapes also need a clear left edge, so that one run of characters is scanned once.
WIDE_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9])"
_W = r"[A-Za-z0-9_-]"

# kind, markers that open a token, pattern of what follows the marker.
FORMATS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z2-7]{16}" + _END),
    ("aws_bedrock_key", ("ABSK",), r"[A-Za-z0-9+/]{100,400}={0,2}"),
    ("aws_session_token", ("FwoGZXIvYXdz", "IQoJb3JpZ2lu"), r"[A-Za-z0-9+/]{80,3000}={0,2}"),
    ("github_token", ("ghp_", "gho_", "ghu_", "ghr_"), r"[A-Za-z0-9]{36,255}"),
    ("github_token", ("ghs_",), r"[A-Za-z0-9]{20}[A-Za-z0-9_.-]{16,1500}"),
    ("github_token", ("github_pat_",), r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40,255}"),
    (
        "gitlab_token",
        ("glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glcbt-", "glimt-", "glagent-", "glsoat-", "glffct-",
         "gloas-", "glft-"),
        _W + r"{20,300}(?:\.[A-Za-z0-9_-]{2,60}){0,3}",
    ),
    ("slack_token", ("xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxs-", "xoxr-", "xoxc-", "xoxd-", "xoxe-"),
     r"[A-Za-z0-9%/+=-]{16,400}"),
    ("slack_token", ("xapp-", "xoxe.xox"), _W + r"{20,400}"),
    ("slack_webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"),
     r"[A-Za-z0-9]{5,40}/[A-Za-z0-9]{5,40}/[A-Za-z0-9/]{10,80}"),
    ("stripe_key", ("sk_live_", "rk_live_", "sk_test_", "rk_test_"), r"[A-Za-z0-9]{16,250}"),
    ("webhook_secret", ("whsec_",), r"[A-Za-z0-9+/]{24,120}={0,2}"),
    ("google_api_key", ("AIza",), _W + r"{35}(?![A-Za-z0-9_-])"),
    ("google_api_key", ("AQ.",), _W + r"{40,300}"),
    ("google_oauth_token", ("GOCSPX-",), _W + r"{20,60}"),
    ("google_oauth_token", ("ya29.",), r"[A-Za-z0-9_.-]{20,2000}"),
    ("google_oauth_token", ("1//0",), _W + r"{40,300}"),
    ("anthropic_key", ("sk-ant-",), _W + r"{20,300}"),
    ("openrouter_key", ("sk-or-v1-",), r"[0-9a-f]{40,100}"),
    ("openai_key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"), _W + r"{20,300}"),
    # Several vendors share `sk-`; some put dots in the body. A dot that ends a sentence is not taken.
    ("api_key", ("sk-",), r"[A-Za-z0-9_-]{6,300}(?:\.[A-Za-z0-9_-]{4,200}){0,4}"),
    ("elevenlabs_key", ("sk_",), r"[0-9a-f]{48}" + _END),
    ("npm_token", ("npm_",), r"[A-Za-z0-9]{36}" + _END),
    ("pypi_token", ("pypi-",), _W + r"{50,1000}"),
    ("rubygems_key", ("rubygems_",), r"[0-9a-f]{48}" + _END),
    ("nuget_key", ("oy2",), r"[a-z0-9]{43}" + _END),
    ("sendgrid_key", ("SG.",), _W + r"{16,40}\.[A-Za-z0-9_-]{30,80}"),
    ("twilio_key", ("SK",), r"[0-9a-f]{32}" + _END),
    ("mailgun_key", ("key-",), r"[0-9a-f]{32}" + _END),
    ("huggingface_token", ("hf_", "api_org_"), r"[A-Za-z0-9]{30,60}" + _END),
    ("digitalocean_token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]{64}" + _END),
    ("databricks_token", ("dapi",), r"[0-9a-f]{32}(?:-[0-9])?" + _END),
    ("shopify_token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[0-9a-fA-F]{32}" + _END),
    ("linear_key", ("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{32,80}"),
    ("square_token", ("sq0atp-",), _W + r"{22,60}"),
    ("square_token", ("sq0csp-",), _W + r"{40,60}"),
    ("square_token", ("EAAA",), _W + r"{60}(?![A-Za-z0-9_-])"),
    ("age_secret_key", ("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"), r"[A-Z0-9]{50,3000}"),
    ("onepassword_token", ("ops_eyJ",), r"[A-Za-z0-9+/_-]{100,3000}={0,3}"),
    ("onepassword_key", ("A3-",), r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("vault_token", ("hvs.", "hvb.", "hvr."), _W + r"{24,300}"),
    ("doppler_token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), r"[A-Za-z0-9._-]{40,80}"),
    ("grafana_token", ("glsa_",), r"[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}" + _END),
    ("grafana_token", ("glc_",), r"[A-Za-z0-9+/]{32,400}={0,3}"),
    ("newrelic_key", ("NRAK-",), r"[A-Z0-9]{27}" + _END),
    ("sentry_token", ("sntryu_",), r"[0-9a-f]{64}" + _END),
    ("sentry_token", ("sntrys_eyJ",), r"[A-Za-z0-9+/=_-]{60,600}"),
    ("postman_key", ("PMAK-",), r"[0-9a-f]{24}-[0-9a-f]{34}" + _END),
    ("atlassian_token", ("ATATT3", "ATCTT3", "ATBB"), r"[A-Za-z0-9_=-]{24,400}"),
    ("docker_token", ("dckr_pat_", "dckr_oat_"), _W + r"{27,60}"),
    ("figma_token", ("figd_",), _W + r"{38,60}"),
    ("notion_token", ("ntn_",), r"[A-Za-z0-9]{40,60}"),
    ("supabase_key", ("sbp_", "sb_secret_"), _W + r"{24,60}"),
    ("planetscale_token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[A-Za-z0-9_.-]{32,80}"),
    ("fly_token", ("fm1r_", "fm2_", "fo1_"), r"[A-Za-z0-9+/_-]{43,2000}={0,3}"),
    ("netlify_token", ("nfp_",), r"[A-Za-z0-9]{36,60}"),
    ("replicate_token", ("r8_",), r"[A-Za-z0-9]{37}" + _END),
    ("groq_key", ("gsk_",), r"[A-Za-z0-9]{40,80}"),
    ("perplexity_key", ("pplx-",), r"[A-Za-z0-9]{40,80}"),
    ("xai_key", ("xai-",), r"[A-Za-z0-9]{60,100}"),
    ("nvidia_key", ("nvapi-",), _W + r"{40,100}"),
    ("tavily_key", ("tvly-",), _W + r"{24,80}"),
    ("langsmith_key", ("lsv2_pt_", "lsv2_sk_"), r"[0-9a-f]{32}_[0-9a-f]{10}" + _END),
    ("pinecone_key", ("pcsk_",), r"[A-Za-z0-9_]{40,100}"),
    ("tailscale_key", ("tskey-",), r"[a-z]{2,12}-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{16,60}"),
    ("pulumi_token", ("pul-",), r"[0-9a-f]{40}" + _END),
    ("buildkite_token", ("bkua_",), r"[0-9a-f]{40}" + _END),
    ("sonar_token", ("squ_", "sqp_", "sqa_"), r"[0-9a-f]{40}" + _END),
    ("dynatrace_token", ("dt0c01.", "dt0s01."), r"[A-Z0-9]{24}\.[A-Z0-9]{64}" + _END),
    ("alibaba_key", ("LTAI",), r"[A-Za-z0-9]{16,24}" + _END),
    ("airtable_token", ("pat",), r"[A-Za-z0-9]{14}\.[0-9a-f]{64}" + _END),
    ("discord_webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
     r"[0-9]{15,22}/[A-Za-z0-9_-]{50,90}"),
)
