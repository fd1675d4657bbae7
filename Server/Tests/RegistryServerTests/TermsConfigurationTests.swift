import RegistryCore
import RegistryServer
import TLSTools
import TestSupport
import Testing

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
