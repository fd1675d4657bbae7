/// The SHA-256 of a certificate's SubjectPublicKeyInfo (RFC 7469 §2.4), by which a pinned server is
/// recognised.
///
/// - The hash is over the certificate's own SubjectPublicKeyInfo bytes, never over a key that was parsed
///   and encoded again: that changes the pin of odd but valid keys.
/// - A pin is 32 bytes; its text is base64 in exactly one spelling (`StrictBase64`).
public struct SPKIPin: Hashable, Sendable {
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// A pin from its 32 bytes.
  ///
  /// - Returns: `nil` unless there are exactly 32 bytes.
  public init?(digest: some Collection<UInt8>) {
    guard digest.count == 32 else { return nil }
    self.init(computed: digest)
  }

  /// A pin from 32 bytes that a hash function just computed.
  package init(computed digest: some Collection<UInt8>) {
    precondition(digest.count == 32, "a SHA-256 has 32 bytes")
    var rest = digest.makeIterator()
    func word() -> UInt64 {
      var word: UInt64 = 0
      for _ in 0..<8 { word = word << 8 | UInt64(rest.next() ?? 0) }
      return word
    }
    words = (word(), word(), word(), word())
  }

  /// A pin from plain base64, as registries and `SPKI-SHA256-BASE64` members write it.
  ///
  /// - Throws: ``PinSyntaxError``.
  public init(base64 text: String) throws(PinSyntaxError) {
    try self.init(base64: text.utf8[...])
  }

  /// A pin as people write it: plain base64, `sha256/…` (OkHttp, curl write `sha256//…`), or
  /// `pin-sha256="…"` (RFC 7469 §2.1).
  ///
  /// A slash is also a base64 digit, and one pin in 64 begins with one, so prefix and pin are distinguished
  /// by length.
  ///
  /// - Throws: ``PinSyntaxError``; another hash (`sha1/`, `sha512/`) is refused, never skipped.
  public init(parsing text: String) throws(PinSyntaxError) {
    var rest = text.utf8[...]
    if rest.count == Self.base64Count {
      // 44 characters are a pin without a prefix, whatever it begins with.
    } else if let value = rest.dropping(prefix: "pin-sha256=\"") {
      guard value.last == UInt8(ascii: "\"") else { throw .unterminatedQuote }
      rest = value.dropLast()
    } else if let value = rest.dropping(prefix: "sha256/") {
      let isCurls = value.count > Self.base64Count
      rest = isCurls ? value.dropping(prefix: "/") ?? value : value
    } else if let slash = rest.firstIndex(of: UInt8(ascii: "/")),
      let prefix = String(rest[..<slash]), ["sha1", "sha512", "sha384", "md5"].contains(prefix)
    {
      throw .unsupportedHash(prefix)
    }
    try self.init(base64: rest)
  }

  private static let base64Count = 44

  private init(base64 text: Substring.UTF8View) throws(PinSyntaxError) {
    guard let bytes = StrictBase64.decode(text) else { throw .notBase64 }
    guard let pin = SPKIPin(digest: bytes) else { throw .wrongLength(bytes.count) }
    self = pin
  }

  /// The 32 bytes.
  public var bytes: [UInt8] {
    [words.0, words.1, words.2, words.3].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
    }
  }

  /// The pin's one base64 spelling: 44 characters.
  public var base64: String { StrictBase64.encode(bytes) }

  public static func == (left: SPKIPin, right: SPKIPin) -> Bool { left.words == right.words }

  public func hash(into hasher: inout Hasher) {
    // The words are a SHA-256 already, so two of them spread as well as four.
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}

extension SPKIPin: Comparable {
  public static func < (left: SPKIPin, right: SPKIPin) -> Bool { left.words < right.words }
}

extension SPKIPin: CustomStringConvertible {
  public var description: String { base64 }
}

extension Substring.UTF8View {
  fileprivate func dropping(prefix: String) -> Substring.UTF8View? {
    starts(with: prefix.utf8) ? dropFirst(prefix.utf8.count) : nil
  }
}

/// Why a text is not a pin.
public enum PinSyntaxError: Error, Hashable, Sendable {
  /// Not base64, or not the one spelling of its bytes (white space, missing padding, set trailing
  /// bits).
  case notBase64
  /// Base64 of so many bytes instead of 32.
  case wrongLength(Int)
  /// A pin with another hash than SHA-256.
  case unsupportedHash(String)
  /// `pin-sha256="` without its closing quote.
  case unterminatedQuote
}

extension PinSyntaxError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notBase64: "not strict base64; hint: a pin is 44 characters and ends in ="
    case .wrongLength(let count): "\(count) bytes where a SHA-256 has 32"
    case .unsupportedHash(let name): "\(name) pins are not supported; hint: use SHA-256"
    case .unterminatedQuote: "pin-sha256=\" without its closing quote"
    }
  }
}
