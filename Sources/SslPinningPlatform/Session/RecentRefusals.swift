import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Finds the verdict behind an error that carries nothing of ours, by failing URL and time: for
/// platforms that answer a refusal with an error of their own.
///
/// - Of each host the newest refusal is kept, for 60 seconds, and after an acceptance for 2: of two handshakes at one
///   time, say with a man in the middle on one of two networks, either may end first, and the error comes after both.
/// - Hazard: such an error cannot be told from the app's own cancel of a request to a host that was
///   refused within that time. Then the refusal is named; every other cancel stays a cancel.
/// - Bounded: at most 1 024 hosts.
package final class RecentRefusals: Sendable {
  /// Seconds for which a refusal explains errors.
  package static let remembered: Int64 = 60
  /// Seconds for which it still does once the host was accepted.
  package static let rememberedBesideAcceptance: Int64 = 2
  private static let capacity = 1024

  private struct Entry {
    let refusal: PinEvaluation
    var until: Int64
  }

  /// What platforms report when a handshake is turned down.
  private static let codes: Set<Int> = [
    NSURLErrorCancelled, NSURLErrorUserCancelledAuthentication, NSURLErrorSecureConnectionFailed,
    NSURLErrorServerCertificateUntrusted,
  ]

  private let byHost = Locked<[HostName: Entry]>([:])

  package init() {}

  /// Keeps a refusal that requests to `host` will fail with; `now` in seconds of a clock that never
  /// goes back.
  package func note(_ refusal: PinEvaluation, failing host: HostName, at now: Int64) {
    byHost.withLock { entries in
      if entries.count >= Self.capacity {
        entries = entries.filter { now <= $0.value.until }
        if entries.count >= Self.capacity { entries.removeAll() }
      }
      entries[host] = Entry(refusal: refusal, until: now + Self.remembered)
    }
  }

  /// The host was accepted: soon its errors have other causes. `now` as for ``note(_:failing:at:)``.
  package func forget(_ host: HostName, at now: Int64) {
    byHost.withLock { entries in
      guard let until = entries[host]?.until else { return }
      entries[host]?.until = min(until, now + Self.rememberedBesideAcceptance)
    }
  }

  /// The verdict that this error stands for.
  package func refusal(for error: any Error, at now: Int64) -> PinEvaluation? {
    var next: NSError? = error as NSError
    for _ in 0..<4 {
      guard let current = next else { break }
      if let host = Self.host(of: current),
        let entry = byHost.withLock({ $0[host] }), now <= entry.until
      {
        return entry.refusal
      }
      next = current.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return nil
  }

  private static func host(of error: NSError) -> HostName? {
    guard error.domain == NSURLErrorDomain, codes.contains(error.code),
      let url = error.userInfo[NSURLErrorFailingURLErrorKey] as? URL, let host = url.host
    else { return nil }
    return try? HostName(host)
  }
}
