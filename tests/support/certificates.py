"""Certificates for servers of a test."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key


def certified(folder: Path, name: str) -> tuple[str, str]:
    """A certificate for `name` that signed itself, and its key: their files."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(certificate), str(key)


def expired(folder: Path, name: str) -> tuple[str, str]:
    """As `certified`, but valid until yesterday."""
    _, key = certified(folder, name)
    private = load_pem_private_key(Path(key).read_bytes(), None)
    assert isinstance(private, EllipticCurvePrivateKey)
    known = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(known, known, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(private, SHA256())
    )
    certificate = folder / "expired.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    return str(certificate), key
