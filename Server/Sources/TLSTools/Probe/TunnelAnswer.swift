/// Reads a proxy's answer to CONNECT.
///
/// - Strict: a status line of HTTP/1, then fields, then an empty line, each line ended by CR LF.
/// - At most ``limit`` bytes: what goes on for longer is no answer.
/// - Any 2xx opens the tunnel (RFC 9110 section 9.3.6), and nothing may stand behind its head: the
///   server in a tunnel speaks after the client, so what comes earlier is somebody else's.
struct TunnelAnswer {
  /// What the bytes so far come to.
  enum State: Equatable {
    case incomplete
    case open
    case fault(ProbeError.ProxyFault)
  }

  static let limit = 16_384

  private var bytes: [UInt8] = []
  /// The head ends behind this at the earliest: no byte is looked at twice, however few come at once.
  private var searched = 4

  /// How many more bytes may be read.
  var room: Int { Self.limit - bytes.count }

  /// Takes the next bytes.
  mutating func feed(_ more: some Collection<UInt8>) -> State {
    bytes += more
    guard let status = statusLineSoFar() else { return .fault(.notHTTP(beginning: beginning)) }
    guard let end = endOfHead() else {
      return bytes.count < Self.limit ? .incomplete : .fault(.tooLong)
    }
    guard (200..<300).contains(status) else { return .fault(.refused(status: status)) }
    guard hasOnlyFields(upTo: end) else { return .fault(.notHTTP(beginning: beginning)) }
    return end == bytes.count ? .open : .fault(.spokeEarly)
  }

  /// The first line, made printable.
  private var beginning: String {
    String(
      decoding: bytes.prefix { $0 != 13 && $0 != 10 }.prefix(80).map {
        (0x20..<0x7f).contains($0) ? $0 : UInt8(ascii: "?")
      }, as: UTF8.self)
  }

  /// `HTTP/1.x nnn`, as far as it is there: 0 before the status is; `nil` where it is something else.
  private func statusLineSoFar() -> Int? {
    let form = Array("HTTP/1.d ddd".utf8)
    for (byte, expected) in zip(bytes, form) {
      let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      guard expected == UInt8(ascii: "d") ? isDigit : byte == expected else { return nil }
    }
    guard bytes.count > form.count else { return 0 }
    // RFC 9112 section 4 wants a space even where no reason follows; servers leave it out.
    guard bytes[12] == 0x20 || bytes[12] == 13 else { return nil }
    return bytes[9..<12].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }

  /// Where the empty line ends.
  private mutating func endOfHead() -> Int? {
    guard bytes.count >= searched else { return nil }
    defer { searched = bytes.count + 1 }
    return (searched...bytes.count).first {
      bytes[($0 - 4)..<$0].elementsEqual([13, 10, 13, 10])
    }
  }

  /// Whether every line but the first is a field, and no line ends otherwise than in CR LF.
  private func hasOnlyFields(upTo end: Int) -> Bool {
    let lines = bytes[..<(end - 4)].split(separator: 13, omittingEmptySubsequences: false)
    return lines.enumerated().allSatisfy { number, line in
      guard number > 0 else { return !line.contains { $0 < 0x20 && $0 != 9 } }
      guard line.first == 10 else { return false }
      let field = line.dropFirst()
      guard let colon = field.firstIndex(of: UInt8(ascii: ":")), colon > field.startIndex else {
        return false
      }
      return field[..<colon].allSatisfy { $0 > 0x20 && $0 < 0x7f }
        && !field.contains { $0 < 0x20 && $0 != 9 }
    }
  }
}
