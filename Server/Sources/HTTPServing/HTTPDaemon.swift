import CMicroHTTPD
import Foundation
import SslPinningPlatform
import Synchronization

/// One daemon of libmicrohttpd, from its start to its stop.
///
/// Unchecked: the functions that are called with ``pointer`` may be called from any thread.
final class HTTPDaemon: @unchecked Sendable {
  /// What the callbacks reach through their closure pointer.
  final class Context: Sendable {
    let site: Router
    /// Whether another daemon has taken over, so that each answer is its connection's last.
    let isRetired = Atomic(false)
    /// Connections that were handed to the library, and those that its threads began to serve.
    let handedOver = Atomic(0)
    let begun = Atomic(0)

    init(site: Router) { self.site = site }

    /// The answer as it is sent on this connection.
    func final(_ response: HTTPResponse, of connection: HTTPConnection) -> HTTPResponse {
      let isLast =
        connection.isLast || isRetired.load(ordering: .relaxed)
        || site.isStopping.load(ordering: .relaxed) || site.deadlines.isCrowded
      return isLast ? response.closing : response
    }
  }

  private let pointer: OpaquePointer
  private let context: Context
  private let queue = Locked(ConnectionQueue())

  /// TLS 1.2 and later. Old clients of the registry are as old as its first release.
  ///
  /// No finite-field Diffie-Hellman: a client names the group, sends any number for its share, and with 8192 bits costs
  /// a thread half a second for a kilobyte. A few of those a second keep all readers out. P-521 is left out, too: it costs
  /// several times what other curves do, and no client needs it.
  private static let priorities =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-GROUP-DH-ALL:-DHE-RSA:-GROUP-SECP521R1"

  /// Bytes for a connection's header and buffers.
  private static let connectionMemory = 16 * 1024

  /// Whether the library is older than 1.0, which brought another parser: what strict mode does not refuse in
  /// the old one, or cannot do, is seen to here (ADR 16).
  static let hasOldParser = pp_mhd_version() < 1_000_000

  /// Serves the connections that it is given from now on; `nil` if it does not start.
  init?(identity: ListenerIdentity?, site: Router) {
    let context = Context(site: site)
    guard let pointer = Self.start(identity, context) else { return nil }
    self.pointer = pointer
    self.context = context
  }

  /// How many connections are open, with those that a thread has yet to begin with.
  var openConnections: Int { Int(pp_mhd_open_connections(pointer)) + notBegun }

  private var notBegun: Int {
    let begun = context.begun.load(ordering: .relaxed)
    let handedOver = context.handedOver.load(ordering: .relaxed)
    return queue.withLock { $0.waiting(handedOver: handedOver, begun: begun) }
  }

  /// Looks after connections that the library has dropped, as ``ConnectionQueue`` says.
  ///
  /// - Returns: whether some count no more.
  func forgetLost() -> Bool {
    let begun = context.begun.load(ordering: .relaxed)
    let handedOver = context.handedOver.load(ordering: .relaxed)
    return queue.withLock { $0.look(handedOver: handedOver, begun: begun) }
  }

  /// From now on each answer is its connection's last.
  func retire() { context.isRetired.store(true, ordering: .relaxed) }

  /// Serves one more connection, or closes its socket and says false.
  func add(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Bool {
    context.handedOver.add(1, ordering: .relaxed)
    let isTaken = MHD_add_connection(pointer, descriptor, address, length) == .YES
    if !isTaken { context.handedOver.subtract(1, ordering: .relaxed) }
    return isTaken
  }

  /// The numeric address; empty where it is not known.
  static func peer(_ address: UnsafePointer<sockaddr>?) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard let start = buffer.baseAddress, pp_mhd_peer(address, start, buffer.count) != 0
      else { return "" }
      return String(cString: start)
    }
  }

  /// Closes every connection and ends the threads. Blocks; called once.
  func stop() {
    MHD_stop_daemon(pointer)
  }

  private static func start(
    _ identity: ListenerIdentity?, _ context: Context
  ) -> OpaquePointer? {
    var options = options(context)
    var flags =
      MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
      | MHD_ALLOW_SUSPEND_RESUME.rawValue
    guard let identity else { return start(flags, options, context) }
    flags |= MHD_USE_TLS.rawValue
    // libmicrohttpd reads the texts while it starts, and only then.
    return priorities.withCString { priorities in
      identity.certificatePEM.withCString { certificate in
        identity.keyPEM.withCString { key in
          options.append(item(.HTTPS_PRIORITIES, 0, UnsafeMutableRawPointer(mutating: priorities)))
          options.append(item(.HTTPS_MEM_CERT, 0, UnsafeMutableRawPointer(mutating: certificate)))
          options.append(item(.HTTPS_MEM_KEY, 0, UnsafeMutableRawPointer(mutating: key)))
          return start(flags, options, context)
        }
      }
    }
  }

  private static func options(_ context: Context) -> [MHD_OptionItem] {
    let closure = Unmanaged.passUnretained(context).toOpaque()
    func callback<Function>(_ option: MHD_OPTION, _ function: Function) -> MHD_OptionItem {
      item(option, unsafeBitCast(function, to: Int.self), closure)
    }
    var options = [
      // The limit is ``ConnectionIntake``'s, which lets others wait. The library's own must never be reached: 0.9.75 keeps
      // a lock then, and at the next connection the thread waits for itself, for ever.
      item(.CONNECTION_LIMIT, Int(Int32.max)),
      item(.CONNECTION_MEMORY_LIMIT, connectionMemory),
      item(.STRICT_FOR_CLIENT, 1),
      callback(.NOTIFY_CONNECTION, HTTPCallbacks.connectionChanged),
      callback(.NOTIFY_COMPLETED, HTTPCallbacks.requestCompleted),
      callback(.URI_LOG_CALLBACK, HTTPCallbacks.targetReceived),
      callback(.UNESCAPE_CALLBACK, HTTPCallbacks.leaveEscaped),
    ]
    let threads = min(4, ProcessInfo.processInfo.activeProcessorCount)
    if threads > 1 { options.append(item(.THREAD_POOL_SIZE, threads)) }
    return options
  }

  private static func item(
    _ option: MHD_OPTION, _ value: Int, _ pointer: UnsafeMutableRawPointer? = nil
  ) -> MHD_OptionItem { MHD_OptionItem(option: option, value: value, ptr_value: pointer) }

  private static func start(
    _ flags: UInt32, _ options: [MHD_OptionItem], _ context: Context
  ) -> OpaquePointer? {
    var options = options + [item(.END, 0)]
    let closure = Unmanaged.passUnretained(context).toOpaque()
    return options.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return nil }
      let list: [any CVarArg] = [
        Int32(bitPattern: MHD_OPTION.ARRAY.rawValue), OpaquePointer(start),
        Int32(bitPattern: MHD_OPTION.END.rawValue),
      ]
      return withVaList(list) {
        MHD_start_daemon_va(flags, 0, nil, nil, HTTPCallbacks.requestReceived, closure, $0)
      }
    }
  }
}

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
        peer: HTTPDaemon.peer(pp_mhd_connection_peer(connection)))
      daemon.site.deadlines.begin(entry)
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
      if HTTPDaemon.hasOldParser { query.pointee = 0 }
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
}

/// How many connections a daemon was given with which no thread of its has begun.
///
/// The library drops some without a word, as it does out of memory, and each would take a place for ever. So if none began for a
/// minute, those that wait count no more. A shorter wait would let as many in again while the threads work on handshakes, which can
/// take many seconds. If a thread begins with them after all, they count as before.
struct ConnectionQueue {
  private var lastBegun = 0
  private var looks = 0
  private var lost = 0

  /// Looks per minute.
  static let patience = 300

  /// Called every 200 milliseconds.
  ///
  /// - Returns: whether some count no more.
  mutating func look(handedOver: Int, begun: Int) -> Bool {
    lost = min(lost, handedOver - begun)
    let stands = begun == lastBegun && handedOver - begun > lost
    lastBegun = begun
    looks = stands ? looks + 1 : 0
    guard looks >= Self.patience else { return false }
    (lost, looks) = (handedOver - begun, 0)
    return true
  }

  func waiting(handedOver: Int, begun: Int) -> Int { max(0, handedOver - begun - lost) }
}

/// One request and the status it got, for whoever counts.
package struct ServedRequest: Sendable {
  /// HEAD counts as GET; empty where the request was refused before it was read.
  let method: String
  /// The decoded path; `nil` where the request was refused before it was read.
  package let path: String?
  package let status: Int
  /// From the request's first line to its answer, without sending it.
  package let duration: Duration
}

/// Is told of every answer as it goes out, on the server's threads: it must not block. Not told of are
/// connections that end without an answer, and first lines that libmicrohttpd itself refuses.
package typealias HTTPObserver = @Sendable (ServedRequest) -> Void
