import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("pin, of files")
struct PinFileTests {
  /// Those of the published pins whose certificates are at hand.
  static let known: [(file: String, pin: String)] =
    (try? Vectors.rows("spki-pins/known/known_pins.tsv"))?.compactMap { row in
      guard row.count > 1, !row[0].contains("/") else { return nil }
      return (row[0], row[1])
    } ?? []

  @Test("shows the pins that others published, for DER and for PEM")
  func published() async throws {
    #expect(Self.known.count == 37)
    try await withTemporaryDirectory { directory in
      var paths: [String] = []
      for (file, _) in Self.known {
        let der = try Vectors.bytes("spki-pins/known/\(file)")
        paths.append(try directory.write(der, to: file).path(percentEncoded: false))
        paths.append(
          try directory.write(PEMBlock(label: "CERTIFICATE", bytes: der).text, to: file + ".pem")
            .path(percentEncoded: false))
      }
      let outcome = try await Tool.run(["pin"] + paths)
      #expect(outcome.exitCode == 0)
      let pins = outcome.stdout.split(separator: "\n").map { $0.prefix { $0 != " " } }
      #expect(pins == Self.known.flatMap { [Substring($0.pin), Substring($0.pin)] })
    }
  }

  @Test(
    "shows the pin of a certificate request, which the certificate will have", arguments: [0, 1, 2])
  func request(form: Int) async throws {
    try await withTemporaryDirectory { directory in
      let path = directory.path("next.csr")
      let made = try await ChildProcess.run(
        "openssl",
        [
          "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
          "-keyout", directory.path("key.pem"), "-subj", "/CN=next", "-out", path,
        ] + (form == 1 ? ["-outform", "DER"] : form == 2 ? ["-newhdr"] : []))
      #expect(made.exitCode == 0, "\(made.stderr)")
      let key = try await ChildProcess.run(
        "openssl",
        ["pkey", "-in", directory.path("key.pem"), "-pubout", "-out", directory.path("pub.pem")])
      #expect(key.exitCode == 0)
      let expected = try await Tool.run("pin", directory.path("pub.pem")).stdout.prefix(44)
      let shown = try await Tool.run("pin", path)
      #expect(shown.exitCode == 0, "\(shown.stderr)")
      #expect(shown.stdout == "\(expected)  request  (a certificate request)\n")
    }
  }

  @Test("a broken block is an error of its place, also behind good ones")
  func brokenBlock() async throws {
    let openssl = try OpenSSLCommand()
    let request = try await openssl.make(
      "next.der",
      [
        "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
        "key.pem", "-subj", "/CN=next", "-outform", "DER",
      ])
    let forged = request.dropLast() + [request[request.count - 1] ^ 1]
    let good = PEMBlock(label: "CERTIFICATE REQUEST", bytes: request).text
    try await withTemporaryDirectory { directory in
      for (label, bytes, says) in [
        ("CERTIFICATE REQUEST", Array(forged), "its signature is not by its own key"),
        ("CERTIFICATE REQUEST", Array(request.dropLast()), "not in the form of PKCS #10"),
        ("NEW CERTIFICATE REQUEST", [1, 2, 3], "not in the form of PKCS #10"),
        ("RSA PUBLIC KEY", [1, 2, 3], "malformed RSA public key: "),
        ("CERTIFICATE", request, "not a certificate"),
      ] as [(String, [UInt8], String)] {
        let path = try directory.write(
          good + PEMBlock(label: label, bytes: bytes).text, to: "keys.pem"
        ).path(percentEncoded: false)
        let outcome = try await Tool.run("pin", path)
        #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(label)")
        #expect(outcome.stderr.hasPrefix("\(path): block 2, \(label): "), "\(outcome.stderr)")
        #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
      }
      // In DER what is wrong with a request is not told of a certificate.
      let der = try directory.write(Array(forged), to: "next.csr").path(percentEncoded: false)
      let outcome = try await Tool.run("pin", der)
      #expect(outcome.exitCode == 1)
      #expect(outcome.stderr.contains("certificate request: its signature"), "\(outcome.stderr)")
    }
  }

  @Test("shows every certificate of a chain with its role and subject, as openssl computes it")
  func chain() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root", algorithm: .rsa(bits: 2048))
      .issueIntermediate(name: "Middle")
    let identity = try authority.issue(names: ["www.example.com"])
    let certificates = [identity.leaf] + identity.intermediates + [authority.root]
    try await withTemporaryDirectory { directory in
      var expected: [String] = []
      for (index, certificate) in certificates.enumerated() {
        try directory.write(certificate.pem, to: "\(index).pem")
        let openssl = try await ChildProcess.run(
          "bash",
          [
            "-c",
            "openssl x509 -in \(index).pem -pubkey -noout | openssl pkey -pubin -outform der"
              + " | openssl dgst -sha256 -binary | openssl base64 -A",
          ], directory: directory.url)
        expected.append(openssl.stdout)
      }
      let bundle = try directory.write(
        "# a comment\r\n" + certificates.map(\.pem).joined(separator: "between\n"), to: "bundle")
      let path = bundle.path(percentEncoded: false)
      let lines = try await Tool.run("pin", path).stdout.split(separator: "\n").map(String.init)
      #expect(
        lines == [
          "\(expected[0])  leaf  CN=www.example.com", "\(expected[1])  ca    CN=Middle",
          "\(expected[2])  ca    CN=Root",
        ])

      let json = try await Tool.run("pin", "--json", path).json.arrayValue
      let target = try #require(json?.first?.objectValue)
      #expect(target["target"] == .string(path) && target["kind"] == .string("file"))
      let shown = target["certificates"]?.arrayValue?.compactMap(\.objectValue) ?? []
      #expect(shown.compactMap { $0["pin"]?.stringValue } == expected)
      #expect(shown.compactMap { $0["role"]?.stringValue } == ["leaf", "ca", "ca"])
      #expect(shown.first?["issuer"] == .string("CN=Middle"))
      #expect(shown.first?["notAfter"]?.integerValue == identity.leaf.validity?.notAfter)
    }
  }

  @Test("shows the pin of a public key, and of certificates beside a private key")
  func keys() async throws {
    let identity = try ServerIdentity.selfSigned(names: ["a.example"], algorithm: .rsa(bits: 2048))
    try await withTemporaryDirectory { directory in
      try directory.write(try identity.key.publicKeyPEM, to: "pub.pem")
      try directory.write(try identity.key.publicKeyDER, to: "pub.der")
      try directory.write(try identity.keyPEM + identity.leaf.pem, to: "both.pem")
      try directory.write(identity.leaf.der, to: "leaf.der")
      let rsa = try await ChildProcess.run(
        "openssl", ["rsa", "-pubin", "-in", directory.path("pub.pem"), "-RSAPublicKey_out"])
      try directory.write(rsa.stdout, to: "rsa.pem")
      let files = ["pub.pem", "pub.der", "both.pem", "leaf.der", "rsa.pem"].map(directory.path)
      let outcome = try await Tool.run(["pin"] + files)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let pins = outcome.stdout.split(separator: "\n").map { $0.prefix { $0 != " " } }
      #expect(pins.count == 5 && Set(pins).count == 1)

      try directory.write(try identity.keyPEM, to: "alone.pem")
      let alone = try await Tool.run("pin", directory.path("alone.pem"))
      #expect(alone.exitCode == 1)
      #expect(alone.stderr.contains("-pubout") && alone.stdout.isEmpty)
    }
  }

  @Test("is not misled by how a file begins")
  func beginnings() async throws {
    let identity = try ServerIdentity.selfSigned(names: ["a.example"])
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    try await withTemporaryDirectory { directory in
      // "0" is the byte that DER begins with.
      try directory.write("0 s:CN=a.example\n\(identity.leaf.pem)", to: "text")
      #expect(try await Tool.run("pin", directory.path("text")).stdout.hasPrefix(pin))
      for (name, bytes) in [
        ("behind", identity.leaf.der + [0]), ("cut", Array(identity.leaf.der.dropLast())),
      ] {
        try directory.write(bytes, to: name)
        let outcome = try await Tool.run("pin", directory.path(name))
        #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(name)")
      }
    }
  }

  @Test("goes on after a bad target, and ends with the worst of them")
  func several() async throws {
    try await withTemporaryDirectory { directory in
      let good = try directory.write(
        ServerIdentity.selfSigned(names: ["a.example"]).leaf.pem, to: "good.pem"
      ).path(percentEncoded: false)
      let bad = try directory.write("nothing", to: "bad.pem").path(percentEncoded: false)
      let missing = directory.path("missing.pem")
      let one = try await Tool.run("pin", bad, good)
      #expect(one.exitCode == 1)
      #expect(one.stdout.split(separator: "\n").count == 1)
      let two = try await Tool.run("pin", "--json", missing, bad, good)
      #expect(two.exitCode == 3)
      let reports = try two.json.arrayValue?.compactMap(\.objectValue) ?? []
      #expect(reports.map { $0["error"] == nil } == [false, false, true])
    }
  }

  @Test("does not show half of a chain that was cut off")
  func cutOff() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let chain = try authority.issue(names: ["a.example"]).leaf.pem + authority.root.pem
    try await withTemporaryDirectory { directory in
      let file = try directory.write(String(chain.dropLast(40)), to: "cut.pem")
      let outcome = try await Tool.run("pin", file.path(percentEncoded: false))
      #expect(outcome.exitCode == 1)
      #expect(outcome.stdout.isEmpty && outcome.stderr.contains("truncated"))
    }
  }
}

@Suite("pin, of PKCS #12")
struct PinPKCS12Tests {
  /// A .p12 of leaf, middle and key, written by `openssl`.
  struct Stage {
    let directory: TemporaryDirectory
    let pins: [String]

    var path: String { directory.path("server.p12") }

    init(password: String, _ flags: [String] = []) async throws {
      directory = try TemporaryDirectory()
      let authority = try CertificateAuthority.makeRoot(name: "Root")
        .issueIntermediate(name: "Middle")
      let identity = try authority.issue(names: ["localhost"])
      pins = try ([identity.leaf] + identity.intermediates).map {
        try SPKIPin(certificateDER: $0.der).base64
      }
      try directory.write(try identity.keyPEM, to: "key.pem")
      try directory.write(identity.leaf.pem, to: "leaf.pem")
      try directory.write(identity.intermediates.map(\.pem).joined(), to: "chain.pem")
      let made = try await ChildProcess.run(
        "openssl",
        [
          "pkcs12", "-export", "-inkey", "key.pem", "-in", "leaf.pem", "-certfile", "chain.pem",
          "-passout", "pass:\(password)", "-out", "server.p12",
        ] + flags, directory: directory.url)
      #expect(made.exitCode == 0, "\(made.stderr)")
    }

    func pins(of outcome: ChildProcess.Outcome) -> [String] {
      outcome.stdout.split(separator: "\n").map { String($0.prefix(44)) }
    }
  }

  @Test(
    "shows the server's own certificate first, then its CAs, old and new ciphers alike",
    arguments: [[], ["-legacy"], ["-certpbe", "NONE", "-keypbe", "NONE"]])
  func file(flags: [String]) async throws {
    let stage = try await Stage(password: "correct horse \u{fc}", flags)
    let secret = try stage.directory.write("correct horse \u{fc}\nsecond line\n", to: "password")
      .path(percentEncoded: false)
    let outcome = try await Tool.run("pin", stage.path, "--password-file", secret)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(stage.pins(of: outcome) == stage.pins)
    #expect(outcome.stdout.contains("  leaf  CN=localhost\n"))
  }

  @Test("needs no password where the file has none")
  func open() async throws {
    let stage = try await Stage(password: "")
    let outcome = try await Tool.run("pin", stage.path)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(stage.pins(of: outcome) == stage.pins)
    // Others that take files of keys take it as well.
    let check = try await Tool.run(
      "check", "--trust-store", stage.path, "--require-root", stage.path)
    #expect(check.exitCode == 0, "\(check.stdout)\(check.stderr)")
  }

  @Test("a wrong password, no terminal and a broken file are told apart, without the password")
  func trouble() async throws {
    let stage = try await Stage(password: "secret-word")
    let wrong = try stage.directory.write("other-word", to: "wrong").path(percentEncoded: false)
    let refused = try await Tool.run("pin", stage.path, "--password-file", wrong)
    #expect(refused.exitCode == 1)
    #expect(refused.stderr.contains("the password is not that of the file"))
    #expect(!refused.stderr.contains("other-word") && refused.stdout.isEmpty)
    // `setsid` has no terminal.
    let alone = try await ChildProcess.run("setsid", ["-w", Tool.path(), "pin", stage.path])
    #expect(alone.exitCode == 2, "\(alone.stderr)")
    #expect(alone.stderr.contains("--password-file"))
    let bytes = [UInt8](try Data(contentsOf: stage.directory.file("server.p12")))
    for broken in [bytes.dropLast(9), bytes.prefix(8), bytes.prefix(300)] {
      let path = try stage.directory.write(Array(broken), to: "broken.p12")
        .path(percentEncoded: false)
      let outcome = try await Tool.run("pin", path, "--password-file", wrong)
      #expect(outcome.exitCode == 1)
      #expect(outcome.stderr.contains("not readable as PKCS #12"), "\(outcome.stderr)")
    }
    let other = try await Tool.run("check", "--trust-store", stage.path, "--require-root", "x.p12")
    #expect(other.exitCode == 3)
  }

  @Test("asks at the terminal, without an echo, and takes no for an answer")
  func asked() async throws {
    let stage = try await Stage(password: "secret-word")
    // A terminal of its own: what it shows is what Python prints.
    let script = """
      import os, pty, sys
      pid, terminal = pty.fork()
      if pid == 0:
          os.execv(sys.argv[1], [sys.argv[1], "pin", sys.argv[2]])
      shown = b""
      while b"password of" not in shown:
          shown += os.read(terminal, 1024)
      os.write(terminal, sys.argv[3].encode().decode("unicode_escape").encode())
      try:
          while part := os.read(terminal, 1024):
              shown += part
      except OSError:
          pass
      print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
      print(shown.decode())
      """
    for (typed, code) in [("secret-word\\n", "0"), ("else\\n", "1"), ("\\x03", "3")] {
      let outcome = try await ChildProcess.run(
        "python3", ["-c", script, Tool.path(), stage.path, typed])
      #expect(outcome.stdout.hasPrefix("\(code)\n"), "\(outcome.stdout)\(outcome.stderr)")
      #expect(!outcome.stdout.contains("secret-word"))
      #expect(outcome.stdout.contains(stage.pins[0]) == (code == "0"))
    }
  }
}
