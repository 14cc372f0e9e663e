"""The templates for CI, as their platforms read them."""

from pathlib import Path

import yaml

_CI = Path(__file__).parents[2] / "deploy/ci"
GITHUB = yaml.safe_load((_CI / "github-actions.yml").read_text())
GITHUB["on"] = GITHUB.pop(True)  # YAML 1.1 reads the key as a truth value
GITLAB = yaml.safe_load((_CI / "gitlab-ci.yml").read_text())
