import Foundation
import SslPinningPlatform

/// Asks one replica for its documents all the time, on a thread of its own, and hands every answer to
/// a book.
///
/// Three requests of four go over a kept connection, the fourth over a fresh one.
final class DocumentReader: Sendable {
  private struct Aim {
    var port: UInt16?
    /// Another one for each process.
    var number = 0
    var isOver = false
  }

  private let replica: Int
  private let files: [String]
  private let book: AnswerBook
  private let aim = Locked(Aim())
  private let ended = DispatchSemaphore(value: 0)

  /// Microseconds between two requests: a reader is not to take the machine from those it watches.
  private static let pause: UInt32 = 4000

  init(of replica: Int, files: [String], book: AnswerBook) {
    (self.replica, self.files, self.book) = (replica, files, book)
    let thread = Thread { [self] in
      read()
      ended.signal()
    }
    thread.name = "reader of replica \(replica)"
    thread.stackSize = 4 << 20
    thread.start()
  }

  /// Asks at this port from now on; `nil`: nobody, since the process is about to be ended. What is
  /// under way then may fail.
  func aim(at port: UInt16?) {
    aim.withLock { aim in
      aim.port = port
      aim.number += 1
    }
  }

  /// Ends it, after the answer that is under way.
  func stop() async {
    aim.withLock { $0.isOver = true }
    await withCheckedContinuation { continuation in
      Thread { [ended] in
        ended.wait()
        continuation.resume()
      }.start()
    }
  }

  private func isAimed(_ number: Int) -> Bool { aim.withLock { $0.number } == number }

  private func connection(
    _ kept: PlainConnection?, _ port: UInt16
  ) throws(PlainFailure) -> PlainConnection {
    if let kept { return kept }
    return try PlainConnection(port: port)
  }

  private func read() {
    var (kept, number, turn) = (nil as PlainConnection?, 0, 0)
    while true {
      let aim = self.aim.withLock { $0 }
      if aim.isOver { return }
      if aim.number != number { (kept, number) = (nil, aim.number) }
      usleep(Self.pause)
      guard let port = aim.port else { continue }
      turn += 1
      let file = files[turn / 4 % files.count]
      do throws(PlainFailure) {
        let isFresh = turn % 4 == 0
        let connection = try connection(isFresh ? nil : kept, port)
        if !isFresh { kept = connection }
        let answer = try connection.get("/api/v1/\(file)")
        if answer.isLast { kept = nil }
        book.enter(answer, of: file, from: replica)
      } catch {
        kept = nil
        if isAimed(number) { book.fail("\(file): \(error)", replica) }
      }
    }
  }
}
