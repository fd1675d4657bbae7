import Foundation
import SslPinningPlatform

/// The password of a file: out of another file, or typed. Never from the command line, which every user of the machine
/// can read, and which shells keep.
enum PasswordArgument {
  static let flag = Flag.text(
    "--password-file", "FILE", "the password of a .p12: the file's first line; else it is asked for"
  )

  /// - Parameter path: what is opened by it.
  static func read(for path: String, _ invocation: Invocation) throws(CommandFailure) -> String {
    guard let file = invocation[flag] else { return try ask(for: path) }
    try InputFile.refuseSharedInput(file, invocation)
    let bytes = try InputFile.read(file, limit: 4096)
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
    let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    // OpenSSL reads up to a zero, and other bytes would be replaced: both would make it another password.
    guard !text.contains(0), let password = String(bytes: text, encoding: .utf8) else {
      throw .usage("the password in \(InputFile.name(of: file)) is no text in UTF-8")
    }
    return password
  }

  /// At the terminal, whatever standard input is, and without an echo.
  private static func ask(for path: String) throws(CommandFailure) -> String {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard terminal >= 0 else {
      throw .usage("\(path) has a password; hint: --password-file FILE")
    }
    defer { close(terminal) }
    var before = termios()
    guard tcgetattr(terminal, &before) == 0 else {
      throw .couldNotFindOut("cannot ask for the password: \(Terminal.reason(errno))")
    }
    var silent = before
    // Without signals: one would end the process and leave the terminal silent. Control-C ends the line instead.
    silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
    withUnsafeMutableBytes(of: &silent.c_cc) { $0[Int(VEOL)] = 0x03 }
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { tcsetattr(terminal, TCSAFLUSH, &before) }
    let question = Array("password of \(path.printable): ".utf8)
    _ = write(terminal, question, question.count)
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count < 4096, Foundation.read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      guard byte != 0x03 else { throw .couldNotFindOut("no password was given") }
      line.append(byte)
    }
    _ = write(terminal, "\n", 1)
    return String(decoding: line, as: UTF8.self)
  }
}
