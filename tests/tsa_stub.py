"""A time-stamping authority (RFC 3161) on loopback: certificates of its own, tokens by `openssl ts`.

No test reaches a public authority. This one signs with real X.509 chains and
OpenSSL's own implementation of the protocol, by this machine's clock.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.loopback import Answer, LoopbackServer, Question

TIME_STAMPING: Sequence[x509.ObjectIdentifier] = (ExtendedKeyUsageOID.TIME_STAMPING,)
_CONFIG = """
[tsa]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/signer.pem
certs = {folder}/chain.pem
signer_key = {folder}/signer.key
signer_digest = {digest}
default_policy = 1.3.6.1.4.1.99999.1
digests = sha1, sha256, sha384, sha512
{accuracy}
clock_precision_digits = {digits}
ordering = no
tsa_name = yes
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""

Keyed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def days_from_now(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def certificate(
    name: str,
    issuer: Keyed | None = None,
    *,
    authority: bool = False,
    path_length: int | None = None,
    usage: Sequence[x509.ObjectIdentifier] | None = None,
    critical: bool = True,
    valid: tuple[datetime, datetime] | None = None,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> Keyed:
    """A certificate under `issuer`, or self-signed; with its key."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start, end = valid or (days_from_now(-1), days_from_now(30))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(authority, path_length), critical=True)
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=critical)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def pem(*certificates: x509.Certificate) -> str:
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in certificates)


class TimestampAuthority:
    """`with TimestampAuthority() as authority:` serves `authority.url`.

    `root_pem` is what to trust. By default root, intermediate and signer;
    `chain` gives others: the root first, the signer last.
    """

    def __init__(
        self,
        *,
        chain: Sequence[Keyed] | None = None,
        digest: str = "sha256",
        accuracy: str = "accuracy = secs:1, millisecs:500, microsecs:100",
        digits: int = 0,
    ) -> None:
        if chain is None:
            root = certificate("Stand-in Root", authority=True)
            middle = certificate("Stand-in Time Stamping CA", root, authority=True, usage=TIME_STAMPING)
            chain = (root, middle, certificate("Stand-in TSA", middle, usage=TIME_STAMPING))
        self.chain = chain
        self.root_pem = pem(chain[0][0])
        self._folder = tempfile.TemporaryDirectory()
        self._server = LoopbackServer(self._answer)
        signer, key = chain[-1]
        folder = self.folder
        (folder / "serial").write_text("01\n")
        (folder / "signer.pem").write_text(pem(signer))
        (folder / "chain.pem").write_text(pem(*(each for each, _ in chain[1:])))
        (folder / "signer.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        (folder / "tsa.cnf").write_text(_CONFIG.format(folder=folder, digest=digest, accuracy=accuracy, digits=digits))

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @property
    def url(self) -> str:
        return f"{self._server.url}/tsa"

    @property
    def host(self) -> str:
        return self._server.host

    @property
    def questions(self) -> list[Question]:
        return self._server.questions

    def reply(self, query: bytes) -> bytes:
        """What the authority answers to a query, as `openssl ts -reply` makes it."""
        (self.folder / "query.tsq").write_bytes(query)
        (self.folder / "reply.tsr").unlink(missing_ok=True)
        arguments = ["-queryfile", "query.tsq", "-config", "tsa.cnf", "-section", "tsa", "-out", "reply.tsr"]
        done = subprocess.run(["openssl", "ts", "-reply", *arguments], cwd=self.folder, capture_output=True, text=True)
        assert (self.folder / "reply.tsr").exists(), done.stderr
        return (self.folder / "reply.tsr").read_bytes()

    def _answer(self, question: Question) -> Answer:
        if question.method != "POST" or question.headers.get("Content-Type") != "application/timestamp-query":
            return Answer(415, b"", "text/plain")
        return Answer(body=self.reply(question.body), kind="application/timestamp-reply")

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._server.__exit__(*details)
        self._folder.cleanup()
