import CanonicalJSON
import Foundation
import Pinning

/// Writes events as JSON, one line each: `level`, `time`, `event`, then what belongs to the event.
///
/// - Never a secret: no caller passes key material, and nothing here prints whole configurations.
/// - A line is one `write`, so lines of several threads never mix. What comes from outside (a
///   certificate's subject, a peer's error) is JSON-escaped and cannot begin a line of its own.
public struct ServerLog: Sendable {
  private let level: LogLevel
  private let sink: @Sendable ([UInt8]) -> Void
  private let now: @Sendable () -> Int64

  /// A log.
  ///
  /// - Parameters:
  ///   - level: the least important level that is written.
  ///   - now: Unix time in seconds.
  ///   - sink: takes one line at a time, its line break included.
  public init(
    level: LogLevel, now: @escaping @Sendable () -> Int64,
    sink: @escaping @Sendable ([UInt8]) -> Void
  ) {
    self.level = level
    self.sink = sink
    self.now = now
  }

  /// A log to standard error.
  public static func standardError(level: LogLevel = .info) -> ServerLog {
    ServerLog(
      level: level, now: { Int64(time(nil)) },
      sink: { line in
        // A closed or full standard error must not stop the server: the outcome is not looked at.
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      })
  }

  /// A log that forgets everything.
  public static let silent = ServerLog(level: .error, now: { 0 }, sink: { _ in })

  /// Writes one event.
  ///
  /// - Parameters:
  ///   - name: a short snake_case name, stable for whoever searches logs.
  ///   - fields: further members; `level`, `time` and `event` are taken.
  public func event(
    _ level: LogLevel, _ name: String, _ fields: KeyValuePairs<String, String> = [:]
  ) {
    guard level >= self.level else { return }
    var members: [(String, JSONValue)] = [
      ("level", .string(level.rawValue)), ("time", .string(RFC3339.text(now()))),
      ("event", .string(name)),
    ]
    members += fields.map { ($0.key, .string($0.value)) }
    sink(JSONValue.object(JSONObject(members)).canonicalBytes + [0x0a])
  }
}
