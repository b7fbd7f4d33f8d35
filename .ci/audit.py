"""Look up known vulnerabilities of the locked versions, as far as the registry offers such data.

Only names and versions of packages are sent. Exits with 1 if a vulnerability is known; a registry without
such data is reported and does not fail.
"""

import json
import subprocess
import sys

found = subprocess.run(
    [*sys.argv[1].split(), "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]
    + [f"--requirement={lock}" for lock in sys.argv[2:]],
    capture_output=True,
    text=True,
    check=False,
)
try:
    packages = json.loads(found.stdout)["dependencies"]
except (ValueError, KeyError, TypeError):
    print(f"audit: not done, because pip-audit gave no answer: {found.stderr.strip()[-300:]}")
    sys.exit(0)
audited = [package for package in packages if "vulns" in package]
print(f"audit: {len(audited)} of {len(packages)} locked packages could be looked up.")
known = [(package, fault) for package in audited for fault in package["vulns"]]
for package, fault in known:
    fixed = ", ".join(fault["fix_versions"]) or "no version"
    print(f"audit: {package['name']} {package['version']}: {fault['id']}, fixed in {fixed}")
sys.exit(bool(known))
