import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer

@Suite("The log's writer") struct LogWriterTests {
  private struct Ends {
    let read: FileHandle
    let write: FileHandle

    init() {
      let pipe = Pipe()
      (read, write) = (pipe.fileHandleForReading, pipe.fileHandleForWriting)
    }
  }

  /// Whatever is read, in lines, once there are so many.
  private func lines(of handle: FileHandle, until enough: ([Substring]) -> Bool) -> [Substring] {
    var text = ""
    while !text.hasSuffix("\n") || !enough(text.split(separator: "\n")) {
      let data = handle.availableData
      guard !data.isEmpty else { break }
      text += String(decoding: data, as: UTF8.self)
    }
    return text.split(separator: "\n")
  }

  private func line(_ number: Int) -> [UInt8] {
    Array("\(number) ".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: 90) + [0x0a]
  }

  @Test("drops what a reader that hangs does not take, without waiting, and says how much")
  func hangingReader() {
    let ends = Ends()
    let writer = LogWriter(to: ends.write.fileDescriptor, limit: 20_000) {
      Array("missing \($0)\n".utf8)
    }
    // A pipe has 64 KiB.
    for number in 0..<10_000 { writer.append(line(number)) }
    let dropped = writer.droppedLines
    #expect(dropped > 8000)
    func told(_ lines: [Substring]) -> Int {
      lines.filter { $0.hasPrefix("missing ") }.compactMap { Int($0.dropFirst(8)) }.reduce(0, +)
    }
    // Whichever of the two comes last: lines may follow those that are missing.
    let seen = lines(of: ends.read) { lines in
      told(lines) == dropped
        && lines.count { !$0.hasPrefix("missing ") } + dropped == 10_000
    }
    let numbers = seen.filter { !$0.hasPrefix("missing ") }
      .compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }
    #expect(numbers == numbers.sorted() && numbers.count + dropped == 10_000)
    writer.append(line(10_000))
    #expect(lines(of: ends.read) { !$0.isEmpty }.first?.hasPrefix("10000 ") == true)
    #expect(writer.droppedLines == dropped)
  }

  @Test("writes all there is before it closes, and nothing afterwards")
  func close() throws {
    let ends = Ends()
    let writer = LogWriter(to: ends.write.fileDescriptor) { _ in [] }
    for number in 0..<500 { writer.append(line(number)) }
    writer.close(within: 60)
    writer.append(line(500))
    try ends.write.close()
    #expect(lines(of: ends.read) { _ in false }.count == 500)
    #expect(writer.droppedLines == 1)
  }

  @Test("waits for a reader where the descriptor does not, and for nobody who left")
  func otherDescriptors() throws {
    let ends = Ends()
    let descriptor = ends.write.fileDescriptor
    #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
    let writer = LogWriter(to: descriptor) { _ in [] }
    for number in 0..<2000 { writer.append(line(number)) }
    #expect(lines(of: ends.read) { $0.count == 2000 }.count == 2000)
    try ends.read.close()
    for number in 0..<2000 { writer.append(line(number)) }
    writer.close(within: 60)
    #expect(writer.droppedLines == 2000)
  }
}
