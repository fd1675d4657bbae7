import CSslPinningShims
import Foundation

/// Runs a program to its end: bytes in on standard input, bytes out on standard output.
///
/// - There is no shell, and the program gets none of this process's descriptors, nor any variable of the server's own
///   configuration, which may be a password.
/// - It has until its deadline. Whatever it started in its process group is killed then, and also when it ends before:
///   nothing of it goes on, but for what has become a session of its own by then.
/// - What it writes is bounded: too much on standard output ends it, and of standard error the beginning is kept.
package enum ProgramRun {
  /// What came of it.
  package struct End {
    let output: [UInt8]
    /// The beginning of standard error, in one line that can be printed.
    package let errors: String
    /// How it ended, in words; `nil`: with 0.
    package let failure: String?
  }

  /// Why it did not come to its own end.
  package enum Fault: Error, Equatable {
    /// It could not be started; the reason is the system's.
    case notStarted(reason: String)
    /// Its time was up, and it was killed.
    case late(errors: String)
    /// It wrote more than it may on standard output.
    case tooMuch(limit: Int)
  }

  private static let mostErrors = 4096
  /// How much of standard error is told.
  private static let toldErrors = 200
  /// How often the program is asked whether it ended, in milliseconds: something that it left behind may hold its
  /// output open.
  private static let beat: Int64 = 20

  /// Waits for the program, and blocks the thread meanwhile.
  ///
  /// - Parameters:
  ///   - arguments: the program, found in PATH unless it has a slash, and what it is called with.
  ///   - milliseconds: how long it may take.
  ///   - leaving: for how many milliseconds what it started may still become a session of its own, once it ended. The
  ///     parent of daemon(3) ends before its child does that.
  ///   - limit: the most that it may write on standard output; `nil`: as much as it likes, and nobody reads it.
  package static func run(
    _ arguments: [String], input: [UInt8], milliseconds: Int64, leaving: UInt32 = 0,
    output limit: Int?
  ) throws(Fault) -> End {
    let deadline = Deadline.after(milliseconds: milliseconds)
    let started: Started
    do throws(POSIXCode) { started = try start(arguments, input) } catch {
      throw .notStarted(reason: error.reason)
    }
    var (output, errors) = (Drain(started.output), Drain(started.errors))
    defer {
      close(started.output)
      close(started.errors)
    }
    var hasEnded = false
    let most = limit ?? .max
    while !hasEnded, !deadline.hasPassed, output.bytes.count <= most {
      var descriptors = [output.descriptor, errors.descriptor].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      poll(&descriptors, nfds_t(descriptors.count), Int32(min(beat, deadline.millisecondsLeft)))
      // Before the pipes are read: what it wrote before its end is in them by then.
      hasEnded = pp_command_has_ended(started.process) != 0
      output.read(keeping: limit.map { $0 + 1 } ?? 0)
      errors.read(keeping: mostErrors)
    }
    if hasEnded, leaving > 0 { usleep(leaving * 1000) }
    let status = finish(started.process)
    let told = line(errors.bytes)
    guard output.bytes.count <= most else { throw .tooMuch(limit: most) }
    guard hasEnded else { throw .late(errors: told) }
    return End(output: output.bytes, errors: told, failure: failure(status))
  }

  private struct Started {
    let process: pid_t
    let output: Int32
    let errors: Int32
  }

  private struct POSIXCode: Error {
    let code: Int32
    var reason: String { String(cString: strerror(code)).lowercased() }
  }

  private static func start(
    _ arguments: [String], _ input: [UInt8]
  ) throws(POSIXCode) -> Started {
    let environment = ProcessInfo.processInfo.environment
      .filter { !$0.key.hasPrefix("SSL_PINNING_") }.map { "\($0.key)=\($0.value)" }
    let words = (arguments.map { strdup($0) } + [nil], environment.map { strdup($0) } + [nil])
    defer { for word in words.0 + words.1 { free(word) } }
    var (process, output, errors) = (pid_t(0), Int32(-1), Int32(-1))
    let code = pp_command_start(
      words.0.map { UnsafePointer($0) }, words.1.map { UnsafePointer($0) }, input, input.count,
      &process, &output, &errors)
    guard code == 0 else { throw POSIXCode(code: code) }
    return Started(process: process, output: output, errors: errors)
  }

  /// Ends whatever is left of the program, and takes its status.
  private static func finish(_ process: pid_t) -> Int32 {
    kill(-process, SIGKILL)
    var status: Int32 = 0
    for _ in 0..<100 {
      let taken = waitpid(process, &status, WNOHANG)
      if taken == process || taken < 0 && errno != EINTR { return status }
      usleep(10_000)
    }
    // It hangs in the kernel, where no signal reaches it. Nobody waits for that.
    BackgroundThread.start("ended program") {
      var status: Int32 = 0
      while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }
    return status
  }

  private static func failure(_ status: Int32) -> String? {
    let signal = status & 0x7f
    guard signal == 0 else { return "was ended by signal \(signal)" }
    let code = status >> 8 & 0xff
    return code == 0 ? nil : "ended with \(code)"
  }

  /// The beginning of what it said, for a log: it may be anything.
  private static func line(_ bytes: [UInt8]) -> String {
    let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    let text = words.joined(separator: " ").unicodeScalars.filter {
      $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
    }
    return String(String(String.UnicodeScalarView(text)).prefix(toldErrors))
  }
}

/// One of a program's outputs, as far as it is kept.
private struct Drain {
  /// -1 once it has ended: poll(2) passes over it.
  private(set) var descriptor: Int32
  private(set) var bytes: [UInt8] = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Reads what is there; what goes beyond the limit is dropped.
  mutating func read(keeping limit: Int) {
    guard descriptor >= 0 else { return }
    var chunk = [UInt8](repeating: 0, count: 4096)
    // A bounded number of times: a program that never stops writing must not keep the loop from its deadline.
    for _ in 0..<16 {
      let count = Foundation.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count == 0 { descriptor = -1 }
      guard count > 0 else { return }
      bytes += chunk.prefix(min(count, max(0, limit - bytes.count)))
    }
  }
}
