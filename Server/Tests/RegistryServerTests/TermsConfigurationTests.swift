import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("Terms and kinds of keys in a configuration") struct TermsConfigurationTests {
  private static let (one, two) = (pin(1).base64, pin(2).base64)

  @Test("are read from pins and from files, and shown as they were written")
  func read() throws {
    let directory = try TemporaryDirectory()
    let root = try CertificateAuthority.makeRoot(name: "Root").root
    try directory.write(root.pem, to: "root.pem")
    let path = directory.path("root.pem")
    let read = try configuration(
      "keys: [{fqdn: a.b, ca: ['\(Self.one)', '\(path)'], match: any, enforce: on}]")
    let terms = try #require(read.documents.first?.endpoints.first?.terms)
    #expect(terms.ca.entries == [Self.one, path])
    #expect(terms.ca.pins.count == 2 && terms.ca.pins.contains(pin(1)))
    #expect((terms.match, terms.enforcement) == (.any, .on))
    let plain = try configuration("keys: [{fqdn: a.b}]").documents.first?.endpoints.first?.terms
    #expect(plain == .standard)
  }

  @Test(
    "are refused with the line where they cannot be told, or contradict each other",
    arguments: [
      ("keys: [{fqdn: a.b, match: any}]", "keys[0].ca is missing"),
      ("keys: [{fqdn: a.b, match: both}]", "no such match: \"both\"; hint: all, any"),
      ("keys: [{fqdn: a.b, enforce: true}]", "keys[0].enforce is a boolean"),
      ("keys: [{fqdn: a.b, enforce: off}]", "no such enforcement: \"off\"; hint: app, on"),
      ("keys: [{fqdn: a.b, ca: [nowhere.pem]}]", "\"nowhere.pem\" is neither a pin nor a file"),
      (
        "keys: [{fqdn: a.b, enforce: on}]\npublish: {statements: false}",
        "line 2: publish.statements: a.b:443 has ca, match or enforce"
      ),
      (
        "keys: [{fqdn: a.b, file: x, ca: ['\(one)']}, {fqdn: c.d, domainName: '*.b', file: x}]",
        "in x, a.b:443 and c.d:443 speak of the same host"
      ),
      (
        "keys: [{fqdn: a.b, domainName: x.b, ca: ['\(one)']}, {fqdn: a.b, domainName: y.b}]",
        "keys[1].fqdn: a.b:443 has another ca, match or enforce above"
      ),
      ("keys: [{fqdn: a.b}]\ntls: {key_types: [dsa]}", "no such kind of key: \"dsa\""),
    ])
  func refused(_ yaml: String, _ part: String) {
    #expect {
      try configuration(yaml)
    } throws: { error in
      "\(error)".contains(part)
    }
  }

  @Test("name CAs for every endpoint or for one, as pins and as files")
  func issuers() throws {
    let directory = try TemporaryDirectory()
    let root = try CertificateAuthority.makeRoot(name: "Root").root
    try directory.write(root.pem, to: "root.pem")
    let (path, named) = (directory.path("root.pem"), try SPKIPin(certificateDER: root.der))
    let read = try configuration(
      "keys: [{fqdn: a.b, issuers: ['\(path)']}, {fqdn: c.d}]\n"
        + "tls: {issuers: ['\(Self.one)', '\(path)']}")
    #expect(read.tls.issuers.entries == [Self.one, path])
    #expect(read.tls.issuers.pins == [pin(1), named])
    for endpoint in read.documents.flatMap(\.endpoints) {
      let pins: Set<SPKIPin> = endpoint.id == "a.b:443" ? [named] : []
      #expect(endpoint.issuers.pins == pins, "\(endpoint.id)")
    }
  }

  @Test(
    "name the CAs under which a new key waits for nobody",
    arguments: [
      ("keys: [{fqdn: a.test}]", false),
      ("keys: [{fqdn: a.test, issuers: ['\(pin(101).base64)']}]", true),
      ("keys: [{fqdn: a.test}]\ntls: {issuers: ['\(pin(101).base64)']}", true),
    ])
  func named(_ yaml: String, _ isNamed: Bool) throws {
    let read = try configuration(yaml)
    let settings = CoordinatorSettings(try #require(read.documents.first), tls: read.tls)
      .machine([])
    let watched = try #require(settings.endpoints.first)
    let new: LedgerBench.View = [(LedgerBench.here, "", .key(2, under: 101))]
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "", .key(1, under: 100))])
    bench.context = EndpointsInForce(settings.endpoints).context(
      of: watched, LedgerBench.probe(new), in: DocumentState(), settings, isMassChange: false)
    bench.see(new, 3)
    let keys: Set<UInt8> = isNamed ? [1, 2] : [1]
    let reasons: [CandidateKey.HoldReason] = isNamed ? [] : [.newIssuer]
    #expect(bench.keys == keys)
    #expect((bench.endpointKeys.held[pin(2)]?.reasons ?? []) == reasons)
  }

  @Test("may differ between files, and where no host is both's")
  func apart() throws {
    let ca = "ca: ['\(Self.one)', '\(Self.two)'], match: any"
    _ = try configuration("keys: [{fqdn: a.b, \(ca)}, {fqdn: c.d, domainName: a.b}]")
    _ = try configuration("keys: [{fqdn: a.b, file: x, \(ca)}, {fqdn: c.d, file: x}]")
  }

  @Test("of keys: both by default, none if the list is empty, each once")
  func keyTypes() throws {
    func read(_ list: String) throws -> [CertificateKeyKind] {
      try configuration("keys: [{fqdn: a.b}]\ntls: {key_types: \(list)}").tls.keyTypes
    }
    #expect(try configuration("keys: [{fqdn: a.b}]").tls.keyTypes == [.ecdsa, .rsa])
    #expect(try read("[]") == [])
    #expect(try read("[rsa, RSA, eddsa]") == [.rsa, .eddsa])
  }
}
