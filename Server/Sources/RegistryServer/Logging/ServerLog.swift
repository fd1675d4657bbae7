import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// Writes events: `level`, `time`, `event`, then what belongs to the event. As JSON or as text, one
/// line each, unless they are written for people to read (``LogStyle``).
///
/// - Never a secret: no caller passes key material, and configurations are printed masked.
/// - An event is one `write`, so events of several threads never mix. What comes from outside (a
///   certificate's subject, a peer's error) is escaped and cannot begin a line of its own.
/// - Whoever logs never waits. Lines that a reader does not take are dropped and counted, and `log_lines_dropped`
///   says how many.
/// - Copies share level and style: ``change(level:format:isPretty:)`` is in force for all of them.
public struct ServerLog: Sendable {
  private struct Style {
    var level: LogLevel
    var style: LogStyle
  }

  private let style: Locked<Style>
  private let sink: @Sendable ([UInt8]) -> Void
  private let now: @Sendable () -> Int64
  private let writer: LogWriter?

  /// A log.
  ///
  /// - Parameters:
  ///   - level: the least important level that is written.
  ///   - format: how an event is written.
  ///   - isPretty: whether it is written for people to read, on several lines.
  ///   - now: Unix time in seconds.
  ///   - sink: takes one event at a time, its line break included.
  public init(
    level: LogLevel, format: LogFormat = .json, isPretty: Bool = false,
    now: @escaping @Sendable () -> Int64, sink: @escaping @Sendable ([UInt8]) -> Void
  ) {
    style = Locked(Style(level: level, style: LogStyle(format: format, isPretty: isPretty)))
    self.sink = sink
    self.now = now
    writer = nil
  }

  /// A log to a file descriptor, which stays open.
  ///
  /// - Parameter limit: the most bytes that wait for whoever reads.
  init(
    to descriptor: Int32, level: LogLevel, format: LogFormat, isPretty: Bool, limit: Int = 1 << 20,
    now: @escaping @Sendable () -> Int64
  ) {
    let style = Locked(Style(level: level, style: LogStyle(format: format, isPretty: isPretty)))
    let writer = LogWriter(to: descriptor, limit: limit) { count in
      style.withLock { $0 }.style.bytes(
        .warn, RFC3339.text(now()), "log_lines_dropped", [("count", "\(count)")])
    }
    (self.style, self.now, self.writer) = (style, now, writer)
    sink = { writer.append($0) }
  }

  /// A log to standard error.
  public static func standardError(
    level: LogLevel = .info, format: LogFormat = .json, isPretty: Bool = false
  ) -> ServerLog {
    ServerLog(
      to: STDERR_FILENO, level: level, format: format, isPretty: isPretty,
      now: { Int64(time(nil)) })
  }

  /// How many lines were dropped so far.
  var droppedLines: Int { writer?.droppedLines ?? 0 }

  /// Waits until all lines are written, at most so many seconds. What is logged afterwards is dropped.
  public func close(within seconds: Double = 1) { writer?.close(within: seconds) }

  /// A log that forgets everything.
  public static let silent = ServerLog(level: .error, now: { 0 }, sink: { _ in })

  /// From now on writes at another level and in another style.
  public func change(level: LogLevel, format: LogFormat, isPretty: Bool) {
    style.withLock {
      $0 = Style(level: level, style: LogStyle(format: format, isPretty: isPretty))
    }
  }

  /// Writes one event.
  ///
  /// - Parameters:
  ///   - name: a short snake_case name, stable for whoever searches logs.
  ///   - fields: further members; `level`, `time` and `event` are taken.
  public func event(
    _ level: LogLevel, _ name: String,
    _ fields: @autoclosure () -> KeyValuePairs<String, String> = [:]
  ) {
    event(level, name, fields: fields().map { ($0.key, $0.value) })
  }

  /// Writes one event with fields whose names are not known beforehand.
  func event(
    _ level: LogLevel, _ name: String, fields: @autoclosure () -> [(name: String, value: String)]
  ) {
    let style = style.withLock { $0 }
    guard level >= style.level else { return }
    sink(style.style.bytes(level, RFC3339.text(now()), name, fields()))
  }
}

extension ServerLog {
  /// Tells that the machine's clock is doubted, came back, or is believed as it is. Lines of the log have the
  /// machine's own time all the while, as those of its other programs have.
  func note(_ change: SteadyTime.Change) {
    switch change {
    case .doubted(let wall, let time):
      event(
        .warn, "clock_doubted",
        [
          "clock": RFC3339.text(wall), "time": RFC3339.text(time),
          "message":
            "the machine's clock does not agree with the time that passed; the server goes on by"
            + " its last time; hint: put the clock right, or say that it is: ssl-pinning admin adopt-clock",
        ])
    case .returned(let time):
      event(.info, "clock_returned", ["time": RFC3339.text(time)])
    case .adopted(let time, let before):
      event(
        .warn, "clock_adopted", ["time": RFC3339.text(time), "before": RFC3339.text(before)])
    }
  }
}

extension KeyEvent {
  /// How it is logged. Whatever keeps a legitimate key from being published, or looks like
  /// somebody in the middle, is a warning: so is every key that is published though nobody announced it.
  var level: LogLevel {
    switch self {
    case .published(_, isFirst: true), .retired, .activated(_, isUnderNewCA: false): .info
    case .published, .held, .activated, .deniedKeySeen, .deniedAuthoritySeen, .caMissing, .waiting,
      .lapsed,
      .tooManyCandidates, .refused,
      .unreachable, .withdrawn, .undecided, .vantageBlocked:
      .warn
    }
  }
}

extension ServerLog {
  /// Writes what is in effect, secrets masked, as one event; warnings follow as events of their own.
  ///
  /// Of thousands of endpoints the number is enough here; `config check` lists them.
  public func event(_ effective: EffectiveConfiguration) {
    let fields = effective.values.map { value in
      let documents = effective.configuration.documents
      let text =
        value.setting == .keys
        ? "endpoints: \(documents.reduce(0) { $0 + $1.endpoints.count }), documents: \(documents.count)"
        : value.text
      return (
        name: value.setting.rawValue,
        value: value.origin == .standard ? text : "\(text) (\(value.origin))"
      )
    }
    event(.info, "configuration", fields: [("file", effective.file ?? "none")] + fields)
    for warning in effective.warnings {
      event(.warn, "configuration_warning", ["message": warning])
    }
  }
}
