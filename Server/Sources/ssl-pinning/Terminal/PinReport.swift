import CanonicalJSON
import TLSTools

/// What `pin` found at one target.
struct PinReport: Sendable {
  /// What the target is.
  enum Kind: Sendable {
    case file
    case host(ProbedServer)
  }

  let target: String
  let kind: Kind
  /// A file's certificates and keys; a server's validated path, or what it sent where there is none.
  let keys: [PinnedKey]

  /// The pins of a file.
  init(file: String, keys: [PinnedKey]) {
    self.target = file
    self.keys = keys
    kind = .file
  }

  /// The pins of a server.
  init(target: String, _ result: ProbedServer) {
    self.target = target
    keys = Self.keys(result.validated ?? result.presented)
    kind = .host(result)
  }

  /// A line for each key: pin, role, subject.
  var text: String {
    var table = TextTable()
    for key in keys { table.add([key.pin.base64, key.role.rawValue, key.subject]) }
    return table.text
  }

  /// What a reader of the pins has to know before using them.
  var warning: String? {
    guard case .host(let result) = kind, let complaint = result.complaint else { return nil }
    return "\(target) is not trusted: \(complaint)"
      + "; hint: these may be an attacker's pins; --ca names one's own CA"
  }

  var json: JSONValue {
    let certificates = JSONValue.array(keys.map(\.json))
    guard case .host(let result) = kind else {
      return .members([
        "target": .string(target), "kind": .string("file"), "certificates": certificates,
      ])
    }
    return .members([
      "target": .string(target), "kind": .string("host"), "certificates": certificates,
      "presented": .array(Self.keys(result.presented).map(\.json)),
      "validated": result.validated.map { .array(Self.keys($0).map(\.json)) } ?? .null,
      "trusted": .bool(result.isTrusted), "nameMatches": .bool(result.nameMatches),
      "verifyCode": .integer(Int64(result.verification.code)),
      "verifyResult": .string(result.verification.reason),
      "complaint": .optional(result.complaint), "address": .string("\(result.address)"),
      "tlsVersion": .string(result.tlsVersion), "cipher": .string(result.cipher),
    ])
  }

  /// The first of a server's certificates is its own, whatever it says about itself.
  private static func keys(_ certificates: [ProbedCertificate]) -> [PinnedKey] {
    certificates.enumerated().compactMap { index, probed in
      try? PinnedKey(certificateDER: probed.certificate.der, as: index == 0 ? .leaf : nil)
    }
  }
}
