import Foundation

/// A file of a tree that may have to do with pins.
public struct SourceFile: Sendable {
  /// What is looked for in it.
  public enum Kind: Hashable, Sendable {
    case swift, objectiveC, kotlin, java, plist, xml, json, certificate
    /// Scripts, build files and code of other languages: options of curl, and literal pins.
    case text
  }

  /// As messages name it.
  public let path: String
  /// What it holds.
  public let bytes: [UInt8]
  /// What is looked for in it.
  public let kind: Kind

  /// A file; `nil` if nothing could be found in one of this name.
  public init?(path: String, bytes: [UInt8]) {
    guard let kind = Self.kind(ofFileAt: path) else { return nil }
    (self.path, self.bytes, self.kind) = (path, bytes, kind)
  }

  /// What could be found in a file of this name; `nil` for nothing.
  public static func kind(ofFileAt path: String) -> Kind? {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    guard let dot = name.lastIndex(of: ".") else { return texts.contains(name) ? .text : nil }
    let ending = name[name.index(after: dot)...].lowercased()
    return switch ending {
    case "swift": .swift
    case "m", "mm", "h": .objectiveC
    case "kt", "kts": .kotlin
    case "java": .java
    case "plist": .plist
    case "xml": .xml
    case "json": .json
    case "cer", "der", "crt", "pem": .certificate
    default: texts.contains(ending) ? .text : nil
    }
  }

  /// Endings, and names without one.
  private static let texts: Set<String> = [
    "sh", "bash", "zsh", "fish", "mk", "yml", "yaml", "toml", "gradle", "properties", "xcconfig",
    "env", "cfg", "conf", "ini", "curlrc", "py", "rb", "php", "js", "jsx", "mjs", "ts", "tsx",
    "dart", "cs", "go", "rs", "c", "cc", "cpp", "hpp", "Makefile", "Dockerfile", "Jenkinsfile",
    "Fastfile", "_curlrc",
  ]

  /// Whether anything in it is worth a second look: most files of a tree have none of these words.
  public var mayPin: Bool {
    kind == .certificate || Self.words.contains { Self.holds(bytes, $0) }
  }

  /// `setAllowInvalidCertificates` has a capital: such words stand without their first letter.
  private static let words = [
    "sha256/", "CertificatePinner", "TSKConfiguration", "PinnedDomains", "network-security-config",
    "networkSecurityConfig", "TrustEvaluator", "ServerTrustEvaluating", "ServerTrustManager",
    "serverTrustManager", "ServerTrustPolicy", "AFSecurityPolicy", "AFSSLPinningMode",
    "llowInvalidCertificates", "alidatesDomainName", "FixedPins", "SslPinningConfig",
    "domainName", "<application",
  ].map { Array($0.utf8) }

  /// `memchr` and `memcmp`: a tree has many megabytes, and most of them are passed over here.
  static func holds(_ bytes: [UInt8], _ word: [UInt8]) -> Bool {
    guard let first = word.first, bytes.count >= word.count else { return false }
    return bytes.withUnsafeBytes { all in
      guard let start = all.baseAddress else { return false }
      var rest = start
      var left = all.count - word.count + 1
      while left > 0, let found = memchr(rest, Int32(first), left) {
        if memcmp(found, word, word.count) == 0 { return true }
        left -= UnsafeRawPointer(found) - rest + 1
        rest = UnsafeRawPointer(found) + 1
      }
      return false
    }
  }

  /// Its text.
  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The line on which a host name stands by itself, not as a part of a longer one.
  func line(ofHost host: String) -> Int? {
    var rest = host[...]
    while rest.hasPrefix("*") || rest.hasPrefix(".") { rest = rest.dropFirst() }
    return line { text in
      var from = text.startIndex
      while let range = text.range(of: rest, options: .caseInsensitive, range: from..<text.endIndex)
      {
        let before = text[..<range.lowerBound].suffix(2)
        let isWhole =
          !(before.last.map(Self.isOfHosts) ?? false) || before == "*." || before == "**"
        if isWhole, !(text[range.upperBound...].first.map(Self.isOfHosts) ?? false) { return true }
        from = range.upperBound
      }
      return false
    }
  }

  /// The first line with this text.
  func line(of word: String) -> Int? { line { $0.contains(word) } }

  private func line(where isWanted: (String) -> Bool) -> Int? {
    // A binary property list has no lines.
    guard !bytes.starts(with: "bplist".utf8) else { return nil }
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    return lines.firstIndex { isWanted(String(decoding: $0, as: UTF8.self)) }.map { $0 + 1 }
  }

  private static func isOfHosts(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "-" || character == "."
  }

  /// Who runs what it is a part of.
  var affects: AffectedUsers {
    switch kind {
    case .swift, .objectiveC, .plist: return .apple
    case .kotlin, .java, .xml: return .android
    case .json, .certificate:
      let parts = path.split(separator: "/").dropLast().map { $0.lowercased() }
      if parts.contains(where: ["android", "androidmain", "res", "assets"].contains) {
        return .android
      }
      return parts.contains { ["ios", "iosmain"].contains($0) || $0.hasSuffix(".xcassets") }
        ? .apple : .everybody
    case .text:
      let ending = path.split(separator: ".").last.map { $0.lowercased() } ?? ""
      if ["gradle", "properties"].contains(ending) { return .android }
      if ending == "xcconfig" { return .apple }
      return ["js", "jsx", "mjs", "ts", "tsx", "dart", "cs"].contains(ending)
        ? .everybody : .developers
    }
  }
}
