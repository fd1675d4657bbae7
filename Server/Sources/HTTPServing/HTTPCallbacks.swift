import CMicroHTTPD
import Foundation

/// What libmicrohttpd calls, on its own threads. A request comes as
///
/// 1. its target, as soon as the first line is in;
/// 2. a first call with the whole header. An answer to that is the connection's last, so only
///    refusals are given;
/// 3. a call for each part of the body;
/// 4. a last call for the answer, and one more where the answer came later.
enum HTTPCallbacks {
  static let connectionChanged: MHD_NotifyConnectionCallback = { context, connection, slot, event in
    guard let daemon = daemonContext(context), let connection, let slot else { return }
    if pp_mhd_is_beginning(event) != 0 {
      daemon.begun.add(1, ordering: .relaxed)
      let entry = HTTPConnection(
        pointer: connection, descriptor: pp_mhd_connection_socket(connection),
        peer: peer(of: connection))
      daemon.site.began(connection: entry)
      slot.pointee = Unmanaged.passRetained(entry).toOpaque()
    } else if let raw = slot.pointee {
      let entry = Unmanaged<HTTPConnection>.fromOpaque(raw).takeRetainedValue()
      slot.pointee = nil
      entry.reset()
      daemon.site.deadlines.end(entry)
    }
  }

  static let targetReceived: URILogCallback = { context, target, connection in
    guard let daemon = daemonContext(context), let target, let entry = entry(of: connection) else {
      return nil
    }
    entry.phase = .header
    entry.targetLength = strlen(target)
    daemon.site.began(entry)
    daemon.site.deadlines.receivingHeader(entry)
    if let mark = strchr(target, Int32(UInt8(ascii: "?"))) {
      let query = mark + 1
      entry.query = Array(
        UnsafeBufferPointer(
          start: UnsafeRawPointer(query).assumingMemoryBound(to: UInt8.self), count: strlen(query)))
      // Ends the query before libmicrohttpd takes it apart: 0.9.75 runs out of memory over many
      // arguments, answers, and then goes on waiting for the header that it has thrown away.
      if HeaderLayout.isKnown { query.pointee = 0 }
    }
    return nil
  }

  /// libmicrohttpd would decode in place and hand over a C string, in which `%00` ends the path.
  static let leaveEscaped: UnescapeCallback = { _, _, text in text.map { strlen($0) } ?? 0 }

  static let requestReceived: MHD_AccessHandlerCallback = {
    context, connection, target, method, version, data, size, _ in
    guard let daemon = daemonContext(context), let connection, let target, let method, let version,
      let size, let entry = entry(of: connection)
    else { return .NO }
    let site = daemon.site
    guard !entry.isTooMany else { return .NO }
    switch entry.phase {
    case .idle, .answering: return .NO
    case .header:
      entry.phase = .body
      let head = RequestHead(
        connection: connection, method: method, target: target, version: version)
      guard let refusal = site.refusal(of: head, on: entry) else { return .YES }
      return queue(refusal, on: connection, entry, site)
    case .body where size.pointee > 0:
      let part = UnsafeRawBufferPointer(start: data, count: size.pointee)
      size.pointee = 0
      return site.receive(part, on: entry) ? .YES : .NO
    case .body:
      if entry.isLast, MHD_get_connection_values(connection, .FOOTER_KIND, nil, nil) > 0 {
        return queue(HTTPRefusal.badTrailer.closing, on: connection, entry, site)
      }
      switch site.answer(to: entry) {
      case .now(let response):
        return queue(daemon.final(response, of: entry), on: connection, entry, site)
      case .later(let isTrusted, let work):
        entry.phase = .waiting
        site.deadlines.waiting(entry)
        let refusal = site.suspended.suspend(
          connection, entry.descriptor, of: isTrusted ? nil : site.stranger(on: entry), for: work
        ) {
          entry.wait(for: $0)
        }
        guard let refusal else { return .YES }
        return queue(daemon.final(refusal, of: entry), on: connection, entry, site)
      }
    case .waiting:
      guard let response = entry.later?.response else { return .YES }
      return queue(daemon.final(response, of: entry), on: connection, entry, site)
    }
  }

  static let requestCompleted: MHD_RequestCompletedCallback = { context, connection, _, _ in
    guard let daemon = daemonContext(context), let entry = entry(of: connection) else { return }
    // What libmicrohttpd answered itself. Before a request is whole that is the caller's fault, whatever the status:
    // 0.9.75 answers a chunk extension that fills its memory with 500, and alerts count those.
    if entry.began != nil {
      let status = pp_mhd_status(connection)
      if status > 0 { daemon.site.answered(entry, status >= 500 ? 400 : status) }
    }
    entry.reset()
    daemon.site.deadlines.answered(entry)
  }

  typealias URILogCallback =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, OpaquePointer?)
    -> UnsafeMutableRawPointer?
  typealias UnescapeCallback =
    @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?) -> Int

  private static func queue(
    _ response: HTTPResponse, on connection: OpaquePointer, _ entry: HTTPConnection,
    _ site: Router
  ) -> MHD_Result {
    // In this order: who is late while no answer is waited for is cut.
    site.deadlines.answering(entry)
    if entry.phase == .waiting { entry.wait(for: nil) }
    entry.phase = .answering
    site.answered(entry, response.status)
    return MHD_queue_response(connection, response.status, response.pointer)
  }

  private static func daemonContext(_ context: UnsafeMutableRawPointer?) -> HTTPDaemon.Context? {
    context.map { Unmanaged<HTTPDaemon.Context>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func entry(of connection: OpaquePointer?) -> HTTPConnection? {
    connection.flatMap { pp_mhd_connection_context($0) }.map {
      Unmanaged<HTTPConnection>.fromOpaque($0).takeUnretainedValue()
    }
  }

  private static func peer(of connection: OpaquePointer) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard let start = buffer.baseAddress,
        pp_mhd_connection_peer(connection, start, buffer.count) != 0
      else { return "" }
      return String(cString: start)
    }
  }
}
