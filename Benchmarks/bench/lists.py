"""Lists as servers in the field write them, and documents of them."""

import base64
import datetime
import hashlib
import json

import tools


def payload(hosts):
    """A format-1 payload: indented, members in order."""
    start = datetime.datetime(2026, 1, 1)
    keys = []
    for number in range(hosts):
        seen = start + datetime.timedelta(minutes=37 * (number % 10_000))
        keys.append({
            "date": seen.isoformat() + ".%09dZ" % (number * 7_919_993 % 10**9),
            "domainName": f"*.host-{number}.example.com",
            "expire": 1_900_000_000 + 3_600 * (number % 10_000),
            "fqdn": f"www.host-{number}.example.com",
            "key": base64.b64encode(hashlib.sha256(b"key %d" % number).digest()).decode(),
        })
    return json.dumps({"keys": keys}, indent=2).encode()


class Documents:
    """Files of payloads, and of documents under one RSA-4096 key."""

    def __init__(self, folder, core):
        self.folder, self.core, self.public = folder, core, folder / "pub.pem"

    def make_key(self):
        tools.output("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096",
                     "-out", self.folder / "prv.pem")
        tools.output("openssl", "pkey", "-in", self.folder / "prv.pem", "-pubout", "-out", self.public)

    def payload(self, hosts):
        file = self.folder / f"payload-{hosts}.json"
        if not file.exists():
            file.write_bytes(payload(hosts))
        return file

    def document(self, hosts):
        file, data = self.folder / f"document-{hosts}.json", self.payload(hosts)
        if not self.public.exists():
            self.make_key()
        if not file.exists():
            canonical = tools.output(self.core, "canonical", data)
            signature = tools.output("openssl", "dgst", "-sha512", "-sign", self.folder / "prv.pem", input=canonical)
            text = json.dumps({"payload": json.loads(data.read_bytes()), "signature": base64.b64encode(signature).decode()})
            file.write_text(text)
        return file
