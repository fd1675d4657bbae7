import SslPinningRules
import Testing

@testable import PolicyFormats

@Suite("what Android reads of a list")
struct AndroidReadingTests {
  /// What is told of a list, in which words in capitals stand for elements that are as they should be.
  ///
  /// - Parameter debug: what stands behind it.
  static func remarks(
    _ body: String, debug: String = "<debug-overrides/>"
  ) throws -> [PolicyRemark] {
    let pin = "<pin digest=\"SHA-256\">\(Sample.pin("A").base64)</pin>"
    let anchors = "<trust-anchors><certificates src=\"system\"/></trust-anchors>"
    let text = body.replacing("SET", with: "<pin-set>PIN</pin-set>")
      .replacing("DOMAIN", with: "<domain tools:ignore=\"x\">a.example</domain>")
      .replacing("PIN", with: pin).replacing("ANCHORS", with: anchors)
    return try PinPolicy(
      reading: Array(
        "<network-security-config xmlns:tools=\"t\">\(text)\(debug)</network-security-config>"
          .utf8)
    ).remarks
  }

  @Test(
    "what looks like a part of a list and is read by nothing is told",
    arguments: [
      (
        "<domain-config>DOMAIN<pinset>PIN</pinset></domain-config>", "pinset",
        "pin-set belongs into"
      ),
      (
        "<domain_config>DOMAIN SET</domain_config>", "domain_config",
        "belongs into domain-config or"
      ),
      ("<base-config>SET</base-config>", "pin-set", "is not read in base-config"),
      ("SET", "pin-set", "is not read in network-security-config"),
      (
        "<domain-config><pin-set>PIN</pin-set>DOMAIN SET</domain-config>", "",
        "more than one pin-set"
      ),
      (
        "<domain-config><domain includeSubDomains=\"true\">a.example</domain>SET</domain-config>",
        "a.example", "hint: includeSubdomains"
      ),
      (
        "<domain-config><domain includesSubdomains=\"true\">a.example</domain>SET</domain-config>",
        "a.example", "includesSubdomains of domain is not read"
      ),
      (
        "<domain-config includeSubdomains=\"true\">DOMAIN SET</domain-config>", "",
        "includeSubdomains of domain-config is not read"
      ),
      ("<domain-config>SET</domain-config>", "", "has no domain"),
      ("<domain-config>SET<domain-config>DOMAIN</domain-config></domain-config>", "", "no domain"),
      (
        "<domain-config>ANCHORS ANCHORS DOMAIN SET</domain-config>", "",
        "more than one trust-anchors"
      ),
      ("<base-config/><base-config/>", "", "more than one base-config"),
    ])
  func unread(body: String, host: String, told: String) throws {
    #expect(try Self.remarks(body).contains { $0.host == host && $0.text.contains(told) })
    let good = "<domain-config><certificateTransparency/>DOMAIN SET ANCHORS</domain-config>"
    #expect(try Self.remarks(good).isEmpty)
  }

  @Test(
    "what counts in debug builds alone has no other build refuse the file",
    arguments: [
      ("<trust-anchors><certificates src=\"raw/ca\"/></trust-anchors>", [nil, .refused]),
      ("ANCHORS ANCHORS", [nil, .refused]),
      ("SET", [.unpinned, .unpinned]),
    ] as [(String, [PolicyRemark.Kind?])])
  func debugBuilds(body: String, told: [PolicyRemark.Kind?]) throws {
    for (element, kind) in zip(["debug-overrides", "base-config"], told) {
      let text = "<domain-config>DOMAIN SET</domain-config><\(element)>\(body)</\(element)>"
      #expect(try Self.remarks(text, debug: "").map(\.kind) == [kind].compactMap(\.self))
    }
    #expect(
      try Self.remarks("<debug-overrides/>").map(\.kind) == [.refused], "every build counts them")
  }

  @Test(
    "an attribute that seems to pin subdomains is told, if there are pins and the right one does not say it",
    arguments: [
      ("includeSubDomains=\"true\"", true), ("includesSubdomains=\"yes\"", true),
      ("includesSubdomains=\"false\"", false),
      ("includeSubdomains=\"false\" subdomains=\"true\"", true),
      ("includeSubdomains=\"true\" subdomains=\"true\"", false),
      ("includeSubdomains=\"false\"", false),
      ("includeSubdomains=\"true\" cleartextTrafficPermitted=\"false\"", false),
      ("cleartextTrafficPermitted=\"false\"", false),
    ])
  func attributes(of domain: String, isTold: Bool) throws {
    let element = "<domain \(domain)>a.example</domain>"
    let inner = "<domain-config>\(element)</domain-config>"
    for body in [
      "<domain-config>\(element)SET</domain-config>",
      "<domain-config>DOMAIN SET\(inner)</domain-config>",
    ] {
      let remarks = try Self.remarks(body).filter { $0.text.contains("pins no subdomains") }
      #expect(remarks.map(\.kind) == (isTold ? [.unpinned] : []), "\(body)")
    }
    // Without pins there is nothing to pin them with.
    for body in [inner, "<domain-config>\(element)<pin-set/></domain-config>"] {
      #expect(try !Self.remarks(body).contains { $0.text.contains("pins no subdomains") })
    }
  }

  @Test(
    "includeSubdomains of the entry is told, unless each of its names says it",
    arguments: [("", true), ("includeSubdomains=\"true\"", false)])
  func ofTheEntry(domain: String, isTold: Bool) throws {
    let remarks = try Self.remarks(
      """
      <domain-config includeSubdomains="true"><domain includeSubdomains="true">b.example</domain>
      <domain \(domain)>a.example</domain>SET</domain-config>
      """)
    #expect(remarks.map(\.kind) == (isTold ? [.unpinned] : []))
  }
}
