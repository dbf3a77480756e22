"""Where the product's own files lie: a clone, an installed bundle, or a wheel."""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from context_anchor.errors import InstallError

DISTRIBUTION: Final = "context-anchor"
REQUIREMENTS_FILE: Final = "requirements.txt"
_VERSION = re.compile(r'^__version__\s*=\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """One copy of the product.

    `package` is its folder `context_anchor`; `assets` holds `scripts/`, and in a clone or a wheel also the
    files that bundles are rendered from. A bundle is what the installer rendered for one host.
    """

    kind: Literal["clone", "bundle", "wheel"]
    package: Path
    assets: Path

    @property
    def version(self) -> str:
        """The version this copy is of."""
        found = _VERSION.search((self.package / "__init__.py").read_text(encoding="utf-8"))
        if not found:
            raise InstallError(f"{self.package / '__init__.py'} names no version", hint="Get a fresh copy.")
        return found.group(1)

    def requirements(self) -> tuple[str, ...]:
        """Return the distributions that the server needs at run time, as pip takes them.

        They are in one form and order, whichever copy tells them: a wheel's metadata sort the bounds of a version.
        """
        if self.kind == "clone":
            named = parse_dependencies((self.assets / "pyproject.toml").read_text(encoding="utf-8"))
            return tuple(sorted(map(canonical, named)))
        if self.kind == "bundle":
            lines = (self.assets / REQUIREMENTS_FILE).read_text(encoding="utf-8").splitlines()
            return tuple(sorted(canonical(line) for line in lines if line.strip() and not line.startswith("#")))
        for found in metadata.distributions(name=DISTRIBUTION, path=[str(self.package.parent)]):
            return tuple(sorted(canonical(text) for text in found.requires or () if "extra ==" not in text))
        raise InstallError(f"{self.package} was installed without its metadata", hint="Reinstall the package.")

    def fingerprint(self) -> str:
        """Return a digest of the package's files: two copies of one version may differ in a clone."""
        digest = hashlib.sha256()
        for name, content in package_files(self.package).items():
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:32]


def find(package: Path | None = None) -> Source:
    """Return the copy that a package folder belongs to, by default the one this code runs from.

    Raises InstallError where the files beside the package are missing.
    """
    package = Path(__file__).resolve().parents[1] if package is None else package.resolve()
    root = package.parent
    if (root / "scripts" / "hook.py").is_file():
        if (root / "pyproject.toml").is_file():
            return Source("clone", package, root)
        if (root / REQUIREMENTS_FILE).is_file():
            return Source("bundle", package, root)
    inner = package / "bundle"
    if (inner / "scripts" / "hook.py").is_file():
        return Source("wheel", package, inner)
    raise InstallError(
        f"The files that belong to {package} are not there (scripts/hook.py)",
        hint="Install from a full clone, or reinstall the package.",
    )


def canonical(requirement: str) -> str:
    """Return a requirement without spaces and its version's bounds sorted; a direct reference as it is."""
    text, semicolon, marker = requirement.strip().partition(";")
    if "@" in text:
        return requirement.strip()
    parts = re.match(r"\s*([A-Za-z0-9._-]+)\s*(\[[^\]]*\])?\s*\(?([^)]*)\)?\s*$", text)
    if not parts:
        return requirement.strip()
    bounds = sorted("".join(bound.split()) for bound in parts.group(3).split(",") if bound.strip())
    extras = "".join((parts.group(2) or "").split())
    return parts.group(1) + extras + ",".join(bounds) + (f"; {marker.strip()}" if semicolon else "")


def package_files(package: Path) -> dict[str, bytes]:
    """Return the package's files by their path below it, without byte code and the wheel's bundle."""
    found: dict[str, bytes] = {}
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if "__pycache__" in inside.parts or inside.parts[0] == "bundle" or path.suffix == ".pyc":
            continue
        if path.is_file():
            found[inside.as_posix()] = path.read_bytes()
    return found


def parse_dependencies(text: str) -> tuple[str, ...]:
    """Return `dependencies` of a pyproject's `[project]` table; Python 3.10 has no TOML reader of its own.

    An array of TOML strings with comments and a last comma reads the same as a Python list.
    """
    table = re.search(r"^\[project\]\s*$", text, re.MULTILINE)
    body = text[table.end() :] if table else ""
    following = re.search(r"^\[[^\[\]]", body, re.MULTILINE)
    body = body[: following.start()] if following else body
    named = re.search(r"^dependencies\s*=\s*", body, re.MULTILINE)
    if named:
        at = named.end()
        for end in (m.end() for m in re.finditer(r"\]", body)):
            if end <= at:
                continue
            try:
                value = ast.literal_eval(body[at:end])
            except (ValueError, SyntaxError):
                continue  # a bracket inside a string, as in "package[extra]"
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                return tuple(value)
            break
    raise InstallError("pyproject.toml names no list of dependencies", hint="Get a fresh clone.")
