import Foundation
import RegistryCore
import RegistryServer

/// Counts the probes of one round.
actor Round: ProbeReceiver {
  private let count: Int
  private var probes = 0
  private var accepted = 0
  private var complaint: String?
  private var waiting: CheckedContinuation<Int, Never>?

  init(count: Int) { self.count = count }

  func enter(_ probe: ProbeResult) -> NextProbe {
    probes += 1
    switch probe.observations.first?.outcome {
    case .accepted: accepted += 1
    case .refused(let reason, _), .unreachable(let reason): complain(reason)
    case nil: complain("no observation")
    }
    if probes == count {
      waiting?.resume(returning: accepted)
      waiting = nil
    }
    return .onSchedule
  }

  /// How many probes were accepted, once all were made.
  func end() async -> Int {
    guard probes < count else { return accepted }
    return await withCheckedContinuation { waiting = $0 }
  }

  /// The first failure tells enough.
  private func complain(_ reason: String) {
    guard complaint == nil else { return }
    complaint = reason
    FileHandle.standardError.write(Data("scan: \(reason)\n".utf8))
  }
}
