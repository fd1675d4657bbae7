import CMicroHTTPD
import Foundation
import Synchronization

/// One daemon of libmicrohttpd, from its start to its stop.
///
/// Unchecked: the functions that are called with ``pointer`` may be called from any thread.
final class HTTPDaemon: @unchecked Sendable {
  /// What the callbacks reach through their closure pointer.
  final class Context: Sendable {
    let site: Router
    let isTLS: Bool
    /// Whether another daemon has taken over, so that each answer is its connection's last.
    let isRetired = Atomic(false)
    /// Connections that were handed to the library, and those that its threads began to serve.
    let handedOver = Atomic(0)
    let begun = Atomic(0)

    init(site: Router, isTLS: Bool) {
      self.site = site
      self.isTLS = isTLS
    }

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
  /// ``Context/begun`` when ``forgetLost()`` last looked.
  private let lastBegun = Atomic(0)

  /// TLS 1.2 and later. Old clients of the registry are as old as its first release.
  private static let priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

  /// Bytes for a connection's header and buffers.
  private static let connectionMemory = 16 * 1024

  /// Serves the connections that it is given from now on; `nil` if it does not start.
  init?(identity: ListenerIdentity?, site: Router) {
    let context = Context(site: site, isTLS: identity != nil)
    guard let pointer = Self.start(identity, context) else { return nil }
    self.pointer = pointer
    self.context = context
  }

  /// How many connections are open, with those that a thread has yet to begin with.
  var openConnections: Int { Int(pp_mhd_open_connections(pointer)) + notBegun }

  private var notBegun: Int {
    let begun = context.begun.load(ordering: .relaxed)
    return max(0, context.handedOver.load(ordering: .relaxed) - begun)
  }

  /// Counts no more what the library has dropped without a word, as it does out of memory: else each
  /// would take a place for ever. Called every now and then, from one thread.
  func forgetLost() {
    let begun = context.begun.load(ordering: .relaxed)
    let stands = lastBegun.exchange(begun, ordering: .relaxed) == begun
    if stands { context.handedOver.subtract(notBegun, ordering: .relaxed) }
  }

  /// From now on each answer is its connection's last.
  func retire() { context.isRetired.store(true, ordering: .relaxed) }

  /// Serves one more connection, and closes its socket if it does not take it.
  func add(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) {
    context.handedOver.add(1, ordering: .relaxed)
    if MHD_add_connection(pointer, descriptor, address, length) != .YES {
      context.handedOver.subtract(1, ordering: .relaxed)
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
    if HeaderLayout.isKnown { flags |= MHD_USE_ERROR_LOG.rawValue }
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
    let limits = context.site.limits
    let closure = Unmanaged.passUnretained(context).toOpaque()
    func callback<Function>(_ option: MHD_OPTION, _ function: Function) -> MHD_OptionItem {
      item(option, unsafeBitCast(function, to: Int.self), closure)
    }
    var options: [MHD_OptionItem] = []
    // First, or what happens while starting is printed.
    if HeaderLayout.isKnown { options.append(callback(.EXTERNAL_LOGGER, FaultyHeadGuard.logged)) }
    options += [
      // The limit itself is ``ConnectionIntake``'s, which lets others wait; the library would close them.
      item(.CONNECTION_LIMIT, 2 * limits.connections),
      item(.CONNECTION_MEMORY_LIMIT, connectionMemory),
      // Where the lines' layout is known the head is judged here, and better: see ``HeaderReader``.
      item(.STRICT_FOR_CLIENT, HeaderLayout.isKnown ? 0 : 1),
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
