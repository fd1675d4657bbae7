import CanonicalJSON
import SslPinningRules

/// Findings in the words of those who read them: people, scripts, and the servers that run checks.
public enum FindingsReport: String, Hashable, Sendable, CaseIterable {
  /// Lines for people.
  case text
  /// `[{"rule", "host", "severity", "message", "policy"}]`.
  case json
  /// JUnit's XML: a test case for each rule, failed by its warnings and errors.
  case junit
  /// SARIF 2.1.0 (OASIS), which code scanning services read.
  case sarif
  /// Annotations of GitHub Actions.
  case github

  /// The findings, the worst first, with a line break at the end.
  public func text(_ findings: [Finding]) -> String {
    // A stable order within a severity: that of the lists and their hosts.
    let ordered = Finding.Severity.allCases.reversed().flatMap { severity in
      findings.filter { $0.severity == severity }
    }
    switch self {
    case .text: return Self.lines(ordered)
    case .json:
      return Self.text(.array(ordered.map { .object(Self.members($0)) }))
    case .junit: return Self.junit(ordered)
    case .sarif: return Self.text(Self.sarif(ordered))
    case .github:
      return ordered.map { finding in
        let level = finding.severity == .info ? "notice" : finding.severity.rawValue
        return
          "::\(level) \(Self.githubPlace(finding))title=\(Self.githubProperty(finding.rule.rawValue))::"
          + Self.githubData(Self.sentence(finding)) + "\n"
      }.joined()
    }
  }

  private static func text(_ json: JSONValue) -> String {
    String(decoding: json.canonicalBytes, as: UTF8.self) + "\n"
  }

  private static func lines(_ findings: [Finding]) -> String {
    guard !findings.isEmpty else { return "nothing found\n" }
    return findings.map { finding in
      "\(finding.severity.rawValue): \(sentence(finding)) [\(finding.rule.rawValue)]\n"
    }.joined()
  }

  /// Where, and what.
  static func sentence(_ finding: Finding) -> String {
    let line = finding.site?.line.map { ":\($0)" } ?? ""
    let place = [finding.policy + line, finding.host].filter { !$0.isEmpty }.joined(separator: ": ")
    return place.isEmpty ? finding.message : "\(place): \(finding.message)"
  }

  private static func members(_ finding: Finding) -> JSONObject {
    var members = JSONObject([
      ("rule", .string(finding.rule.rawValue)), ("host", .string(finding.host)),
      ("severity", .string(finding.severity.rawValue)), ("message", .string(finding.message)),
      ("policy", .string(finding.policy)),
    ])
    if let site = finding.site {
      members["affects"] = .string(site.affects.rawValue)
      members["line"] = number(site.line)
    }
    return members
  }

  private static func number(_ line: Int?) -> JSONValue? {
    line.flatMap { JSONNumber(exactly: Int64($0)) }.map { .number($0) }
  }

  // MARK: - Formats of others

  private static func junit(_ findings: [Finding]) -> String {
    let counted = findings.filter { $0.severity > .info }
    let failed = Set(counted.map(\.rule))
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<testsuite name=\"ssl-pinning check\" tests=\"\(CheckRule.allCases.count)\" failures=\"\(failed.count)\""
        + " errors=\"0\" skipped=\"0\">",
    ]
    for rule in CheckRule.allCases {
      let own = counted.filter { $0.rule == rule }
      let start = "  <testcase classname=\"ssl-pinning\" name=\"\(rule.rawValue)\""
      guard let first = own.first else {
        lines.append("\(start)/>")
        continue
      }
      let text = own.map(sentence).joined(separator: "\n")
      lines.append("\(start)>")
      lines.append(
        "    <failure type=\"\(first.severity.rawValue)\" message=\"\(sentence(first).xmlEscaped)\">\(text.xmlEscaped)</failure>"
      )
      lines.append("  </testcase>")
    }
    return (lines + ["</testsuite>", ""]).joined(separator: "\n")
  }

  private static func sarif(_ findings: [Finding]) -> JSONValue {
    func object(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
      .object(JSONObject(members.map { ($0.key, $0.value) }))
    }
    func level(_ severity: Finding.Severity) -> JSONValue {
      .string(severity == .info ? "note" : severity.rawValue)
    }
    let rules = CheckRule.allCases.map { rule in
      object([
        "id": .string(rule.rawValue),
        "shortDescription": object(["text": .string(rule.summary)]),
        "defaultConfiguration": object(["level": level(rule.severity)]),
      ])
    }
    func place(_ finding: Finding) -> JSONValue {
      let file = object([
        "uri": .string(uri(finding.policy.isEmpty ? finding.host : finding.policy))
      ])
      guard let line = number(finding.site?.line) else {
        return object(["artifactLocation": file])
      }
      return object(["artifactLocation": file, "region": object(["startLine": line])])
    }
    let results = findings.map { finding in
      object([
        "ruleId": .string(finding.rule.rawValue), "level": level(finding.severity),
        "message": object(["text": .string(sentence(finding))]),
        // A result without a place is not shown by those who read these files.
        "locations": .array([object(["physicalLocation": place(finding)])]),
      ])
    }
    let driver = object([
      "name": .string("ssl-pinning"), "rules": .array(rules),
    ])
    return object([
      "$schema": .string("https://json.schemastore.org/sarif-2.1.0.json"),
      "version": .string("2.1.0"),
      "runs": .array([object(["tool": object(["driver": driver]), "results": .array(results)])]),
    ])
  }

  /// A relative reference (RFC 3986 section 4.2) of a file's name, or a URL as it is.
  private static func uri(_ place: String) -> String {
    let kept = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:".utf8)
    return place.utf8.map { byte in
      kept.contains(byte)
        ? String(decoding: [byte], as: UTF8.self)
        : "%" + String(byte >> 4, radix: 16, uppercase: true)
          + String(byte & 15, radix: 16, uppercase: true)
    }.joined()
  }

  /// Where an annotation belongs, in a tree of sources.
  private static func githubPlace(_ finding: Finding) -> String {
    guard let site = finding.site, !finding.policy.isEmpty else { return "" }
    let line = site.line.map { "line=\($0)," } ?? ""
    return "file=\(githubProperty(finding.policy)),\(line)"
  }

  private static func githubData(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "%": "%25"
      case "\r": "%0D"
      case "\n": "%0A"
      default: String(scalar)
      }
    }.joined()
  }

  private static func githubProperty(_ text: String) -> String {
    githubData(text).unicodeScalars.map { scalar in
      switch scalar {
      case ":": "%3A"
      case ",": "%2C"
      default: String(scalar)
      }
    }.joined()
  }
}
