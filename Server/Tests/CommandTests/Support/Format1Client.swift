import TestSupport

/// A client of the field that knows format 1 and nothing else: `python3` reads and re-encodes what it
/// knows, `openssl` checks the signature. For ASCII strings and integers Python's sorted, compact JSON
/// is the RFC 8785 form.
struct Format1Client {
  /// One entry of a document.
  struct Entry: Hashable {
    let domainName: String
    let fqdn: String
    let key: String
  }

  /// A document whose signature was found good.
  struct Document: Equatable {
    /// The bytes as they came, in base64.
    let body: String
    let entries: [Entry]
  }

  let machine: PrivateMachine
  /// The public key that the client was shipped with.
  let key: String

  /// Fetches a document until it lists these names and no other.
  ///
  /// Every answer on the way must be a document that the client accepts.
  func document(_ url: String, listing names: Set<String>) async throws -> Document {
    let end = try await machine.run(
      "python3", ["-c", Self.script, key, url] + names.sorted(), environment: Tool.noProxies)
    guard end.exitCode == 0 else { throw ChildProcess.Failure.ended(program: "the client", end) }
    let lines = end.stdout.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    return Document(
      body: lines.first?.first ?? "",
      entries: lines.dropFirst().map { Entry(domainName: $0[0], fqdn: $0[1], key: $0[2]) })
  }

  private static let script = #"""
    import base64, json, re, subprocess, sys, tempfile, time, urllib.error, urllib.request

    public, url, names = sys.argv[1], sys.argv[2], sorted(sys.argv[3:])
    KNOWN = ("date", "domainName", "expire", "fqdn", "key")

    def is_signed(payload, signature):
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(signature, validate=True))
            file.flush()
            openssl = ["openssl", "dgst", "-sha512", "-verify", public, "-signature", file.name]
            done = subprocess.run(openssl, input=text.encode("ascii"), stdout=subprocess.PIPE)
        return done.stdout == b"Verified OK\n"

    def accept(body):
        document = json.loads(body)
        payload = document["payload"]
        assert set(payload) == {"keys"}, payload
        for key in payload["keys"]:
            assert set(key) == set(KNOWN), key
            assert len(base64.b64decode(key["key"], validate=True)) == 32, key
            assert type(key["expire"]) is int and key["expire"] > time.time(), key
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", key["date"]), key
        known = {"keys": [{name: key[name] for name in KNOWN} for key in payload["keys"]]}
        assert is_signed(known, document["signature"]), "the signature is bad"
        # The control: any other key, under the same signature.
        known["keys"][0]["key"] = base64.b64encode(bytes(32)).decode()
        assert not is_signed(known, document["signature"]), "any signature is good"
        return payload["keys"]

    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            body = urllib.request.urlopen(url, timeout=5).read()
        except urllib.error.URLError as error:
            last = str(error)
        else:
            keys = accept(body)
            last = body.decode()
            if sorted(key["domainName"] for key in keys) == names:
                print(base64.b64encode(body).decode())
                for key in keys:
                    print(key["domainName"], key["fqdn"], key["key"])
                sys.exit(0)
        time.sleep(0.05)
    sys.exit("not " + " ".join(names) + " but " + last)
    """#
}
