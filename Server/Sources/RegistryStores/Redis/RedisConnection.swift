import CHiredis
import Foundation
import TLSTools

/// One connection to Redis. Calls block, but none for ever: without an answer in time the call fails
/// and the connection is of no further use.
///
/// Unchecked: one thread uses it at a time, its owner sees to that.
package final class RedisConnection: DatabaseConnection, @unchecked Sendable {
  private let context: UnsafeMutablePointer<redisContext>
  private let place: String
  private var hashes: [String: String] = [:]
  /// Whether it leads to a server that is only read from: the name may lead to another one by now.
  private var isReadOnly = false

  /// Connects, authenticates and selects the database.
  ///
  /// - Parameter patience: milliseconds to connect, and to wait for an answer.
  /// - Throws: ``StoreError/unreachable(place:reason:)``, ``StoreError/denied(place:reason:)``.
  package init(_ dsn: RedisDSN, patience: Int = 5000) throws(StoreError) {
    let time = timeval(tv_sec: patience / 1000, tv_usec: (patience % 1000) * 1000)
    let made =
      dsn.isTLS
      ? try Self.tunnel(dsn, patience) : redisConnectWithTimeout(dsn.host, dsn.port, time)
    guard let opened = made else {
      throw .unreachable(place: dsn.place, reason: "out of memory")
    }
    (context, place) = (opened, dsn.place)
    guard opened.pointee.err == 0 else { throw broken() }
    redisSetTimeout(opened, time)
    if !dsn.isTLS { redisEnableKeepAlive(opened) }
    if let password = dsn.password { try logIn(as: dsn.user, with: password) }
    if dsn.database != 0 { try command("SELECT", "\(dsn.database)") }
  }

  deinit { redisFree(context) }

  /// A connection under TLS: Debian's hiredis knows none.
  private static func tunnel(
    _ dsn: RedisDSN, _ patience: Int
  ) throws(StoreError) -> UnsafeMutablePointer<redisContext>? {
    let anchors = try dsn.trustAnchors()
    let socket: Int32
    do throws(SocketError) {
      socket = try TLSTunnel.open(
        to: dsn.host, port: UInt16(clamping: dsn.port), trusting: anchors,
        milliseconds: Int64(patience))
    } catch { throw .unreachable(place: dsn.place, reason: "TLS: \(error)") }
    guard let context = redisConnectFd(socket) else {
      close(socket)
      return nil
    }
    return context
  }

  var isUsable: Bool {
    // What comes unasked is the end of the connection.
    context.pointee.err == 0 && !isReadOnly && !isReadable
  }

  /// The socket, to wait for what comes unasked.
  var socket: Int32 { context.pointee.err == 0 ? context.pointee.fd : -1 }

  /// Runs a command and returns its answer.
  @discardableResult
  func command(_ words: RedisWord...) throws(StoreError) -> RedisReply {
    try checked(try reply(to: words), words)
  }

  /// Runs a script, which Redis keeps and knows again by its hash.
  func run(
    _ script: String, keys: [String], _ arguments: [RedisWord]
  ) throws(StoreError) -> RedisReply {
    let rest = [RedisWord("\(keys.count)")] + keys.map { RedisWord($0) } + arguments
    if hashes[script] == nil, case .bytes(let hash) = try command("SCRIPT", "LOAD", .init(script)) {
      hashes[script] = String(decoding: hash, as: UTF8.self)
    }
    let words = ["EVALSHA", RedisWord(hashes[script] ?? "")] + rest
    let answer = try reply(to: words)
    // After a restart or SCRIPT FLUSH; nothing was done.
    if case .error(let text) = answer, text.hasPrefix("NOSCRIPT") {
      hashes[script] = nil
      return try checked(try reply(to: ["EVAL", RedisWord(script)] + rest), ["EVAL"])
    }
    return try checked(answer, words)
  }

  /// Sends a command whose answers come later.
  func send(_ words: RedisWord...) throws(StoreError) {
    let isSent = Self.withArguments(words) { arguments, lengths in
      redisAppendCommandArgv(context, Int32(words.count), arguments, lengths) == REDIS_OK
    }
    var isDone: Int32 = 0
    while isDone == 0 {
      guard isSent, redisBufferWrite(context, &isDone) == REDIS_OK else { throw broken() }
    }
  }

  /// The next answer to what was sent, or the next message; waits for it.
  func receive() throws(StoreError) -> RedisReply {
    var raw: UnsafeMutableRawPointer?
    guard redisGetReply(context, &raw) == REDIS_OK, let raw else { throw broken() }
    return RedisReply(taking: raw)
  }

  /// What has come, without waiting for more.
  func received() throws(StoreError) -> [RedisReply] {
    var replies: [RedisReply] = []
    while isReadable {
      guard redisBufferRead(context) == REDIS_OK else { throw broken() }
      while true {
        var raw: UnsafeMutableRawPointer?
        guard redisGetReplyFromReader(context, &raw) == REDIS_OK else { throw broken() }
        guard let raw else { break }
        replies.append(RedisReply(taking: raw))
      }
    }
    return replies
  }

  /// Logs in as the user, else as the default one: the reference server sends the password alone, so a
  /// Redis that has no such user, or asks for no password, does for its configurations.
  private func logIn(as user: String?, with password: String) throws(StoreError) {
    // The last is all that a Redis before 6 understands.
    let ways = [user.map { [$0, password] }, ["default", password], [password]].compactMap { $0 }
    var refusal: String?
    for way in ways {
      guard case .error(let text) = try reply(to: ["AUTH"] + way.map { RedisWord($0) }) else {
        return
      }
      refusal = refusal ?? text
    }
    // In Redis' words only as far as they cannot hold the password.
    let isWrong = refusal?.hasPrefix("WRONGPASS") == true
    throw .denied(place: place, reason: isWrong ? "wrong user or password" : "no login with these")
  }

  private func reply(to words: [RedisWord]) throws(StoreError) -> RedisReply {
    let raw = Self.withArguments(words) { arguments, lengths in
      redisCommandArgv(context, Int32(words.count), arguments, lengths)
    }
    guard let raw else { throw broken() }
    return RedisReply(taking: raw)
  }

  private func checked(
    _ reply: RedisReply, _ words: [RedisWord]
  ) throws(StoreError) -> RedisReply {
    guard case .error(let text) = reply else { return reply }
    let code = text.prefix { $0 != " " }
    // Redis before 7 has it in the middle of what it says of a script.
    if code == "MASTERDOWN" || text.contains("READONLY ") { isReadOnly = true }
    switch code {
    case "NOAUTH", "NOPERM", "READONLY", "WRONGPASS": throw .denied(place: place, reason: text)
    case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN":
      throw .unreachable(place: place, reason: text)
    case "BUSY": throw .busy
    // Something else than a server writes is in the place of a record.
    case "WRONGTYPE": throw .damaged(path: place, reason: text)
    default:
      let verb = String(decoding: words.first?.bytes ?? [], as: UTF8.self).lowercased()
      throw .failed(operation: "\(verb) in \(place)", reason: text)
    }
  }

  private var isReadable: Bool {
    var file = pollfd(fd: context.pointee.fd, events: Int16(POLLIN), revents: 0)
    return poll(&file, 1, 0) > 0
  }

  private func broken() -> StoreError {
    let code = errno
    if context.pointee.err == 0 { context.pointee.err = REDIS_ERR_IO }
    let isLate =
      context.pointee.err == REDIS_ERR_IO && [EAGAIN, EWOULDBLOCK, EINPROGRESS].contains(code)
    let said = withUnsafeBytes(of: context.pointee.errstr) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    let reason = isLate ? "no answer in time" : said.isEmpty ? "the connection was lost" : said
    return .unreachable(place: place, reason: reason.prefix(1).lowercased() + reason.dropFirst())
  }

  private static func withArguments<Result>(
    _ words: [RedisWord],
    _ body: (UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafePointer<Int>) -> Result
  ) -> Result {
    let copies = words.map { word in
      let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: word.bytes.count + 1)
      copy.initialize(from: word.bytes, count: word.bytes.count)
      return copy
    }
    defer { for copy in copies { copy.deallocate() } }
    var pointers = copies.map { copy -> UnsafePointer<CChar>? in
      UnsafePointer(UnsafeRawPointer(copy).assumingMemoryBound(to: CChar.self))
    }
    let lengths = words.map(\.bytes.count)
    return pointers.withUnsafeMutableBufferPointer { pointers in
      lengths.withUnsafeBufferPointer { lengths in
        // Never empty: a command has a first word.
        body(pointers.baseAddress.unsafelyUnwrapped, lengths.baseAddress.unsafelyUnwrapped)
      }
    }
  }
}

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
