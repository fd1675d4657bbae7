import Foundation
import SslPinningRules

/// Finds pins that stand in plain text: options of curl in scripts and code, and literal pins that no finder knows.
enum TextSites {
  /// `--pinnedpubkey` and its like; each line is a list of one host.
  static func curl(in file: SourceFile) -> [PinSite] {
    guard file.kind != .certificate, SourceFile.holds(file.bytes, Array("sha256//".utf8)) else {
      return []
    }
    return lines(of: file).compactMap { number, line in
      guard line.lowercased().contains("pinnedpub") else { return nil }
      let texts = pins(in: line, behind: "sha256//")
      guard !texts.isEmpty else { return nil }
      let good = texts.compactMap { try? SPKIPin(base64: $0) }
      let bad = texts.count - good.count
      let unclear =
        bad > 0
        ? [PolicyRemark(.unclear, "", "a pin never matches: it is no base64 of 32 bytes")] : []
      guard let host = host(in: line) else {
        let notes = Set(good).count == 1 ? [Finding.oneWay] : []
        return PinSite(
          file, line: number, .curl, pins: good,
          notes: notes + unclear.map { Finding(.unreadable, $0.text) })
      }
      let repeated =
        Set(good).count < good.count
        ? [PolicyRemark(.duplicate, "\(host)", "has the same pin twice")] : []
      let entry = PolicyEntry(
        .exact(host), leaf: PinSet(good.map { Pin($0) }), required: [.leaf])
      return PinSite(
        file, line: number, .curl,
        PinPolicy(
          format: .curl, rules: [HostRule(entry)], overlap: .united, remarks: unclear + repeated))
    }
  }

  /// Pins in texts of code, with their lines. Whether somebody knows their host is for the whole tree to say.
  static func literals(in file: SourceFile, _ code: CodeSites?) -> [(line: Int, pin: SPKIPin)] {
    if let code {
      return code.tokens.compactMap { token in
        guard token.kind == .text, token.text.hasPrefix("sha256/"),
          let pin = try? SPKIPin(parsing: token.text)
        else { return nil }
        return (token.line, pin)
      }
    }
    guard [.text, .json, .xml].contains(file.kind) else { return [] }
    return lines(of: file).flatMap { number, line -> [(Int, SPKIPin)] in
      guard !line.lowercased().contains("pinnedpub") else { return [] }
      return pins(in: line, behind: "sha256/").compactMap { text in
        (try? SPKIPin(base64: text)).map { (number, $0) }
      }
    }
  }

  /// What stands behind each of these prefixes, as far as it could be base64.
  private static func pins(in line: String, behind prefix: String) -> [String] {
    line.components(separatedBy: prefix).dropFirst().map { rest in
      String(rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+/=".contains($0)) })
    }
  }

  private static func host(in line: String) -> HostName? {
    guard let range = line.range(of: "https://") else { return nil }
    let text = line[range.upperBound...].prefix {
      $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0))
    }
    return try? HostName(String(text))
  }

  /// Lines without comments; one that a backslash ends goes on.
  private static func lines(of file: SourceFile) -> [(number: Int, text: String)] {
    var found: [(Int, String)] = []
    var isOpen = false
    for (index, raw) in file.text.split(separator: "\n", omittingEmptySubsequences: false)
      .enumerated()
    {
      let line = raw.trimmingCharacters(in: .whitespaces)
      guard isOpen || !(line.hasPrefix("#") || line.hasPrefix("//")) else { continue }
      let goesOn = line.hasSuffix("\\")
      let text = goesOn ? String(line.dropLast()) : line
      if isOpen, let last = found.indices.last {
        found[last].1 += " " + text
      } else {
        found.append((index + 1, text))
      }
      isOpen = goesOn
    }
    return found
  }
}

extension Finding {
  /// One pin, where no list says so.
  static let oneWay = Finding(
    .noBackup,
    "one pin is the only way in; hint: list the next key before it is used, and keep it elsewhere")
}
