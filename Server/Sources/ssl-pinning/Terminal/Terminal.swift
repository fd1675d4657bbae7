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
