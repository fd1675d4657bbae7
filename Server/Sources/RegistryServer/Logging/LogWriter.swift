import CanonicalJSON
import Foundation
import SslPinningPlatform
import TLSTools

/// Writes lines to a file descriptor on a thread of its own: nobody who logs waits for whoever reads the log.
///
/// - Lines wait in a queue of bounded size. What comes beyond that is dropped and counted, and a line tells
///   how many are missing once the queue moves again.
/// - A reader that hangs keeps this thread, and nothing else. One that left costs lines, and nothing else.
///
/// Unchecked: everything but the descriptor is touched under the condition's lock.
package final class LogWriter: @unchecked Sendable {
  private let descriptor: Int32
  private let limit: Int
  private let note: @Sendable (Int) -> [UInt8]
  private let changed = NSCondition()
  private var queue: [[UInt8]] = []
  private var bytes = 0
  private var untold = 0
  private var dropped = 0
  private var isStarted = false
  private var isWriting = false
  private var isClosed = false

  /// - Parameters:
  ///   - descriptor: where lines go; it stays open.
  ///   - limit: the most bytes that wait; as many may be on their way out.
  ///   - note: the line that says how many are missing.
  package init(
    to descriptor: Int32, limit: Int = 1 << 20, note: @escaping @Sendable (Int) -> [UInt8]
  ) {
    self.descriptor = descriptor
    self.limit = limit
    self.note = note
  }

  /// How many lines were dropped so far.
  var droppedLines: Int { changed.withLock { dropped } }

  /// Has a line written after those before it, or drops it. Never waits.
  package func append(_ line: [UInt8]) {
    changed.withLock {
      guard bytes + line.count <= limit, !isClosed else {
        dropped += 1
        untold += 1
        return
      }
      queue.append(line)
      bytes += line.count
      if !isStarted {
        isStarted = true
        BackgroundThread.start("log") { [self] in
          while let (lines, missing) = next() { write(lines, missing: missing) }
        }
      }
      changed.signal()
    }
  }

  /// Takes no more lines, and waits until all are written, at most so many seconds.
  package func close(within seconds: Double) {
    let end = Date(timeIntervalSinceNow: seconds)
    changed.withLock {
      isClosed = true
      changed.broadcast()
      while isWriting || !queue.isEmpty, changed.wait(until: end) {}
    }
  }

  /// All that waits, and how many lines are missing behind it; `nil` once there will be no more.
  private func next() -> (lines: [[UInt8]], missing: Int)? {
    changed.withLock {
      isWriting = false
      changed.broadcast()
      while queue.isEmpty {
        if isClosed { return nil }
        changed.wait()
      }
      defer { (queue, bytes, untold, isWriting) = ([], 0, 0, true) }
      return (queue, untold)
    }
  }

  private func write(_ lines: [[UInt8]], missing: Int) {
    let written = lines.prefix(while: write).count
    guard written == lines.count, missing == 0 || write(note(missing)) else {
      return changed.withLock {
        dropped += lines.count - written
        untold += lines.count - written + missing
      }
    }
  }

  /// One line in one write where the system takes it whole, so that processes which share the descriptor do not
  /// mix theirs. False: nobody reads any more.
  private func write(_ line: [UInt8]) -> Bool {
    var rest = line[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Somebody made the descriptor not wait: wait here.
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&wanted, 1, 1000)
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}

/// How an event becomes bytes, its line break included.
///
///     {"event":"key_added","level":"info","pin":"…","time":"2025-12-14T21:02:11Z"}
///     2025-12-14T21:02:11Z INFO  key_added pin=…
///
/// and pretty:
///
///     {
///       "level": "info",
///       …
///     }
///     2025-12-14T21:02:11Z INFO  key_added
///       pin     …
struct LogStyle: Sendable, Hashable {
  var format: LogFormat
  var isPretty: Bool

  func bytes(
    _ level: LogLevel, _ time: String, _ name: String, _ fields: [(name: String, value: String)]
  ) -> [UInt8] {
    switch format {
    case .json:
      let members = [("level", level.rawValue), ("time", time), ("event", name)] + fields
      return isPretty ? Self.indented(members) : Self.line(members)
    case .text:
      let head = "\(time) \(Self.padded(level.rawValue.uppercased(), to: 5)) \(Self.escaped(name))"
      return Array((head + (isPretty ? Self.rows(fields) : Self.pairs(fields)) + "\n").utf8)
    }
  }

  private static func line(_ members: [(String, String)]) -> [UInt8] {
    JSONValue.object(JSONObject(members.map { ($0.0, .string($0.1)) })).canonicalBytes + [0x0a]
  }

  private static func indented(_ members: [(String, String)]) -> [UInt8] {
    // Through an object, so that a name stands once here too.
    let object = JSONObject(members.map { ($0.0, .string($0.1)) })
    var out = Array("{\n".utf8)
    for (index, member) in object.enumerated() {
      out += Array("  ".utf8) + JSONValue.string(member.key).canonicalBytes + Array(": ".utf8)
      out += member.value.canonicalBytes
      out += Array((index == object.count - 1 ? "\n" : ",\n").utf8)
    }
    return out + Array("}\n".utf8)
  }

  private static func pairs(_ fields: [(name: String, value: String)]) -> String {
    fields.map { " \(escaped($0.name))=\(quoted($0.value))" }.joined()
  }

  private static func rows(_ fields: [(name: String, value: String)]) -> String {
    let width = fields.map { escaped($0.name).unicodeScalars.count }.max() ?? 0
    return fields.map { "\n  \(padded(escaped($0.name), to: width))  \(escaped($0.value))" }
      .joined()
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.unicodeScalars.count))
  }

  /// A value that a reader of `name=value` can take apart again.
  private static func quoted(_ value: String) -> String {
    let isPlain =
      !value.isEmpty
      && value.unicodeScalars.allSatisfy { $0 != " " && $0 != "\"" && $0 != "=" && $0 != "\\" }
    let text = escaped(value)
    return isPlain && text == value ? value : "\"\(escaped(value, quotes: true))\""
  }

  /// A text that stays on its line and moves no cursor.
  private static func escaped(_ text: String, quotes: Bool = false) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": out += "\\n"
      case "\r": out += "\\r"
      case "\t": out += "\\t"
      case "\\" where quotes: out += "\\\\"
      case "\"" where quotes: out += "\\\""
      default:
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned,
          .surrogate:
          out += scalar.escaped(asASCII: true)
        default: out.unicodeScalars.append(scalar)
        }
      }
    }
    return out
  }
}
