import Foundation
import SslPinningPlatform
import SslPinningRules

/// Keeps a queue of reports on the disk, for all processes that name the same file.
///
/// - Every change is one transaction under the file's lock: read, change, write. So no process writes
///   over what another has added.
/// - Where the disk fails, or there is none, the queue lives in memory; with the next transaction that succeeds it is
///   joined to what is on the disk.
/// - What cannot be read is begun anew: reports are worth less than the app's start.
final class ReportStore: Sendable {
  private let file: AtomicFile?
  private let rules: ReportRules
  private let urls: [String]
  private let events: @Sendable (ReportingEvent) -> Void
  private let unsaved: Locked<ReportQueue>
  /// Whether it was told since the last write that nothing can be written: each failure would be told several times.
  private let isTold = Locked(false)
  /// One transaction at a time, on a thread that may block.
  private let queue = DispatchQueue(label: "ssl-pinning.reports", qos: .utility)

  /// - Parameter file: `nil` if the system names no home for this process.
  init(
    file: AtomicFile?, rules: ReportRules, urls: [String],
    events: @escaping @Sendable (ReportingEvent) -> Void
  ) {
    self.file = file
    self.rules = rules
    self.urls = urls
    self.events = events
    unsaved = Locked(ReportQueue(rules: rules))
  }

  /// Whether there is nothing, neither on the disk nor in memory. Makes no file.
  func isEmpty() async -> Bool {
    await onQueue { [self] in
      guard unsaved.withLock({ $0.count == 0 && $0.dropped == 0 }) else { return false }
      do throws(FileError) { return try file?.read(limit: 0) == nil } catch { return false }
    }
  }

  /// Runs `change` on the queue as it is now, and returns once that is on the disk.
  ///
  /// - Parameter change: a pure function: where the disk fails, it runs again over the queue in memory.
  func transaction<R: Sendable>(
    at now: Int64, _ change: @escaping @Sendable (inout ReportQueue) -> R
  ) async -> R {
    await onQueue { [self] in
      guard let file else {
        return changeInMemory(because: RegistryStorage.standard.whyNowhere, at: now, change)
      }
      do throws(FileError) { return try self.change(file, at: now, change) } catch {
        return changeInMemory(because: "\(error)", at: now, change)
      }
    }
  }

  private func changeInMemory<R>(
    because reason: String, at now: Int64, _ change: (inout ReportQueue) -> R
  ) -> R {
    let isNew = isTold.withLock { isTold in
      defer { isTold = true }
      return !isTold
    }
    if isNew { events(.notSaved(reason: reason)) }
    return unsaved.withLock { queue in
      queue.tidy(urls: urls, at: now)
      return change(&queue)
    }
  }

  private func change<R>(
    _ file: AtomicFile, at now: Int64, _ change: (inout ReportQueue) -> R
  ) throws(FileError) -> R {
    let joining = unsaved.withLock { $0 }
    let result = try file.withLock { (held) throws(FileError) in
      let stored = try load(held)
      var queue = stored ?? ReportQueue(rules: rules)
      queue.absorb(joining, urls: urls)
      queue.tidy(urls: urls, at: now)
      let result = change(&queue)
      if queue != stored {
        try held.write(queue.encoded)
        isTold.withLock { $0 = false }
      }
      return result
    }
    unsaved.withLock { $0 = ReportQueue(rules: rules) }
    return result
  }

  private func load(_ held: borrowing AtomicFile.Held) throws(FileError) -> ReportQueue? {
    let empty = ReportQueue(rules: rules)
    var bytes: [UInt8]?
    do throws(FileError) { bytes = try held.read(limit: empty.fileLimit) } catch {
      guard case .tooLarge = error else { throw error }
      bytes = []
    }
    guard let bytes else { return nil }
    let queue = ReportQueue(decoding: bytes, rules: rules)
    if queue == nil { events(.queueUnreadable) }
    return queue
  }

  private func onQueue<R: Sendable>(_ work: @escaping @Sendable () -> R) async -> R {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: work()) }
    }
  }
}
