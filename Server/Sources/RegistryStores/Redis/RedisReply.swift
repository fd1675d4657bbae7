import CHiredis

/// A word of a command: any bytes.
struct RedisWord: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }
  init(_ text: String) { bytes = Array(text.utf8) }
  init(stringLiteral text: String) { self.init(text) }
}

/// An answer of Redis.
enum RedisReply: Equatable {
  case nothing
  case integer(Int64)
  /// A string, or a status such as `OK`.
  case bytes([UInt8])
  case error(String)
  case list([RedisReply])

  /// Copies an answer of hiredis and frees it.
  init(taking raw: UnsafeMutableRawPointer) {
    self.init(raw.assumingMemoryBound(to: redisReply.self).pointee)
    freeReplyObject(raw)
  }

  private init(_ reply: redisReply) {
    func bytes() -> [UInt8] {
      guard let start = reply.str else { return [] }
      return [UInt8](UnsafeRawBufferPointer(start: start, count: reply.len))
    }
    switch reply.type {
    case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: self = .bytes(bytes())
    case REDIS_REPLY_INTEGER: self = .integer(reply.integer)
    case REDIS_REPLY_ERROR: self = .error(String(decoding: bytes(), as: UTF8.self))
    case REDIS_REPLY_ARRAY:
      self = .list(
        (0..<reply.elements).map { index in
          reply.element?[index].map { RedisReply($0.pointee) } ?? .nothing
        })
    default: self = .nothing
    }
  }

  /// The text of a string; `nil` of anything else.
  var text: String? {
    if case .bytes(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
  }

  /// The number of an integer, or of a string that is one.
  var number: Int64? {
    if case .integer(let number) = self { number } else { text.flatMap { Int64($0) } }
  }

  var items: [RedisReply] { if case .list(let items) = self { items } else { [] } }
}
