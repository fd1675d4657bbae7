import SslPinningRules
import Testing

@testable import PolicyFormats

@Suite("CAs that an Android list trusts")
struct AndroidAnchorTests {
  /// A list, of which each `<name>` stands for the CAs of that source.
  static func list(_ body: String) throws -> PinPolicy {
    try PinPolicy(reading: Array(text(body).utf8))
  }

  static func text(_ body: String) -> String {
    let pins = "AB".map { "<pin digest=\"SHA-256\">\(Sample.pin($0).base64)</pin>" }
    let anchors = ["system", "user", "@raw/ca"].reduce(body) { text, source in
      text.replacing(
        "<\(source)>", with: "<trust-anchors><certificates src=\"\(source)\"/></trust-anchors>")
    }
    return "<network-security-config>"
      + anchors.replacing("<pins>", with: "<pin-set>\(pins.joined())</pin-set>")
      + "</network-security-config>"
  }

  static let domain = "<domain>a.example</domain><pins>"

  @Test(
    "the innermost trust-anchors count, those of base-config for all other hosts, else the system's",
    arguments: [
      ("<domain-config>\(domain)</domain-config>", ["system"], ["system"]),
      ("<domain-config>\(domain)<@raw/ca></domain-config>", ["@raw/ca"], ["system"]),
      (
        "<base-config><user></base-config><domain-config>\(domain)</domain-config>", ["user"],
        ["user"]
      ),
      (
        "<base-config><user></base-config><domain-config>\(domain)<system></domain-config>",
        ["system"], ["user"]
      ),
      (
        """
        <domain-config><@raw/ca><domain>b.example</domain>
        <domain-config>\(domain)</domain-config></domain-config>
        """, ["@raw/ca"], ["system"]
      ),
      ("<domain-config>\(domain)<trust-anchors/></domain-config>", [], ["system"]),
      (
        "<debug-overrides><user></debug-overrides><domain-config>\(domain)</domain-config>",
        ["system"], ["system"]
      ),
    ])
  func inherited(body: String, own: [String], others: [String]) throws {
    let policy = try Self.list(body)
    #expect(policy.remarks.isEmpty)
    #expect(policy.anchors(for: try HostName("a.example")).names == own)
    #expect(policy.anchors(for: try HostName("other.example")).names == others)
  }

  @Test(
    "certificates of no known source are an error: Android refuses the file",
    arguments: [
      ("src=\"system\"", false), ("src=\"user\"", false), ("src=\"@raw/ca\"", false),
      ("src=\"wfa\"", false), ("src=\"raw/ca\"", true), ("src=\"System\"", true), ("", true),
    ])
  func sources(attribute: String, isRefused: Bool) throws {
    let anchors = "<trust-anchors><certificates \(attribute)/></trust-anchors>"
    let policy = try Self.list("<domain-config>\(Self.domain)\(anchors)</domain-config>")
    #expect(policy.remarks.map(\.kind) == (isRefused ? [.refused] : []))
  }

  @Test(
    "other CAs than the system's alone are a loss in every format, and told by check, as an error if there is none"
  )
  func losses() throws {
    func told(_ anchors: String) throws -> [String] {
      let policy = try Self.list("<domain-config>\(Self.domain)\(anchors)</domain-config>")
      let exports = try PolicyFormat.writable.map { format in
        try #require(policy.taking(.leaf).written(as: format, at: 0)).losses
      }
      let findings = PolicyCheck(at: 0, within: 0) { _ in false }.findings([
        CheckedPolicy(name: "list", policy: policy)
      ])
      for losses in exports + [policy.payload.losses] {
        let hosts = losses.filter { $0.text.contains("clients trust") }.map(\.host)
        #expect(hosts == (findings.isEmpty ? [] : ["a.example"]))
      }
      return findings.map { "\($0.rule.rawValue) \($0.severity.rawValue) \($0.host)" }
    }
    let both =
      "<trust-anchors><certificates src=\"system\"/><certificates src=\"user\"/></trust-anchors>"
    for (anchors, severity) in [
      ("<@raw/ca>", "info"), (both, "info"), ("<user>", "warning"), ("<trust-anchors/>", "error"),
    ] {
      #expect(try told(anchors) == ["other-cas \(severity) a.example"])
    }
    for anchors in ["", "<system>"] { #expect(try told(anchors).isEmpty) }
  }

  @Test("a list may trust no CA for the hosts that it does not name")
  func others() throws {
    let list = try Self.list(
      "<base-config><trust-anchors/></base-config><domain-config>\(Self.domain)<system></domain-config>"
    )
    let found = PolicyCheck(at: 0, within: 0) { _ in false }.findings([
      CheckedPolicy(name: "list", policy: list)
    ])
    #expect(found.map { "\($0.rule.rawValue) \($0.severity.rawValue)" } == ["other-cas info"])
  }

  @Test(
    "--ca is a hint for CAs that a file can have, if it is not given",
    arguments: [("<@raw/ca>", true), ("<user>", false), ("<trust-anchors/>", false)])
  func hints(anchors: String, isFile: Bool) throws {
    let list = CheckedPolicy(
      name: "list",
      policy: try Self.list("<domain-config>\(Self.domain)\(anchors)</domain-config>"))
    for isBySystem in [true, false] {
      let found = PolicyCheck(at: 0, within: 0, hintsAtAuthorities: isBySystem) { _ in false }
        .findings([list])
      #expect(found.map { $0.message.contains("hint: --ca") } == [isFile && isBySystem])
    }
  }

  @Test("a server that the system's CAs accept is unjudged for a list that does not trust these")
  func unjudged() throws {
    let both =
      "<trust-anchors><certificates src=\"system\"/><certificates src=\"@raw/ca\"/></trust-anchors>"
    for (anchors, host, complaint, told) in [
      ("<@raw/ca>", "e.example", nil, ["other-cas warning e.example:443"]),
      ("<system>", "e.example", nil, []), (both, "e.example", nil, []),
      ("<@raw/ca>", "other.example", nil, []),
      ("<user>", "e.example", nil, ["other-cas warning e.example:443"]),
      // These are told by themselves.
      ("<trust-anchors/>", "e.example", nil, []),
      ("<@raw/ca>", "e.example", "no path", []),
    ] as [(String, String, String?, [String])] {
      let list = try Self.list(
        "<domain-config><domain>\(host)</domain><pins>\(anchors)</domain-config>")
      let found = EndpointCheck(at: CheckRuleTests.now, within: 0).unjudged(
        [try CheckRuleTests.endpoint("A", complaint: complaint)],
        under: [CheckedPolicy(name: "list", policy: list)])
      #expect(found.map { "\($0.rule.rawValue) \($0.severity.rawValue) \($0.host)" } == told)
    }
  }

  @Test("a list that an export replaces loses what it says besides pins, and its hosts are told")
  func replaced() throws {
    func lost(_ body: String) throws -> [String] {
      let policy = try Self.list("<domain-config>\(Self.domain)</domain-config>")
      let written = try #require(policy.written(as: .android, at: 0))
      #expect(written.losses.isEmpty)
      return policy.lost(byReplacing: Array(Self.text(body).utf8), with: written.text)
        .map { "\($0)" }
    }
    let same = "<domain-config cleartextTrafficPermitted=\"false\">\(Self.domain)</domain-config>"
    let what = "lost with the file that is replaced: "
    for (body, told) in [
      (same, []),
      (
        same + "<base-config/><debug-overrides/>", [what + "base-config", what + "debug-overrides"]
      ),
      ("<domain-config xmlns:tools=\"t\" tools:node=\"x\">\(Self.domain)</domain-config>", []),
      (
        "<domain-config cleartextTrafficPermitted=\"true\">\(Self.domain)<@raw/ca></domain-config>",
        [
          "a.example: \(what)cleartextTrafficPermitted", "a.example: \(what)trust-anchors",
        ]
      ),
      (
        "<domain-config><domain>gone.example</domain><pins></domain-config>",
        ["gone.example: was pinned in the file, and is not pinned there any more"]
      ),
      (
        "<domain-config><domain>a.example</domain></domain-config>",
        ["a.example: was not refused in the file, and will be"]
      ),
    ] as [(String, [String])] {
      #expect(try lost(body) == told)
    }
    let policy = try Self.list(same)
    #expect(policy.lost(byReplacing: Array("no list".utf8), with: "").isEmpty)
  }
}
