import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Keys that are announced")
struct AnnouncedKeyTests {
  private static func pin(_ member: String, _ text: String) throws(APIError) -> SPKIPin {
    let body = JSONValue.object([member: .string(text)]).canonicalBytes
    return try StagedKey(try BodyReader(body, known: StagedKey.members)).pin
  }

  @Test("pin, public key, request and certificate of one key are one pin")
  func oneKey() async throws {
    let openssl = try OpenSSLCommand()
    let request = try await openssl.make(
      "request.pem",
      ["req", "-new", "-nodes", "-newkey", "rsa:2048", "-keyout", "key.pem", "-subj", "/CN=a"])
    let key = try await openssl.make("key.pub", ["pkey", "-in", "key.pem", "-pubout"])
    let rsa = try await openssl.make(
      "rsa.pub", ["rsa", "-in", "key.pem", "-RSAPublicKey_out"])
    let certificate = try await openssl.make(
      "certificate.pem", ["x509", "-req", "-in", "request.pem", "-signkey", "key.pem"])
    let expected = try SPKIPin(
      subjectPublicKeyInfoDER: try await openssl.make(
        "key.der", ["pkey", "-in", "key.pem", "-pubout", "-outform", "DER"]))
    let texts = [
      ("pin", [UInt8](expected.base64.utf8)), ("key", key), ("key", rsa), ("csr", request),
      ("certificate", certificate),
    ]
    for (member, bytes) in texts {
      #expect(try Self.pin(member, String(decoding: bytes, as: UTF8.self)) == expected, "\(member)")
    }
    let privateKey = String(decoding: try openssl.read("key.pem"), as: UTF8.self)
    for member in ["key", "csr", "certificate"] {
      let refusal = #expect(throws: APIError.self) {
        try Self.pin(member, privateKey)
      }
      #expect(refusal?.message == "\(member) holds a private key, which is a secret no more")
    }
    let wrong = [("key", request), ("csr", certificate), ("certificate", key), ("csr", key)]
    for (member, bytes) in wrong {
      let refusal = #expect(throws: APIError.self) {
        try Self.pin(member, String(decoding: bytes, as: UTF8.self))
      }
      #expect(refusal?.message.hasPrefix("\(member) holds a ") == true)
    }
    let chain = String(decoding: certificate + certificate, as: UTF8.self)
    let refusal = #expect(throws: APIError.self) {
      try Self.pin("certificate", chain)
    }
    #expect(refusal?.message == "certificate holds 2 blocks")
  }

  @Test("that nobody has seen are told of when an edit gives their endpoint another host")
  func forMoreHosts() async throws {
    let (www, more) = ("www.example.com", "pay.example.net")
    func keys(_ names: String...) -> String {
      let entries = names.map { "{fqdn: \(www), domainName: \($0), file: \(www).json}" }
      return "[\(entries.joined(separator: ", "))]"
    }
    let service = try await AdministeredService.running(keys: keys(www))
    func told() -> [String] {
      service.scripted.log.events("announced_for_more").compactMap { $0["message"]?.stringValue }
    }
    try await service.scripted.reload(keys: keys(www, more))
    try await service.scripted.reload(keys: keys(www))
    #expect(told().isEmpty)
    let key = RegistryServerTests.pin(5).base64
    let staged = try await service.call(
      "POST", "\(AdministeredService.endpoint)/stage", #"{"pin":"\#(key)"}"#)
    #expect(staged.status == 200, "\(staged.json)")
    for _ in 0..<2 { try await service.scripted.reload(keys: keys(www, more)) }
    #expect(told().count == 1 && told().first?.contains("too: \(more); hint") == true, "\(told())")
    await service.stop()
  }

  @Test("an encrypted private key, and one whose PEM is broken, are known as private keys too")
  func otherPrivateKeys() {
    for text in [
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
      "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
    ] {
      let refusal = #expect(throws: APIError.self) { try Self.pin("key", text) }
      #expect(refusal?.message.contains("private key") == true)
    }
  }
}
