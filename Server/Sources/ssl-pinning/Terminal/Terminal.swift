import CanonicalJSON
import Foundation

/// Standard output and standard error.
///
/// - Results go to standard output, whole; everything said about them goes to standard error.
/// - A reader that has gone away (`… | head -1`) ends the process quietly, as it does every filter.
///   Sockets must not do that, so SIGPIPE is ignored and a closed pipe is told by `write` alone.
/// - Whoever starts the tool with closed streams gets an error, never a result inside some other
///   file that happened to get the number.
enum Terminal {
  /// To be called before anything is opened.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    // Whoever starts the tool may ignore it: then a command that failed would count as done.
    signal(SIGCHLD, SIG_DFL)
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) == -1 {
      // `open` takes the lowest free number, which is this one. It is opened the wrong way round, so
      // that its use fails as the use of a closed one.
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Writes a result.
  static func write(_ bytes: [UInt8]) throws(CommandFailure) {
    do throws(Failure) { try write(bytes, to: STDOUT_FILENO) } catch {
      guard error.code == EPIPE else {
        throw .couldNotFindOut(
          "cannot write to standard output: \(Self.reason(error.code))")
      }
      endAsBrokenPipe()
    }
  }

  /// Ends the process as the signal would have done that ``prepare()`` turned off.
  private static func endAsBrokenPipe() -> Never {
    signal(SIGPIPE, SIG_DFL)
    // Threads of queues block signals, and the answer of a request is written from one.
    var pipe = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &pipe, nil)
    raise(SIGPIPE)
    _exit(128 + SIGPIPE)
  }

  /// Writes a result as text; a line break is added to the last line.
  static func write(line text: String) throws(CommandFailure) {
    try write(Array("\(text)\n".utf8))
  }

  /// Says something to the user. What the text quotes may come from anybody: it cannot move the
  /// cursor. A secret that stands in it is hidden.
  static func say(_ text: String) {
    try? write(Array("\(Secrets.hidden(in: text).printable)\n".utf8), to: STDERR_FILENO)
  }

  /// Says what nothing is refused for.
  static func warn(_ texts: [String]) {
    for text in texts { say("warning: \(text)") }
  }

  /// The system's words for an errno, in our case.
  static func reason(_ code: Int32) -> String { String(cString: strerror(code)).lowercased() }

  private struct Failure: Error {
    let code: Int32
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let (count, code) = rest.withUnsafeBytes { buffer in
        (Foundation.write(descriptor, buffer.baseAddress, buffer.count), errno)
      }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if count < 0, code == EAGAIN {
        // Somebody made the terminal non-blocking for all of us.
        var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&wait, 1, -1)
      } else if count == 0 || code != EINTR {
        throw Failure(code: code)
      }
    }
  }
}

extension String {
  /// As much of it as a message needs to quote; of a private key nothing.
  var shortened: String {
    guard !InputFile.isText(self) else { return "…" }
    return unicodeScalars.count <= 100 ? self : "\(prefix(100))…"
  }

  /// The text with everything escaped that a terminal would obey or hide.
  var printable: String {
    guard unicodeScalars.contains(where: \.isUnprintable) else { return self }
    return unicodeScalars.map { $0.isUnprintable ? $0.escaped(asASCII: true) : String($0) }.joined()
  }
}

extension Unicode.Scalar {
  fileprivate var isUnprintable: Bool {
    guard self != "\n" else { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
    default: false
    }
  }
}

extension Terminal {
  /// Writes a result as one line of JSON.
  static func write(_ json: JSONValue) throws(CommandFailure) {
    try write(json.canonicalBytes + [UInt8(ascii: "\n")])
  }
}

extension JSONValue {
  /// An object of these members.
  static func members(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
    .object(JSONObject(members.map { ($0.key, $0.value) }))
  }

  /// The text, or `null`.
  static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
}

/// Rows of text in columns, for people.
struct TextTable {
  private var rows: [[String]]

  init(header: [String] = []) { rows = header.isEmpty ? [] : [header] }

  /// Adds a row; cells cannot break out of their line.
  mutating func add(_ row: [String]) {
    rows.append(row.map { $0.printable.replacingOccurrences(of: "\n", with: "\\n") })
  }

  /// The lines, the last column not padded.
  var text: String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.dropFirst(column).first?.count ?? 0 }.max() ?? 0
    }
    return rows.map { row in
      zip(row, widths).enumerated().map { index, cell in
        index == row.count - 1
          ? cell.0 : cell.0 + String(repeating: " ", count: cell.1 - cell.0.count + 2)
      }.joined()
    }.joined(separator: "\n")
  }
}

/// Moments for people: RFC 3339 in UTC.
func dateText(_ unixSeconds: Int64) -> String {
  guard (0...253_402_300_799).contains(unixSeconds) else { return "\(unixSeconds)" }
  return Date(timeIntervalSince1970: Double(unixSeconds)).ISO8601Format()
}

/// Puts into the tool's words what a transport says in its own, where a user can do something about
/// it. Everything else is passed on as it is.
enum TransportReason {
  /// - Parameters:
  ///   - text: libcurl's or OpenSSL's words.
  ///   - url: what was asked for.
  static func text(_ text: String, at url: String) -> String {
    if text.contains("wrong version number") || text.contains("packet length too long") {
      return "no TLS on \(endpoint(url)); hint: is the port right, and is it an https server?"
    }
    // libcurl refuses the next hop by its protocol: the first one is checked before it is asked.
    if text.hasPrefix("Protocol \""),
      text.contains("not supported") || text.contains("disabled")
    {
      let scheme =
        text.split(separator: "\"").dropFirst().first.map(String.init) ?? "another scheme"
      return "\(endpoint(url)) redirects to \(scheme); hint: redirects are followed to https only"
    }
    if text.contains("SSL certificate problem") {
      // For dates and names another CA is no cure.
      let lacksAnchor = ["local issuer", "self-signed", "self signed"].contains {
        text.contains($0)
      }
      return "\(endpoint(url)) is not trusted: \(text.lowercased())"
        + (lacksAnchor ? "; hint: --ca FILE names a CA of your own" : "")
    }
    // libcurl's sentences begin with a capital; an abbreviation stays.
    let second = text.dropFirst().first
    return second?.isLowercase == true ? text.prefix(1).lowercased() + text.dropFirst() : text
  }

  private static func endpoint(_ url: String) -> String {
    guard let parts = URLComponents(string: url), let host = parts.host else { return "the server" }
    return "\(host):\(parts.port ?? (parts.scheme?.lowercased() == "http" ? 80 : 443))"
  }
}
