import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("ca")
struct CATests {
  private static func run(
    _ directory: TemporaryDirectory, _ words: [String]
  ) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run(Tool.path(), words, directory: directory.url)
  }

  private static func must(
    _ directory: TemporaryDirectory, _ words: String...
  ) async throws -> ChildProcess.Outcome {
    let outcome = try await run(directory, words)
    #expect(outcome.exitCode == 0, "\(words): \(outcome.stderr)")
    return outcome
  }

  private static func openssl(
    _ directory: TemporaryDirectory, _ line: String
  ) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run(
      "openssl", line.split(separator: " ").map(String.init), directory: directory.url)
  }

  private static func mode(_ directory: TemporaryDirectory, _ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: directory.path(name))[.posixPermissions]
      as? Int
  }

  private static func text(_ directory: TemporaryDirectory, _ name: String) throws -> String {
    try String(contentsOf: directory.file(name), encoding: .utf8)
  }

  /// The one that `ca init` made.
  private static func authority(
    _ directory: TemporaryDirectory
  ) throws -> CertificateAuthority {
    try CertificateAuthority(
      chain: Certificate.certificates(inPEM: text(directory, "own-ca/ca.pem")),
      key: PrivateKey(pem: text(directory, "own-ca/ca.key")))
  }

  private static func pin(_ directory: TemporaryDirectory, _ name: String) async throws -> String {
    let outcome = try await must(directory, "pin", name)
    return String(outcome.stdout.prefix { $0 != " " && $0 != "\n" })
  }

  @Test(
    "issues what openssl verifies for every name, with keys that only their owner reads",
    arguments: ["p256", "rsa-2048"])
  func issue(algorithm: String) async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init", "--algorithm", algorithm)
      let shown = try await Self.must(
        directory, "ca", "issue", "api.example.com", "*.example.org", "127.0.0.1", "::1",
        "--algorithm", algorithm)
      for name in ["own-ca/ca.key", "api.example.com.key"] {
        #expect(try Self.mode(directory, name) == 0o600)
      }
      for name in [
        "-verify_hostname api.example.com", "-verify_hostname x.example.org", "-verify_ip ::1",
      ] {
        let end = try await Self.openssl(
          directory, "verify -CAfile own-ca/ca.pem -x509_strict \(name) api.example.com.pem")
        #expect(end.exitCode == 0, "\(name): \(end.stderr)")
      }
      let other = try await Self.openssl(
        directory, "verify -CAfile own-ca/ca.pem -verify_hostname example.com api.example.com.pem")
      #expect(other.exitCode != 0)
      let pin = try await Self.pin(directory, "api.example.com.pem")
      #expect(shown.stdout.contains("leaf pin    \(pin)"))
      #expect(
        shown.stdout.contains(/ssl_certificate     \/.+\/api\.example\.com\.pem;/))
      #expect(shown.stdout.contains("<key>NSPinnedDomains</key>"))
      #expect(shown.stdout.contains(try await Self.pin(directory, "own-ca/ca.cer")))
    }
  }

  @Test("overwrites nothing, and leaves nothing half made")
  func taken() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      let key = try Self.text(directory, "own-ca/ca.key")
      let again = try await Self.run(directory, ["ca", "init"])
      #expect(again.exitCode == 3)
      #expect(again.stderr.contains("own-ca/ca.key exists and is kept"))
      #expect(try Self.text(directory, "own-ca/ca.key") == key)
      try directory.write("mine", to: "a.example.cer")
      let blocked = try await Self.run(directory, ["ca", "issue", "a.example"])
      #expect(blocked.exitCode == 3)
      #expect(!FileManager.default.fileExists(atPath: directory.path("a.example.key")))
      // A link that leads nowhere is free to look at, and taken.
      try FileManager.default.removeItem(at: directory.file("a.example.cer"))
      try FileManager.default.createSymbolicLink(
        at: directory.file("a.example.cer"), withDestinationURL: directory.file("nowhere"))
      let late = try await Self.run(directory, ["ca", "issue", "a.example"])
      #expect(late.exitCode == 3)
      #expect(!FileManager.default.fileExists(atPath: directory.path("a.example.key")))
      #expect(!FileManager.default.fileExists(atPath: directory.path("nowhere")))
      let wrong = try await Self.run(directory, ["ca", "issue", "a example"])
      #expect(wrong.exitCode == 2)
      #expect(!FileManager.default.fileExists(atPath: directory.path("a example.key")))
    }
  }

  @Test("renews under the same key: the pin stays, the names stay, the old certificate is kept")
  func renew() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      _ = try await Self.must(directory, "ca", "issue", "a.example", "b.example")
      let (old, pin) = (
        try Self.text(directory, "a.example.pem"), try await Self.pin(directory, "a.example.pem")
      )
      let bare = try await Self.run(directory, ["ca", "renew", "a.example.pem"])
      #expect(bare.exitCode == 2)
      #expect(bare.stderr.contains("ca rotate"))
      for round in 1...2 {
        let before = try Self.text(directory, "a.example.pem")
        _ = try await Self.must(directory, "ca", "renew", "--same-key", "a.example.pem")
        #expect(try Self.text(directory, "a.example.old-\(round).pem") == before)
      }
      #expect(try Self.text(directory, "a.example.pem") != old)
      #expect(try await Self.pin(directory, "a.example.pem") == pin)
      #expect(try await Self.pin(directory, "a.example.cer") == pin)
      let end = try await Self.openssl(
        directory, "verify -CAfile own-ca/ca.pem -verify_hostname b.example a.example.pem")
      #expect(end.exitCode == 0, "\(end.stderr)")
      // Another root is one that no app trusts.
      _ = try await Self.must(directory, "ca", "init", "--dir", "other")
      let other = try await Self.run(
        directory, ["ca", "renew", "--same-key", "a.example.pem", "--dir", "other"])
      #expect(other.exitCode == 1)
      #expect(other.stderr.contains("of another authority"))
      // DER at the place of the PEM would be what a server reads next.
      let place = try await Self.run(directory, ["ca", "renew", "--same-key", "a.example.cer"])
      #expect(place.exitCode == 2)
      // A name of another kind would be lost.
      try directory.write(
        "subjectAltName=DNS:a.example,otherName:1.3.6.1.4.1.311.20.2.3;UTF8:me@x", to: "ext")
      _ = try await Self.openssl(
        directory, "req -new -key a.example.key -subj /CN=a.example -out a.csr")
      let odd = try await Self.openssl(
        directory,
        "x509 -req -in a.csr -CA own-ca/ca.pem -CAkey own-ca/ca.key -days 9 -extfile ext -out odd.pem"
      )
      #expect(odd.exitCode == 0, "\(odd.stderr)")
      try FileManager.default.copyItem(
        at: directory.file("a.example.key"), to: directory.file("odd.key"))
      let lost = try await Self.run(directory, ["ca", "renew", "--same-key", "odd.pem"])
      #expect(lost.exitCode == 1, "\(lost.stderr)")
      #expect(lost.stderr.contains("names of other kinds"))
    }
  }

  @Test(
    "makes the next key beside the one in use, and switches when told, also after it was cut off")
  func rotate() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      _ = try await Self.must(directory, "ca", "issue", "a.example")
      let (key, pin) = (
        try Self.text(directory, "a.example.key"), try await Self.pin(directory, "a.example.pem")
      )
      let early = try await Self.run(directory, ["ca", "rotate", "--switch", "a.example.pem"])
      #expect(early.exitCode == 3)
      let made = try await Self.must(directory, "ca", "rotate", "a.example.pem")
      let next = try await Self.pin(directory, "a.example.next.pem")
      #expect(next != pin)
      #expect(made.stdout == "next pin    \(next)\n")
      #expect(try Self.mode(directory, "a.example.next.key") == 0o600)
      #expect(try await Self.pin(directory, "a.example.pem") == pin)
      // As if the power had failed after the first of two files.
      try FileManager.default.copyItem(
        at: directory.file("a.example.key"), to: directory.file("a.example.old-1.key"))
      try FileManager.default.removeItem(at: directory.file("a.example.key"))
      try FileManager.default.moveItem(
        at: directory.file("a.example.next.key"), to: directory.file("a.example.key"))
      _ = try await Self.must(directory, "ca", "rotate", "--switch", "a.example.pem")
      #expect(try await Self.pin(directory, "a.example.pem") == next)
      #expect(try await Self.pin(directory, "a.example.cer") == next)
      // One more cut-off: all is in place but the DER.
      try Data([1]).write(to: directory.file("a.example.cer"))
      _ = try await Self.must(directory, "ca", "rotate", "--switch", "a.example.pem")
      #expect(try await Self.pin(directory, "a.example.cer") == next)
      let done = try await Self.run(directory, ["ca", "rotate", "--switch", "a.example.pem"])
      #expect(done.exitCode == 3)
      // What apps would refuse takes no place.
      _ = try await Self.must(directory, "ca", "rotate", "a.example.pem")
      let good = try Self.text(directory, "a.example.next.pem")
      for (validity, by) in [("-days -1", "own-ca/ca"), ("-days 9", "other/ca")] {
        if by == "other/ca" { _ = try await Self.must(directory, "ca", "init", "--dir", "other") }
        try directory.write("subjectAltName=DNS:a.example", to: "ext")
        _ = try await Self.openssl(
          directory, "req -new -key a.example.next.key -subj /CN=a.example -out a.csr")
        _ = try await Self.openssl(
          directory,
          "x509 -req -in a.csr -CA \(by).pem -CAkey \(by).key \(validity) -extfile ext -out a.example.next.pem"
        )
        let bad = try await Self.run(directory, ["ca", "rotate", "--switch", "a.example.pem"])
        #expect(bad.exitCode == 1, "\(by): \(bad.stderr)")
        #expect(try await Self.pin(directory, "a.example.pem") == next)
      }
      try directory.write(good, to: "a.example.next.pem")
      _ = try await Self.must(directory, "ca", "rotate", "--switch", "a.example.pem")
      // And once more without trouble.
      let second = try Self.text(directory, "a.example.key")
      _ = try await Self.must(directory, "ca", "rotate", "a.example.pem")
      let third = try await Self.pin(directory, "a.example.next.pem")
      _ = try await Self.must(directory, "ca", "rotate", "--switch", "a.example.pem")
      #expect(try await Self.pin(directory, "a.example.pem") == third)
      #expect(try Self.text(directory, "a.example.old-1.key") == key)
      #expect(try Self.text(directory, "a.example.old-3.key") == second)
      #expect(try Self.mode(directory, "a.example.key") == 0o600)
      _ = try ServerIdentity(
        certificates: Certificate.certificates(inPEM: Self.text(directory, "a.example.pem")),
        key: PrivateKey(pem: Self.text(directory, "a.example.key")))
    }
  }

  @Test("waits for the command that has the files, and changes what is behind a link")
  func oneByOne() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      try FileManager.default.createDirectory(
        at: directory.file("site"), withIntermediateDirectories: true)
      _ = try await Self.must(directory, "ca", "issue", "a.example", "--out", "site")
      try FileManager.default.createSymbolicLink(
        at: directory.file("a.example.pem"),
        withDestinationURL: directory.file("site/a.example.pem"))
      let before = try Self.text(directory, "site/a.example.pem")
      _ = try await Self.must(directory, "ca", "renew", "--same-key", "a.example.pem")
      let renewed = try Self.text(directory, "site/a.example.pem")
      #expect(renewed != before)
      #expect(try Self.text(directory, "a.example.pem") == renewed)
      _ = try await Self.must(directory, "ca", "rotate", "site/a.example.pem")
      let held = open(directory.path("site"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      defer { close(held) }
      #expect(flock(held, LOCK_EX | LOCK_NB) == 0)
      async let renewing = Self.run(directory, ["ca", "renew", "--same-key", "a.example.pem"])
      async let switching = Self.run(directory, ["ca", "rotate", "--switch", "a.example.pem"])
      for late in [try await renewing, try await switching] {
        #expect(late.exitCode == 3, "\(late.stdout)")
        #expect(late.stderr.contains("another command"))
      }
      #expect(try Self.text(directory, "site/a.example.pem") == renewed)
    }
  }

  @Test("signs nothing by an authority whose own certificate, or one above it, has ended")
  func endedAuthority() async throws {
    try await withTemporaryDirectory { directory in
      let now = Int64(Date().timeIntervalSince1970)
      let root = try CertificateAuthority.makeRoot(name: "Root")
      let middle = try root.issueIntermediate(
        name: "Middle", validity: Validity(notBefore: now - 9000, notAfter: now - 60))
      try FileManager.default.createDirectory(
        at: directory.file("own-ca"), withIntermediateDirectories: true)
      try directory.write(try middle.key.pem, to: "own-ca/ca.key")
      try directory.write(middle.chain.map(\.pem).joined(), to: "own-ca/ca.pem")
      let outcome = try await Self.run(directory, ["ca", "issue", "a.example"])
      #expect(outcome.exitCode == 1, "\(outcome.stdout)")
      #expect(!FileManager.default.fileExists(atPath: directory.path("a.example.key")))
    }
  }

  @Test(
    "signs nothing by a clock that says a time before a certificate at hand begins",
    arguments: ["root", "middle", "leaf", "none"])
  func clockBehind(ahead: String) async throws {
    try await withTemporaryDirectory { directory in
      let now = Int64(Date().timeIntervalSince1970)
      func validity(_ name: String) -> Validity {
        Validity(
          notBefore: now + (name == ahead ? 9000 : -60), notAfter: now + 30 * 86_400)
      }
      let root = try CertificateAuthority.makeRoot(name: "Root", validity: validity("root"))
      let middle = try root.issueIntermediate(name: "Middle", validity: validity("middle"))
      try FileManager.default.createDirectory(
        at: directory.file("own-ca"), withIntermediateDirectories: true)
      try directory.write(try middle.key.pem, to: "own-ca/ca.key")
      try directory.write(middle.chain.map(\.pem).joined(), to: "own-ca/ca.pem")
      for (file, part) in [("renewed", "leaf"), ("old", "old"), ("old.next", "leaf")] {
        let server = try middle.issue(names: ["a.example"], validity: validity(part))
        try directory.write(try server.keyPEM, to: file + ".key")
        try directory.write(server.certificateChainPEM, to: file + ".pem")
      }
      for words in [
        ["issue", "b.example"], ["renew", "--same-key", "renewed.pem"], ["rotate", "renewed.pem"],
        ["rotate", "--switch", "old.pem"],
      ] {
        let outcome = try await Self.run(directory, ["ca"] + words)
        let isSigned = ahead == "none" || ahead == "leaf" && words[0] == "issue"
        #expect(outcome.exitCode == (isSigned ? 0 : 1), "\(words): \(outcome.stderr)")
        #expect(outcome.stderr.contains("hint: set the clock") != isSigned, "\(outcome.stderr)")
      }
    }
  }

  @Test("replaces a certificate of a fast clock by --days, which its hint names")
  func madeByFastClock() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      let own = try Self.authority(directory)
      let now = Int64(Date().timeIntervalSince1970)
      for name in ["a", "b", "b.next"] {
        let begin = now + (name == "b" ? -60 : 400 * 86_400)
        let server = try own.issue(
          names: ["a.example"], validity: Validity(notBefore: begin, notAfter: begin + 90 * 86_400))
        try directory.write(try server.keyPEM, to: name + ".key")
        try directory.write(server.certificateChainPEM, to: name + ".pem")
      }
      for words in [["rotate", "a.pem"], ["renew", "--same-key", "a.pem"]] {
        let refused = try await Self.run(directory, ["ca"] + words)
        #expect(refused.exitCode == 1)
        #expect(refused.stderr.contains("or --days DAYS"), "\(refused.stderr)")
        let made = try await Self.run(directory, ["ca"] + words + ["--days", "90"])
        #expect(made.exitCode == 0, "\(made.stderr)")
      }
      // No server shows a certificate that has not begun: the next one is renewed first.
      let switchOver = ["ca", "rotate", "--switch", "b.pem"]
      let refused = try await Self.run(directory, switchOver + ["--days", "90"])
      #expect(refused.exitCode == 1)
      let cure = ["ca", "renew", "b.next.pem", "--same-key", "--days"]
      #expect(
        refused.stderr.contains(cure.joined(separator: " ") + " DAYS"), "\(refused.stderr)")
      let renewed = try await Self.run(directory, cure + ["90"])
      #expect(renewed.exitCode == 0, "\(renewed.stderr)")
      let switched = try await Self.run(directory, switchOver)
      #expect(switched.exitCode == 0, "\(switched.stderr)")
    }
  }

  @Test(
    "makes no certificate that is valid for less than the one in place, or ends before it, unless --days says so",
    arguments: [["renew", "--same-key"], ["rotate"]])
  func shortened(command: [String]) async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      let own = try Self.authority(directory)
      let now = Int64(Date().timeIntervalSince1970)
      for days in [30, 200, 826] as [Int64] {
        let server = try own.issue(
          names: ["a.example"],
          validity: Validity(notBefore: now - 60, notAfter: now - 60 + days * 86_400))
        try directory.write(try server.keyPEM, to: "\(days).key")
        try directory.write(server.certificateChainPEM, to: "\(days).pem")
      }
      let before = try Self.text(directory, "826.pem")
      let refused = try await Self.run(directory, ["ca"] + command + ["826.pem"])
      #expect(refused.exitCode == 1)
      #expect(refused.stderr.contains(", before 826.pem, on "), "\(refused.stderr)")
      #expect(try Self.text(directory, "826.pem") == before)
      #expect(!FileManager.default.fileExists(atPath: directory.path("826.next.key")))
      for (name, words, days) in [
        ("30", [], 90), ("200", [], 200), ("826", ["--days", "100"], 100),
      ] as [(String, [String], Int64)] {
        let outcome = try await Self.run(directory, ["ca"] + command + [name + ".pem"] + words)
        #expect(outcome.exitCode == 0, "\(outcome.stderr)")
        let made = try Self.text(directory, name + (command == ["rotate"] ? ".next.pem" : ".pem"))
        let validity = try #require(try Certificate.certificates(inPEM: made).first?.validity)
        #expect((validity.notAfter - validity.notBefore) / 86_400 == days)
      }
    }
  }

  @Test(
    "writes a .p12 that openssl reads, and reads those of openssl, the old kind as well",
    arguments: [[], ["--old-p12"]])
  func pkcs12(flags: [String]) async throws {
    try await withTemporaryDirectory { directory in
      try directory.write("correct horse\n", to: "password")
      _ = try await Self.must(directory, "ca", "init")
      let issued = try await Self.run(
        directory, ["ca", "issue", "a.example", "--p12", "--password-file", "password"] + flags)
      #expect(issued.exitCode == 0, "\(issued.stderr)")
      #expect(try Self.mode(directory, "a.example.p12") == 0o600)
      let info = try await Self.openssl(
        directory, "pkcs12 -in a.example.p12 -passin file:password -nodes -info")
      #expect(info.exitCode == 0, "\(info.stderr)")
      #expect(info.stdout.components(separatedBy: "BEGIN CERTIFICATE").count == 3)
      #expect(info.stdout.contains("BEGIN PRIVATE KEY"))
      #expect(
        info.stderr.contains(flags.isEmpty ? "AES-256-CBC" : "pbeWithSHA1And3-KeyTripleDES-CBC"))
      // Back again, and from what openssl wrote.
      let made = try await Self.openssl(
        directory,
        "pkcs12 -export -in a.example.pem -inkey a.example.key -out theirs.p12 -passout file:password"
          + (flags.isEmpty ? "" : " -legacy"))
      #expect(made.exitCode == 0, "\(made.stderr)")
      for source in ["a.example.p12", "theirs.p12"] {
        let target = source + ".pem"
        _ = try await Self.must(
          directory, "ca", "convert", source, "--out", target, "--password-file", "password")
        #expect(try await Self.pin(directory, target) == Self.pin(directory, "a.example.pem"))
        #expect(
          try Self.text(directory, source + ".key") == Self.text(directory, "a.example.key"))
        #expect(try Self.mode(directory, source + ".key") == 0o600)
      }
      try directory.write([0x61, 0, 0x62], to: "password")
      let zero = try await Self.run(
        directory,
        ["ca", "convert", "a.example.p12", "--out", "w.pem", "--password-file", "password"])
      #expect(zero.exitCode == 2)
      try directory.write("wrong horse\n", to: "password")
      let wrong = try await Self.run(
        directory,
        ["ca", "convert", "a.example.p12", "--out", "w.pem", "--password-file", "password"])
      #expect(wrong.exitCode == 1)
      #expect(wrong.stderr.contains("the password is not that of the file"))
      #expect(!wrong.stderr.contains("horse"))
    }
  }

  @Test("converts certificates between PEM and DER without changing a byte")
  func convert() async throws {
    try await withTemporaryDirectory { directory in
      _ = try await Self.must(directory, "ca", "init")
      _ = try await Self.must(directory, "ca", "convert", "own-ca/ca.pem", "--out", "root.cer")
      _ = try await Self.must(directory, "ca", "convert", "root.cer", "--out", "root.pem")
      #expect(
        try Data(contentsOf: directory.file("root.cer"))
          == Data(contentsOf: directory.file("own-ca/ca.cer")))
      #expect(try Self.text(directory, "root.pem") == Self.text(directory, "own-ca/ca.pem"))
      let unknown = try await Self.run(
        directory, ["ca", "convert", "root.pem", "--out", "root.txt"])
      #expect(unknown.exitCode == 2)
      let keyless = try await Self.run(
        directory, ["ca", "convert", "root.pem", "--out", "root.p12"])
      #expect(keyless.exitCode == 2)
    }
  }
}
