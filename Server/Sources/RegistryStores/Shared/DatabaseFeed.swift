import SslPinningPlatform
import SslPinningRules
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

/// Whether a database is on this machine. A link that leaves it is read and changed by whoever stands between.
enum DatabaseHost {
  /// Whether a name or an address stays here: `localhost`, 127.0.0.0/8 and `::1`. Other names are looked up, and
  /// whoever answers says where they lead.
  static func isHere(_ host: String) -> Bool {
    guard case .address(let address)? = try? HostName(host) else { return host == "localhost" }
    let bytes = address.bytes
    return bytes.count == 4
      ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
  }
}

/// Takes numbers and bytes off the front, never more than there is.
struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  /// The next number, big-endian.
  mutating func integer<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
    bytes(Number.bitWidth / 8)?.reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  /// The next bytes.
  mutating func bytes(_ count: Int) -> [UInt8]? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
}

extension [UInt8] {
  /// Adds a number, big-endian.
  mutating func append(bigEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }
}
