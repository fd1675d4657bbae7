/// What people call a key algorithm, for messages.
enum KeyAlgorithmName: Equatable, CustomStringConvertible {
  case rsa
  case other(String)

  /// From the contents of an OBJECT IDENTIFIER (X.690 §8.19).
  init(objectIdentifier contents: ArraySlice<UInt8>) {
    let dotted = Self.dotted(contents)
    self =
      switch dotted {
      case "1.2.840.113549.1.1.1": .rsa
      case "1.2.840.113549.1.1.10": .other("RSA-PSS")
      case "1.2.840.10045.2.1": .other("EC")
      case "1.2.840.10040.4.1": .other("DSA")
      case "1.3.101.112": .other("Ed25519")
      case "1.3.101.113": .other("Ed448")
      case "1.3.101.110": .other("X25519")
      case "1.3.101.111": .other("X448")
      default: .other("of type \(dotted)")
      }
  }

  var description: String {
    switch self {
    case .rsa: "RSA"
    case .other(let name): name
    }
  }

  private static func dotted(_ contents: ArraySlice<UInt8>) -> String {
    var arcs: [UInt64] = []
    var arc: UInt64 = 0
    // Enough for every algorithm in use; longer identifiers are cut.
    for byte in contents.prefix(32) {
      arc = arc << 7 | UInt64(byte & 0x7f)
      guard byte & 0x80 == 0 else { continue }
      if arcs.isEmpty {
        let first = min(arc / 40, 2)
        arcs = [first, arc - first * 40]
      } else {
        arcs.append(arc)
      }
      arc = 0
    }
    return arcs.map(String.init).joined(separator: ".")
  }
}
