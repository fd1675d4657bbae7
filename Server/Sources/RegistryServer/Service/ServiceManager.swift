import Foundation
import RegistryCore
import SslPinningPlatform

/// The service manager that started the process, such as systemd, by the protocol of sd_notify(3): a datagram for each
/// message to the socket that `NOTIFY_SOCKET` names.
///
/// - A sign of life is sent only while the watching goes on (``Supervision``): a server that is stuck is started
///   anew, with what its store has. A network that is slow, and a store that does not answer, restart nothing.
/// - Nothing here fails: a manager that cannot be reached finds out by itself.
public struct ServiceManager: Sendable {
  /// What happens to the service.
  enum Event: Sendable {
    /// It has started, or has read its configuration again.
    case ready
    case reloading
    case stopping
    case alive
  }

  /// A path, or a name in the abstract namespace with a zero byte in front.
  private let socketName: [UInt8]
  /// Milliseconds within which the manager wants a sign of life; `nil` if it wants none.
  let deadline: Int64?

  /// The manager that these variables name; `nil` if nobody is to be told.
  ///
  /// - Parameter environment: that of the process by default.
  public init?(environment: [String: String] = ProcessInfo.processInfo.environment) {
    guard let name = environment["NOTIFY_SOCKET"], let first = name.utf8.first, name.utf8.count > 1
    else { return nil }
    switch first {
    case UInt8(ascii: "/"): socketName = Array(name.utf8)
    case UInt8(ascii: "@"): socketName = [0] + name.utf8.dropFirst()
    default: return nil
    }
    let isMeant = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
    let microseconds = isMeant ? environment["WATCHDOG_USEC"].flatMap { Int64($0) } : nil
    deadline = microseconds.flatMap { $0 > 0 ? max(2, $0 / 1000) : nil }
  }

  /// Tells the manager.
  ///
  /// - Parameter status: one line for people, as `systemctl status` shows it.
  func notify(_ event: Event, status: String? = nil) {
    var lines: [String]
    switch event {
    case .ready: lines = ["READY=1"]
    case .reloading:
      lines = ["RELOADING=1", "MONOTONIC_USEC=\(SystemClock().uptime() * 1000)"]
    case .stopping: lines = ["STOPPING=1"]
    case .alive: lines = ["WATCHDOG=1"]
    }
    if let status { lines.append("STATUS=\(status)") }
    send(lines)
  }

  fileprivate func send(_ lines: [String]) {
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // A manager that is busy is waited for, and one that hangs is not.
    var patience = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard socketName.count < room else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socketName) }
    // An abstract name is as long as it is, zero bytes included.
    let length = MemoryLayout<sockaddr_un>.size - room + socketName.count
    let message = Array(lines.joined(separator: "\n").utf8)
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        sendto(
          descriptor, message, message.count, Int32(MSG_NOSIGNAL), pointer,
          socklen_t(length))
      }
    }
  }
}

/// Looks after the watching, whether a service manager started the process or not.
///
/// - That it is stuck is told once, in the log, by a metric and to the manager, and so is that it goes on again.
/// - A manager that wants signs of life gets two for each deadline, and none while the watching is stuck.
/// - If no probe is begun any more, the leadership is given back with the second look in a row that finds it so: a process that
///   merely stood still goes on by then. A single probe that hangs keeps no others, so this server goes on leading.
struct Supervision {
  let manager: ServiceManager?
  let clock: any ServerClock
  let log: ServerLog
  let metrics: ServerMetrics
  /// What the watching is stuck in, at a reading of the clock.
  let fault: @Sendable (_ now: Int64) -> MonitorProgress.Fault?
  /// Has another server lead.
  let giveBack: @Sendable () -> Void

  private var isStuck = false
  /// How many looks in a row found that no probe is begun.
  private var idleLooks = 0

  /// Milliseconds from one look to the next if no manager says otherwise.
  private static let pause: Int64 = 15_000

  init(
    _ manager: ServiceManager?, clock: any ServerClock, log: ServerLog, metrics: ServerMetrics,
    fault: @escaping @Sendable (_ now: Int64) -> MonitorProgress.Fault?,
    giveBack: @escaping @Sendable () -> Void
  ) {
    (self.manager, self.clock, self.log, self.metrics) = (manager, clock, log, metrics)
    (self.fault, self.giveBack) = (fault, giveBack)
  }

  /// Goes on until the task is cancelled.
  mutating func run() async {
    let pause = manager?.deadline.map { $0 / 2 } ?? Self.pause
    repeat { look() } while (try? await clock.sleep(milliseconds: pause)) != nil
  }

  /// Looks once.
  mutating func look() {
    let fault = fault(clock.uptime())
    metrics.watching(isStuck: fault != nil)
    guard let fault else {
      if isStuck { log.event(.info, "watching_goes_on") }
      if manager?.deadline != nil {
        manager?.notify(.alive, status: isStuck ? "watching again" : nil)
      }
      (isStuck, idleLooks) = (false, 0)
      return
    }
    if !isStuck {
      let isRestarted = manager?.deadline != nil
      log.event(
        .error, "watching_stuck",
        [
          "reason": "\(fault)",
          "message": isRestarted
            ? "the service manager is to start the server anew"
            : "new keys may not be seen; hint: restart the server",
        ])
      manager?.send(["STATUS=stuck: \(fault)"])
    }
    isStuck = true
    if case .idle = fault { idleLooks += 1 } else { idleLooks = 0 }
    if idleLooks == 2 { giveBack() }
  }
}
