import CMicroHTTPD
import Foundation
import Synchronization

/// One daemon of libmicrohttpd, from its start to its stop.
///
/// Unchecked: the functions that are called with ``pointer`` may be called from any thread.
final class HTTPDaemon: @unchecked Sendable {
  /// What the callbacks reach through their closure pointer.
  final class Context: Sendable {
    let site: HTTPSite
    let isTLS: Bool
    /// Whether another daemon has taken over, so that each answer is its connection's last.
    let isRetired = Atomic(false)

    init(site: HTTPSite, isTLS: Bool) {
      self.site = site
      self.isTLS = isTLS
    }

    /// The answer as it is sent on this connection.
    func final(_ response: HTTPResponse, of connection: HTTPConnection) -> HTTPResponse {
      let isLast =
        connection.isLast || isRetired.load(ordering: .relaxed)
        || site.isStopping.load(ordering: .relaxed)
      return isLast ? response.closing : response
    }
  }

  private let pointer: OpaquePointer
  private let context: Context
  private let listening: Int32
  /// The listening socket once the library has given it back; closed when its threads are gone.
  private let released = Atomic<Int32>(-1)

  /// TLS 1.2 and later. Old clients of the registry are as old as its first release.
  private static let priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

  /// Bytes for a connection's header and buffers.
  private static let connectionMemory = 16 * 1024

  /// Serves connections to a listening socket from now on, and closes it when it stops; `nil`, and
  /// the socket stays, where it does not start.
  init?(listening: Int32, isLoopback: Bool, identity: ListenerIdentity?, site: HTTPSite) {
    let context = Context(site: site, isTLS: identity != nil)
    guard let pointer = Self.start(listening, isLoopback, identity, context) else { return nil }
    self.pointer = pointer
    self.context = context
    self.listening = listening
  }

  /// The listening socket once more, for a daemon that takes over; -1 where there is no descriptor.
  func duplicateListening() -> Int32 { fcntl(listening, F_DUPFD_CLOEXEC, 0) }

  /// How many connections are open.
  var openConnections: Int { Int(pp_mhd_open_connections(pointer)) }

  /// Accepts no more, and tells the listening socket, or -1. Do not close it: a thread of the library that
  /// has yet to hear of this takes it out of its epoll set, and ends the process where it is gone.
  func quiesce() -> Int32 {
    let socket = MHD_quiesce_daemon(pointer)
    released.store(socket, ordering: .relaxed)
    return socket
  }

  /// From now on each answer is its connection's last.
  func retire() { context.isRetired.store(true, ordering: .relaxed) }

  /// Serves one more connection, whose socket it closes where it does not take it.
  func add(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) {
    _ = MHD_add_connection(pointer, descriptor, address, length)
  }

  /// Closes every connection and ends the threads. Blocks; called once.
  func stop() {
    MHD_stop_daemon(pointer)
    let socket = released.exchange(-1, ordering: .relaxed)
    if socket >= 0 { close(socket) }
  }

  private static func start(
    _ listening: Int32, _ isLoopback: Bool, _ identity: ListenerIdentity?, _ context: Context
  ) -> OpaquePointer? {
    var options = options(listening, isLoopback, context)
    var flags = MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
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

  private static func options(
    _ listening: Int32, _ isLoopback: Bool, _ context: Context
  ) -> [MHD_OptionItem] {
    let limits = context.site.limits
    let closure = Unmanaged.passUnretained(context).toOpaque()
    func callback<Function>(_ option: MHD_OPTION, _ function: Function) -> MHD_OptionItem {
      item(option, unsafeBitCast(function, to: Int.self), closure)
    }
    var options: [MHD_OptionItem] = []
    // First, or what happens while starting is printed.
    if HeaderLayout.isKnown { options.append(callback(.EXTERNAL_LOGGER, FaultyHeadGuard.logged)) }
    options += [
      item(.LISTEN_SOCKET, Int(listening)),
      item(.CONNECTION_LIMIT, limits.connections),
      item(.CONNECTION_MEMORY_LIMIT, connectionMemory),
      // Where the lines' layout is known the head is judged here, and better: see ``HeaderReader``.
      item(.STRICT_FOR_CLIENT, HeaderLayout.isKnown ? 0 : 1),
      callback(.NOTIFY_CONNECTION, HTTPCallbacks.connectionChanged),
      callback(.NOTIFY_COMPLETED, HTTPCallbacks.requestCompleted),
      callback(.URI_LOG_CALLBACK, HTTPCallbacks.targetReceived),
      callback(.UNESCAPE_CALLBACK, HTTPCallbacks.leaveEscaped),
    ]
    if !isLoopback { options.append(item(.PER_IP_CONNECTION_LIMIT, limits.connectionsPerAddress)) }
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
