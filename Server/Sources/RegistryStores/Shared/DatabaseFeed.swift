import SslPinningPlatform
import TLSTools

/// A connection that tells of changed records.
protocol ChangeSource: AnyObject {
  /// Its socket; -1 once it has none.
  var socket: Int32 { get }
  /// The names that have come, without waiting for more.
  func names() throws(StoreError) -> [String]
  /// Asks the database whether it is still there.
  func probe() throws(StoreError)
}

/// Listens to a database on a thread of its own and tells a hub. A connection that ends is opened
/// again, and then all records may have changed: nobody knows what was missed.
final class DatabaseFeed: Sendable {
  /// Milliseconds between two attempts to connect.
  private static let pause = 500
  /// Milliseconds of silence after which the connection is tried.
  private static let silence = 5000

  private let wakeup = SelfPipe()

  /// - Parameter connect: opens a connection that listens already.
  init(hub: ChangeHub, connect: @escaping @Sendable () throws(StoreError) -> any ChangeSource) {
    BackgroundThread.start("change feed") { [wakeup] in
      while true {
        // What broke it is seen by the calls that people wait for; here it is tried again.
        if let source = try? connect() {
          hub.tell("")
          try? Self.listen(to: source, wakeup) { hub.tell($0) }
        }
        if wakeup.wait(milliseconds: Self.pause) == .woken { return }
      }
    }
  }

  deinit { wakeup.wake() }

  /// Ends the thread soon.
  func stop() { wakeup.wake() }

  private static func listen(
    to source: any ChangeSource, _ wakeup: SelfPipe, tell: (String) -> Void
  ) throws(StoreError) {
    while true {
      switch wakeup.wait(for: source.socket, milliseconds: silence) {
      case .woken: return
      case .ready: break
      case .timedOut: try source.probe()
      }
      for name in try source.names() { tell(name) }
    }
  }
}
