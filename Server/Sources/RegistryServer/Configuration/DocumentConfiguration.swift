/// One published file and the endpoints that it speaks of.
public struct DocumentConfiguration: Sendable, Equatable {
  /// The last component of the document's URL: 1 to 128 letters, digits, `.`, `_` and `-`, not
  /// beginning with a dot, so that it is one path component wherever it is written.
  public var file: String
  /// The endpoints, each once, in the order given.
  public var endpoints: [WatchedEndpoint]

  /// A document.
  public init(file: String, endpoints: [WatchedEndpoint]) {
    self.file = file
    self.endpoints = endpoints
  }

  /// Whether `name` is a path of this server, or what it writes beside a document: such a document would be
  /// published and never served.
  package static func isTaken(file name: String) -> Bool {
    let name = name.lowercased()
    return ["admin", "reports"].contains(name) || [".gz", ".parts"].contains { name.hasSuffix($0) }
  }

  /// Whether `name` is a file name as ``file`` describes it.
  public static func isSafe(file name: String) -> Bool {
    let bytes = name.utf8
    guard (1...128).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return false }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}
