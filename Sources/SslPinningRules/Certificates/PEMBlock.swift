/// One block of a PEM file (RFC 7468): its label and the bytes inside.
///
/// - Text outside blocks is skipped, as every tool does.
/// - A block that does not end, ends with another label, or is not in canonical base64 is an error: a
///   truncated file must not look like a shorter one.
public struct PEMBlock: Hashable, Sendable {
  /// The text between `-----BEGIN ` and `-----`, such as `CERTIFICATE`.
  public let label: String
  /// The decoded contents.
  public let bytes: [UInt8]

  /// A block of these bytes.
  public init(label: String, bytes: [UInt8]) {
    self.label = label
    self.bytes = bytes
  }

  /// All blocks of a file, in order; empty if there is none.
  ///
  /// - Throws: ``PEMError``.
  public static func blocks(in text: [UInt8]) throws(PEMError) -> [PEMBlock] {
    var blocks: [PEMBlock] = []
    var open: (label: String, body: [UInt8], line: Int)?
    var number = 0
    for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
      number += 1
      let trimmed = line.trimmingBlanks
      if let label = trimmed.label(between: "-----BEGIN ") {
        if let open { throw .unterminated(label: open.label) }
        open = (label, [], number)
      } else if let label = trimmed.label(between: "-----END ") {
        guard let block = open else { throw .endWithoutBegin(label: label) }
        guard block.label == label else { throw .unterminated(label: block.label) }
        guard let bytes = StrictBase64.decode(block.body), !bytes.isEmpty else {
          throw .notBase64(label: label)
        }
        blocks.append(PEMBlock(label: label, bytes: bytes))
        open = nil
      } else if open != nil {
        // RFC 1421 headers ("Proc-Type: …") mark an encrypted body, which cannot be read here.
        guard !trimmed.contains(UInt8(ascii: ":")) else { throw .encrypted }
        open?.body.append(contentsOf: trimmed.filter { $0 != 0x20 && $0 != 0x09 })
      }
    }
    if let open { throw .unterminated(label: open.label) }
    return blocks
  }

  /// The block as a PEM text with lines of 64 characters, ending in a line break.
  public var text: String {
    var out = "-----BEGIN \(label)-----\n"
    var rest = StrictBase64.encode(bytes)[...]
    while !rest.isEmpty {
      out += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return out + "-----END \(label)-----\n"
  }
}

extension ArraySlice<UInt8> {
  fileprivate var trimmingBlanks: ArraySlice<UInt8> {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    guard let last = lastIndex(where: { !isBlank($0) }) else { return [] }
    return self[...last].drop(while: isBlank)
  }

  fileprivate func label(between prefix: String) -> String? {
    let suffix = "-----"
    guard starts(with: prefix.utf8), count > prefix.utf8.count + suffix.utf8.count,
      self.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    else { return nil }
    let label = String(
      decoding: dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count), as: UTF8.self)
    // If a key's line breaks are lost, the key becomes one long label, and errors quote labels.
    // Not `contains("--")`, which Apple's systems only have since 2022.
    let hasTwoDashes = zip(label.utf8, label.utf8.dropFirst()).contains {
      $0 == UInt8(ascii: "-") && $1 == UInt8(ascii: "-")
    }
    return hasTwoDashes ? nil : label
  }
}

/// Why a text is not PEM.
public enum PEMError: Error, Equatable, Sendable {
  /// A block begins and does not end: a truncated file.
  case unterminated(label: String)
  /// A block ends without a beginning.
  case endWithoutBegin(label: String)
  /// The body is not base64, or empty.
  case notBase64(label: String)
  /// The block is encrypted with a pass phrase.
  case encrypted
}

extension PEMError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unterminated(let label):
      "the \(label) block has no end; hint: the file looks truncated"
    case .endWithoutBegin(let label): "an end of \(label) without its beginning"
    case .notBase64(let label): "the \(label) block is not base64"
    case .encrypted: "the key is encrypted; hint: decrypt it with openssl pkey -in … -out …"
    }
  }
}
