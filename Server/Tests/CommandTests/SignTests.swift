import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("canonicalize, sign and verify together")
struct SignTests {
  static let payload =
    #"{"keys":[{"key":"AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4=","domainName":"a.example"}]}"#

  @Test("signs what verify accepts, and what another program finds signed")
  func roundTrip() async throws {
    try await withTemporaryDirectory { directory in
      let keys = directory.path("keys")
      let made = try await Tool.run("keys", "generate", "--out", keys, "--algorithm", "rsa-2048")
      let line = made.stdout.trimmingCharacters(in: .whitespacesAndNewlines)
      let file = try directory.write(Self.payload, to: "payload.json").path(percentEncoded: false)
      let signed = try await Tool.run("sign", "--key", keys + "/prv.pem", file)
      #expect(signed.exitCode == 0)
      #expect(signed.stderr.isEmpty)
      let document = try directory.write(signed.stdout, to: "signed.json")
        .path(percentEncoded: false)
      for key in [keys + "/pub.pem", line] {
        let verified = try await Tool.run("verify", "--key", key, document)
        #expect(verified.exitCode == 0)
        #expect(verified.stdout.contains("a.example"))
      }

      let canonical = try await Tool.run("canonicalize", file)
      let signature = try #require(try signed.json.objectValue?["signature"]?.stringValue)
      try directory.write(canonical.stdout, to: "payload.jcs")
      try directory.write(try #require(StrictBase64.decode(signature)), to: "signature")
      let openssl = try await ChildProcess.run(
        "openssl",
        [
          "dgst", "-sha512", "-verify", keys + "/pub.pem", "-signature", "signature", "payload.jcs",
        ], directory: directory.url)
      #expect(openssl.stdout == "Verified OK\n")
    }
  }

  @Test("signs a document's payload anew, and drops what was said about the old one")
  func documents() async throws {
    let stage = try SignStage()
    let first = try await stage.sign(Self.payload)
    let document = first.stdout.replacingOccurrences(
      of: #"{"payload""#, with: #"{"statement":{"version":7},"payload""#)
    #expect(document != first.stdout)
    let signed = try await stage.sign(document)
    #expect(signed.exitCode == 0)
    #expect(try signed.json.objectValue?.keys.sorted() == ["payload", "signature"])
    #expect(first.stdout == signed.stdout)
  }

  @Test("keeps members that nobody here knows, because they are signed too")
  func unknownMembers() async throws {
    let stage = try SignStage()
    let payload =
      #"{"zzz":1e3,"keys":[{"x":[],"key":"AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4=","domainName":"a"}]}"#
    let signed = try await stage.sign(payload)
    #expect(
      try signed.json.objectValue?["payload"]?.canonicalBytes == canonicalize(Array(payload.utf8)))
  }

  @Test(
    "signs, and warns of what clients cannot use",
    arguments: [
      (
        #"{"keys":[{"domainName":"a b"},{"domainName":"a","key":"AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4="}]}"#,
        "\"a b\""
      ),
      (
        #"{"keys":[{"domainName":"b","key":"AG17"},{"domainName":"a","key":"AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4="}]}"#,
        "entry 0: the pin of b"
      ),
    ])
  func warnings(payload: String, says: String) async throws {
    let signed = try await SignStage().sign(payload)
    #expect(signed.exitCode == 0)
    #expect(signed.stderr.hasPrefix("warning: ") && signed.stderr.contains(says))
    #expect(try signed.json.objectValue?.count == 2)
  }

  @Test(
    "writes nothing that every client refuses",
    arguments: [
      (#"{"keys":[]}"#, "no usable key"), ("{}", "payload.keys"),
      (#"{"keys":[{"domainName":"a b"}]}"#, "no usable key"),
    ])
  func useless(payload: String, says: String) async throws {
    let signed = try await SignStage().sign(payload)
    #expect(signed.exitCode == 1 && signed.stdout.isEmpty)
    #expect(signed.stderr.contains("clients would refuse the document: "), "\(signed.stderr)")
    #expect(signed.stderr.contains(says) && signed.stderr.contains("hint: "))
  }

  @Test(
    "refuses what is no payload",
    arguments: [
      "", "[]", "1", "{\"keys\":[]", #"{"keys":[],"keys":[]}"#, #"{"payload":[]}"#,
      #"{"payload":{},"keys":[]}"#, "\u{feff}{}", #"{"keys":[1e999]}"#,
    ])
  func refusesPayload(payload: String) async throws {
    let signed = try await SignStage().sign(payload)
    #expect(signed.exitCode == 1)
    #expect(signed.stdout.isEmpty)
    #expect(signed.speaksProperly)
  }

  enum KeyKind: String, CaseIterable {
    case small, ellipticCurve, publicKey, encrypted, certificate, truncated

    func make(in directory: TemporaryDirectory) async throws -> String {
      let path = directory.path("key.pem")
      let good = try PrivateKey.generate(.rsa(bits: 2048))
      func openssl(_ arguments: [String]) async throws {
        #expect(try await ChildProcess.run("openssl", arguments).exitCode == 0)
      }
      switch self {
      case .small:
        try await openssl([
          "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:768", "-out", path,
        ])
      case .ellipticCurve: try PrivateKey.generate(.p256).write(to: directory.file("key.pem"))
      case .publicKey: try directory.write(try good.publicKeyPEM, to: "key.pem")
      case .encrypted:
        try good.write(to: directory.file("plain.pem"))
        try await openssl(
          [
            "pkcs8", "-topk8", "-in", directory.path("plain.pem"), "-out", path, "-passout",
            "pass:x",
          ])
      case .certificate:
        try directory.write(ServerIdentity.selfSigned(names: ["a.example"]).leaf.pem, to: "key.pem")
      case .truncated: try directory.write(String(try good.pem.prefix(600)), to: "key.pem")
      }
      return path
    }
  }

  @Test("refuses keys that registries are not signed with", arguments: KeyKind.allCases)
  func refusesKey(kind: KeyKind) async throws {
    try await withTemporaryDirectory { directory in
      let key = try await kind.make(in: directory)
      let signed = try await Tool.run(["sign", "--key", key, "-"], input: Array(Self.payload.utf8))
      #expect(signed.exitCode == 1)
      #expect(signed.stdout.isEmpty)
      #expect(signed.speaksProperly, "\(signed.stderr)")
    }
  }

  @Test(
    "canonicalizes as published", arguments: try Vectors.files(in: "jcs/testdata/input"))
  func canonicalForm(name: String) async throws {
    let path = Vectors.root.appending(path: "jcs/testdata/input/\(name)").path(
      percentEncoded: false)
    let outcome = try await Tool.run("canonicalize", path)
    #expect(outcome.exitCode == 0)
    #expect(try Array(outcome.stdout.utf8) == Vectors.bytes("jcs/testdata/output/\(name)"))
    let piped = try await Tool.run(
      ["canonicalize"], input: Vectors.bytes("jcs/testdata/input/\(name)"))
    #expect(piped.stdout == outcome.stdout)
  }
}

/// A private key in a file.
private struct SignStage {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try Keys.signing.get().write(to: directory.file("prv.pem"))
  }

  func sign(_ payload: String) async throws -> ChildProcess.Outcome {
    try await Tool.run(
      ["sign", "--key", directory.path("prv.pem"), "-"], input: Array(payload.utf8))
  }
}
