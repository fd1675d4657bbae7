import CMicroHTTPD
import Foundation
import PinningPlatform
import Synchronization

/// An HTTP/1.1 server for finished answers, on libmicrohttpd.
///
/// - GET and HEAD without a body reach the handler. A body is refused (413) and any other method
///   too (405) as soon as the header is in, and the connection is closed.
/// - Requests are read strictly (RFC 9112): what two parsers could read differently is refused. See
///   ``HeaderLines`` for what libmicrohttpd itself lets pass.
/// - Bounded: connections, connections per address, header bytes, silence, and absolute deadlines
///   for a request's arrival and for the reading of its answer.
/// - The target is percent-decoded once and here. What is malformed or decodes to a NUL, another
///   control character, `/`, `\` or no UTF-8 is refused (400), so no two layers see two paths.
final class HTTPServer: Sendable {
  /// The address with the port that the system chose where 0 was asked for.
  let address: ListenAddress

  private let site: Site
  private let limits: HTTPLimits
  private let daemon: Locked<Daemon?>

  private struct Daemon: @unchecked Sendable {
    let pointer: OpaquePointer
    let reaper: any DispatchSourceTimer
  }

  /// What the callbacks reach through their closure pointer; it outlives the daemon.
  fileprivate final class Site: Sendable {
    let handler: HTTPHandler
    let deadlines: ConnectionDeadlines
    /// Whether each answer is its connection's last.
    let isStopping = Atomic(false)

    init(handler: @escaping HTTPHandler, deadlines: ConnectionDeadlines) {
      self.handler = handler
      self.deadlines = deadlines
    }
  }

  /// Listens and answers from now on.
  ///
  /// - Throws: ``HTTPServerError``.
  init(
    listen: ListenAddress, limits: HTTPLimits = HTTPLimits(), handler: @escaping HTTPHandler
  ) throws(HTTPServerError) {
    let (descriptor, address) = try ListeningSocket.open(listen)
    let site = Site(handler: handler, deadlines: ConnectionDeadlines(limits: limits))
    guard let pointer = Self.startDaemon(descriptor, address, limits, site) else {
      close(descriptor)
      throw .system(operation: "starting the HTTP server", reason: "out of threads or memory")
    }
    let reaper = DispatchSource.makeTimerSource()
    reaper.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
    reaper.setEventHandler { site.deadlines.cutOverdue() }
    reaper.resume()
    self.address = address
    self.site = site
    self.limits = limits
    daemon = Locked(Daemon(pointer: pointer, reaper: reaper))
  }

  deinit {
    if let daemon = daemon.withLock({ $0 }) {
      daemon.reaper.cancel()
      MHD_stop_daemon(daemon.pointer)
    }
  }

  /// How many connections are open; 0 once it has stopped.
  var openConnections: Int {
    daemon.withLock { $0.map { Int(pp_mhd_open_connections($0.pointer)) } ?? 0 }
  }

  /// Stops accepting, lets answers that are under way go out, and closes. Further calls do nothing.
  ///
  /// Who has connected is answered, also from the kernel's queue, and told that the connection ends
  /// with the answer. Connections that ask nothing for half a second are hung up.
  func stop() async {
    guard let daemon = daemon.withLock({ $0.take() }) else { return }
    site.isStopping.store(true, ordering: .relaxed)
    let listening = MHD_quiesce_daemon(daemon.pointer)
    if listening >= 0 {
      Self.takeWaiting(listening, daemon.pointer)
      close(listening)
    }
    if await !isDrained(daemon, within: .milliseconds(500)) {
      site.deadlines.hangUp()
      _ = await isDrained(daemon, within: .seconds(limits.drain))
    }
    daemon.reaper.cancel()
    await withCheckedContinuation { continuation in
      // Joins the server's threads, so not on a cooperative one.
      DispatchQueue.global().async {
        MHD_stop_daemon(daemon.pointer)
        continuation.resume()
      }
    }
  }

  private func isDrained(_ daemon: Daemon, within limit: Duration) async -> Bool {
    let step = Duration.milliseconds(10)
    var left = limit
    while pp_mhd_open_connections(daemon.pointer) > 0 {
      guard left > .zero else { return false }
      try? await Task.sleep(for: step)
      left -= step
    }
    return true
  }

  /// Hands over the connections that wait to be accepted: closing their socket would reset them.
  private static func takeWaiting(_ listening: Int32, _ daemon: OpaquePointer) {
    while true {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let isTaken = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          let accepted = accept(listening, address, &length)
          guard accepted >= 0 else { return false }
          // It closes the socket where it does not take it.
          _ = MHD_add_connection(daemon, accepted, address, length)
          return true
        }
      }
      guard isTaken else { return }
    }
  }

  private static func startDaemon(
    _ descriptor: Int32, _ address: ListenAddress, _ limits: HTTPLimits, _ site: Site
  ) -> OpaquePointer? {
    let context = Unmanaged.passUnretained(site).toOpaque()
    func item(_ option: MHD_OPTION, _ value: Int, _ pointer: UnsafeMutableRawPointer? = nil)
      -> MHD_OptionItem
    { MHD_OptionItem(option: option, value: value, ptr_value: pointer) }
    var options = [
      item(.LISTEN_SOCKET, Int(descriptor)),
      item(.CONNECTION_LIMIT, limits.connections),
      item(.CONNECTION_TIMEOUT, Int(limits.idle)),
      item(.CONNECTION_MEMORY_LIMIT, connectionMemory),
      item(.STRICT_FOR_CLIENT, 1),
      item(.NOTIFY_CONNECTION, unsafeBitCast(connectionChanged, to: Int.self), context),
      item(.NOTIFY_COMPLETED, unsafeBitCast(requestCompleted, to: Int.self), context),
      item(.URI_LOG_CALLBACK, unsafeBitCast(measureTarget, to: Int.self)),
      item(.UNESCAPE_CALLBACK, unsafeBitCast(leaveEscaped, to: Int.self)),
    ]
    if !address.isLoopback {
      options.append(item(.PER_IP_CONNECTION_LIMIT, limits.connectionsPerAddress))
    }
    let threads = min(4, ProcessInfo.processInfo.activeProcessorCount)
    if threads > 1 { options.append(item(.THREAD_POOL_SIZE, threads)) }
    options.append(item(.END, 0))
    let flags = UInt32(MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_USE_ITC.rawValue)
    return options.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return nil }
      let list: [any CVarArg] = [
        Int32(bitPattern: MHD_OPTION.ARRAY.rawValue), OpaquePointer(start),
        Int32(bitPattern: MHD_OPTION.END.rawValue),
      ]
      return withVaList(list) {
        MHD_start_daemon_va(flags, 0, nil, nil, handleRequest, context, $0)
      }
    }
  }
}

private func serverSite(_ context: UnsafeMutableRawPointer?) -> HTTPServer.Site? {
  context.map { Unmanaged<HTTPServer.Site>.fromOpaque($0).takeUnretainedValue() }
}

private func deadline(_ context: UnsafeMutableRawPointer?) -> ConnectionDeadlines.Connection? {
  context.map { Unmanaged<ConnectionDeadlines.Connection>.fromOpaque($0).takeUnretainedValue() }
}

private let connectionChanged: MHD_NotifyConnectionCallback = { context, connection, slot, event in
  guard let site = serverSite(context), let slot else { return }
  if pp_mhd_is_beginning(event) != 0 {
    let entry = site.deadlines.begin(pp_mhd_connection_socket(connection))
    slot.pointee = Unmanaged.passRetained(entry).toOpaque()
  } else if let raw = slot.pointee {
    let entry = Unmanaged<ConnectionDeadlines.Connection>.fromOpaque(raw).takeRetainedValue()
    slot.pointee = nil
    site.deadlines.end(entry)
  }
}

private let requestCompleted: MHD_RequestCompletedCallback = { context, connection, _, _ in
  guard let site = serverSite(context), let entry = deadline(pp_mhd_connection_context(connection))
  else {
    return
  }
  site.deadlines.answered(entry)
}

/// Notes how long the whole target is as a C string, as the state of the request until its first
/// call; never null, because a target is never empty.
private let measureTarget: URILogCallback = { _, target, _ in
  target.flatMap { UnsafeMutableRawPointer(bitPattern: strlen($0)) }
}

private typealias URILogCallback =
  @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?)
  -> UnsafeMutableRawPointer?

/// Whether a NUL in the target hides its rest: the version then stands further behind its beginning
/// than its length says. Both point into the connection's buffer; a library that keeps them elsewhere
/// is not judged.
private func endsEarly(
  _ target: UnsafePointer<CChar>, measured: Int, _ version: UnsafePointer<CChar>?
) -> Bool {
  guard let version else { return false }
  let distance = Int(bitPattern: version) - Int(bitPattern: target)
  return (1...connectionMemory).contains(distance) && measured + 1 < distance
}

/// Bytes for a connection's header and buffers.
private let connectionMemory = 16 * 1024

/// libmicrohttpd would decode in place and hand over a C string, in which `%00` ends the path.
private let leaveEscaped: UnescapeCallback = { _, _, text in text.map { strlen($0) } ?? 0 }

private typealias UnescapeCallback =
  @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?) -> Int

private let handleRequest: MHD_AccessHandlerCallback = {
  context, connection, url, method, version, _, uploadSize, state in
  guard let site = serverSite(context), let connection, let url, let method, let state,
    let uploadSize
  else { return MHD_Result.NO }
  let isFirstCall = state.pointee != context
  let measured = Int(bitPattern: state.pointee)
  state.pointee = context
  // An answer on the first call closes the connection, so only refusals are given there.
  if isFirstCall {
    if endsEarly(url, measured: measured, version) {
      let refusal = HTTPRefusal.badPath
      return MHD_queue_response(connection, refusal.status, refusal.pointer)
    }
    guard let refusal = HTTPRefusal.of(method: method, connection: connection) else { return .YES }
    return MHD_queue_response(connection, refusal.status, refusal.pointer)
  }
  if uploadSize.pointee > 0 {
    uploadSize.pointee = 0
    return .YES
  }
  if let entry = deadline(pp_mhd_connection_context(connection)) {
    site.deadlines.answering(entry)
  }
  guard let path = TargetPath.path(of: String(cString: url)) else {
    return MHD_queue_response(connection, HTTPRefusal.badPath.status, HTTPRefusal.badPath.pointer)
  }
  let response = site.handler(
    HTTPRequest(
      method: String(cString: method), path: path, ifNoneMatch: ifNoneMatch(of: connection)))
  let final = site.isStopping.load(ordering: .relaxed) ? response.closing : response
  return MHD_queue_response(connection, final.status, final.pointer)
}

private func ifNoneMatch(of connection: OpaquePointer) -> String? {
  let name = "If-None-Match"
  guard MHD_lookup_connection_value(connection, .HEADER_KIND, name) != nil else { return nil }
  var lines: [String] = []
  withUnsafeMutablePointer(to: &lines) { lines in
    _ = MHD_get_connection_values(connection, .HEADER_KIND, collectIfNoneMatch, lines)
  }
  return lines.joined(separator: ", ")
}

private let collectIfNoneMatch: MHD_KeyValueIterator = { context, _, key, value in
  if let context, let key, let value, strcasecmp(key, "If-None-Match") == 0 {
    context.assumingMemoryBound(to: [String].self).pointee.append(String(cString: value))
  }
  return .YES
}
