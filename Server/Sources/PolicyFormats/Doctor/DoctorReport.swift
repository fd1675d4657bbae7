import SslPinningRules

/// A diagnosis for people: what pins where, and what is wrong, by those whom it hits.
public enum DoctorReport {
  /// The text, with a line break at the end.
  ///
  /// - Parameter findings: those of the diagnosis, and what else was found.
  public static func text(_ diagnosis: Diagnosis, _ findings: [Finding]) -> String {
    let rows = diagnosis.sites.map(row)
    let widths = (0..<3).map { column in rows.map { $0[column].count }.max() ?? 0 }
    let places = rows.map { row in
      zip(row, widths + [0]).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
        .joined(separator: "  ").trimmedAtEnd
    }
    let count = places.count
    let head = count == 1 ? "1 place" : "\(count == 0 ? "no" : "\(count)") places"
    var parts = [
      (["\(head) with pins, or with what turns them off"] + places.map { "  \($0)" }).joined(
        separator: "\n")
    ]
    for users in AffectedUsers.allCases {
      let own = findings.filter { ($0.site?.affects ?? .everybody) == users }
      guard !own.isEmpty else { continue }
      parts.append("\(title(users))\n" + lines(own).joined(separator: "\n"))
    }
    if findings.isEmpty { parts.append("nothing found") }
    return parts.joined(separator: "\n\n") + "\n"
  }

  private static func lines(_ findings: [Finding]) -> [String] {
    Finding.Severity.allCases.reversed().flatMap { severity in
      findings.filter { $0.severity == severity }.map {
        "  \(severity.rawValue): \(FindingsReport.sentence($0)) [\($0.rule.rawValue)]"
      }
    }
  }

  private static func title(_ users: AffectedUsers) -> String {
    switch users {
    case .everybody: "everybody who has installed the app"
    case .apple: "whoever has it on iOS"
    case .android: "whoever has it on Android"
    case .developers: "developers and their scripts"
    }
  }

  private static func row(_ site: PinSite) -> [String] {
    let place = site.line.map { "\(site.file):\($0)" } ?? site.file
    let pins = site.pins.count > 1 ? "\(site.pins.count) pins" : site.pins.first?.base64 ?? ""
    let shown = site.hosts.prefix(3).joined(separator: ", ")
    let more = site.hosts.count > 3 ? " and \(site.hosts.count - 3) more" : ""
    return [place, site.mechanism.rawValue, shown.isEmpty ? "-" : shown + more, pins]
  }
}

extension String {
  fileprivate var trimmedAtEnd: String {
    var text = self[...]
    while text.last == " " { text = text.dropLast() }
    return String(text)
  }
}
