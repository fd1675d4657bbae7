import CanonicalJSON
import RegistryServer
import SslPinningPlatform

/// Keeps a server's log lines, read as JSON.
final class LogCollector: Sendable {
  private let lines = Locked<[JSONObject]>([])

  /// A log that ends up here.
  var log: ServerLog {
    ServerLog(
      level: .debug, now: { 0 },
      sink: { [self] line in
        let object = (try? JSONValue(parsing: line))?.objectValue ?? JSONObject()
        lines.withLock { $0.append(object) }
      })
  }

  /// The events of a name.
  func events(_ name: String) -> [JSONObject] {
    lines.withLock { lines in lines.filter { $0["event"]?.stringValue == name } }
  }
}
