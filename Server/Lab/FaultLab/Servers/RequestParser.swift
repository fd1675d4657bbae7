/// Reads HTTP/1.1 requests from a stream of bytes (RFC 9112).
///
/// - A request that could be read in two ways is refused: Content-Length beside chunked coding,
///   two different Content-Lengths, a number that is not digits only.
/// - A head is at most 64 KiB, a body at most 64 MiB.
struct RequestParser {
  enum Failure: Error, Equatable {
    case malformed(String)
    case headTooLarge
    case bodyTooLarge
  }

  struct Message: Equatable {
    var method: String
    var target: String
    var version: String
    var headers: [HTTPField]
    var body: [UInt8] = []

    func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased() == name }?.value
    }

    /// Whether the client wants the connection kept (RFC 9112 section 9.3).
    var keepsAlive: Bool {
      let connection = header("connection")?.lowercased() ?? ""
      return version == "HTTP/1.1" ? connection != "close" : connection == "keep-alive"
    }
  }

  private enum Framing {
    case length(Int)
    case chunked
  }

  static let headLimit = 65_536
  static let bodyLimit = 64 << 20

  private var buffer: [UInt8] = []
  private var pending: (message: Message, framing: Framing)?

  /// Bytes that belong to no complete request; after a CONNECT they are the tunnel's.
  var rest: [UInt8] { buffer }

  /// Whether a request has begun and is not complete.
  var isInside: Bool { pending != nil || !buffer.isEmpty }

  mutating func feed(_ bytes: [UInt8]) { buffer.append(contentsOf: bytes) }

  /// Whether the client holds its body back until it hears `100 Continue`; asked once per request.
  mutating func takeExpectation() -> Bool {
    guard pending?.message.header("expect")?.lowercased() == "100-continue" else { return false }
    pending?.message.headers.removeAll { $0.name.lowercased() == "expect" }
    return true
  }

  /// The next complete request; nil if more bytes are needed.
  mutating func next() throws(Failure) -> Message? {
    if pending == nil {
      guard let head = try takeHead() else { return nil }
      pending = (head, try Self.framing(of: head))
    }
    guard let (message, framing) = pending else { return nil }
    switch framing {
    case .length(let count):
      guard count <= Self.bodyLimit else { throw .bodyTooLarge }
      guard buffer.count >= count else { return nil }
      return finish(message, Array(buffer.prefix(count)))
    case .chunked:
      while true {
        switch try takeChunk() {
        case .none: return nil
        case .some(let chunk) where chunk.isEmpty:
          return finish(pending?.message ?? message, nil)
        case .some(let chunk):
          pending?.message.body += chunk
          guard (pending?.message.body.count ?? 0) <= Self.bodyLimit else { throw .bodyTooLarge }
        }
      }
    }
  }

  private mutating func finish(_ message: Message, _ body: [UInt8]?) -> Message {
    var message = message
    if let body {
      message.body = body
      buffer.removeFirst(body.count)
    }
    pending = nil
    return message
  }

  private mutating func takeHead() throws(Failure) -> Message? {
    // Empty lines before a request line are skipped (RFC 9112 section 2.2).
    while buffer.starts(with: [13, 10]) { buffer.removeFirst(2) }
    // A ClientHello on a clear-text port would otherwise wait for an empty line for ever.
    if let first = buffer.first, first != 13, !Self.isLetter(first) {
      throw .malformed("request line")
    }
    guard let end = Self.find([13, 10, 13, 10], in: buffer[...]) else {
      guard buffer.count <= Self.headLimit else { throw .headTooLarge }
      return nil
    }
    guard end <= Self.headLimit else { throw .headTooLarge }
    let lines = Self.lines(of: buffer[..<end])
    buffer.removeFirst(end + 4)
    let parts = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ !$0.isEmpty }), parts[2].hasPrefix("HTTP/1.") else {
      throw .malformed("request line")
    }
    var headers: [HTTPField] = []
    for line in lines.dropFirst() {
      let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2, let name = halves.first, !name.isEmpty,
        !name.contains(where: { $0 == " " || $0 == "\t" })
      else { throw .malformed("header line") }
      headers.append(HTTPField(String(name), Self.trimmed(halves[1])))
    }
    return Message(
      method: String(parts[0]), target: String(parts[1]), version: String(parts[2]),
      headers: headers)
  }

  private static func framing(of message: Message) throws(Failure) -> Framing {
    let lengths = Set(
      message.headers.filter { $0.name.lowercased() == "content-length" }.map(\.value))
    if let coding = message.header("transfer-encoding") {
      guard coding.lowercased() == "chunked", lengths.isEmpty else { throw .malformed("framing") }
      return .chunked
    }
    guard let length = lengths.first else { return .length(0) }
    guard lengths.count == 1, let count = number(length, radix: 10) else {
      throw .malformed("content-length")
    }
    return .length(count)
  }

  /// The next chunk's data; empty for the last chunk (trailers are dropped); nil if more bytes are needed.
  private mutating func takeChunk() throws(Failure) -> [UInt8]? {
    guard let lineEnd = Self.find([13, 10], in: buffer[...]) else {
      guard buffer.count <= 4096 else { throw .malformed("chunk size") }
      return nil
    }
    let text = String(
      decoding: buffer[..<lineEnd].prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
    guard let size = Self.number(Self.trimmed(text[...]), radix: 16) else {
      throw .malformed("chunk size")
    }
    guard size <= Self.bodyLimit else { throw .bodyTooLarge }
    let start = lineEnd + 2
    if size == 0 {
      if buffer.dropFirst(start).starts(with: [13, 10]) {
        buffer.removeFirst(start + 2)
        return []
      }
      guard let end = Self.find([13, 10, 13, 10], in: buffer[start...]) else {
        guard buffer.count - start <= Self.headLimit else { throw .headTooLarge }
        return nil
      }
      buffer.removeFirst(end + 4)
      return []
    }
    guard buffer.count >= start + size + 2 else { return nil }
    guard buffer[(start + size)...].starts(with: [13, 10]) else { throw .malformed("chunk end") }
    let data = Array(buffer[start..<(start + size)])
    buffer.removeFirst(start + size + 2)
    return data
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }

  private static func number(_ text: String, radix: Int) -> Int? {
    // Int(_:radix:) would accept a sign.
    guard !text.isEmpty,
      text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") })
    else { return nil }
    return Int(text, radix: radix)
  }

  private static func trimmed(_ text: Substring) -> String {
    let blanks: Set<Character> = [" ", "\t"]
    var text = text
    while let first = text.first, blanks.contains(first) { text.removeFirst() }
    while let last = text.last, blanks.contains(last) { text.removeLast() }
    return String(text)
  }

  private static func lines(of head: ArraySlice<UInt8>) -> [String] {
    var lines: [String] = []
    var rest = head
    while let end = find([13, 10], in: rest) {
      lines.append(String(decoding: rest[..<end], as: UTF8.self))
      rest = rest[(end + 2)...]
    }
    lines.append(String(decoding: rest, as: UTF8.self))
    return lines
  }

  /// The index at which `pattern` begins.
  private static func find(_ pattern: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= pattern.count else { return nil }
    return bytes.withUnsafeBufferPointer { buffer in
      for offset in 0...(buffer.count - pattern.count)
      where buffer[offset] == pattern[0]
        && buffer[offset..<(offset + pattern.count)].elementsEqual(pattern)
      {
        return bytes.startIndex + offset
      }
      return nil
    }
  }
}
