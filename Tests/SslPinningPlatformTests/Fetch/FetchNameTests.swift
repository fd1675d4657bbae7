import FaultLab
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("The name of a registry's own server")
struct FetchNameTests {
  @Test("is in its subjectAltName: a common name is none", arguments: [true, false])
  func commonName(hasOther: Bool) async throws {
    let tool = try OpenSSLCommand()
    let names = hasOther ? ["-addext", "subjectAltName=DNS:localhost"] : []
    let pem = try await tool.make(
      "server.pem",
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=localhost",
        "-keyout", "key.pem",
      ] + names)
    let certificates = try Certificate.certificates(inPEM: String(decoding: pem, as: UTF8.self))
    let key = try PrivateKey(pem: String(decoding: try tool.read("key.pem"), as: UTF8.self))
    let server = try LocalTLSServer(
      identity: try ServerIdentity(certificates: certificates, key: key)
    ) { _ in .text("hello") }
    let fetcher = try DocumentFetcher(trust: .anchors(certificates.map(\.der)))
    let request = DocumentRequest(
      url: try RegistryURL("https://localhost:\(server.port)/"), maximumBytes: 100, timeout: 60)
    if hasOther {
      #expect(try await fetcher.fetch(request) == .fresh(Array("hello".utf8), etag: nil))
    } else {
      await #expect(throws: FetchError.self) { try await fetcher.fetch(request) }
      #expect(server.requests.isEmpty)
    }
  }
}

@Suite("The protocol of a fetch")
struct FetchProtocolTests {
  @Test("is HTTP/1.1, also where the server knows HTTP/2")
  func version() async throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let nginx = try await Nginx.start(
      Nginx.Site(
        try root.issue(names: ["localhost"]), name: "localhost", http2: true,
        directives: "location / { return 200 hello; }"))
    let fetcher = try DocumentFetcher(trust: .anchors([root.root.der]))
    let request = DocumentRequest(
      url: try RegistryURL("https://localhost:\(nginx.port)/"), maximumBytes: 100, timeout: 60)
    #expect(try await fetcher.fetch(request) == .fresh(Array("hello".utf8), etag: nil))
    #expect(try await nginx.accesses(waitingFor: 1).map(\.version) == ["HTTP/1.1"])
    try await nginx.stop()
  }
}
