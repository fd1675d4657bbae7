import SslPinningPlatform
import SslPinningRules

/// Caches valid chains, so that a chain which a server shows every minute is not validated every minute.
///
/// - The key is a SHA-256 over all certificate bytes in the order sent, and the number of the validator.
///   A verdict says nothing about a name.
/// - A verdict holds for ten minutes at most, never beyond the validity of a certificate in its path, and
///   never before the time at which it was made: then the clock was set back.
/// - Refusals are not cached, so that a repaired chain counts at once.
/// - Bounded: a full cache drops the verdicts that were not used since it was last full.
package final class VerdictCache: Sendable {
  struct Key: Hashable, Sendable {
    private let digest: [UInt8]
    private let validator: UInt64

    init(_ presented: [Certificate], validator: ChainValidator) {
      // Each certificate has its length in front, so that no two lists have the same bytes.
      var all: [UInt8] = []
      all.reserveCapacity(presented.reduce(0) { $0 + $1.der.count + 4 })
      for certificate in presented {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: certificate.der.count).bigEndian) {
          all.append(contentsOf: $0)
        }
        all.append(contentsOf: certificate.der)
      }
      digest = Digest.sha256(all)
      self.validator = validator.generation
    }
  }

  private struct Kept {
    let path: [PathCertificate]
    let made: Int64
    let until: Int64
  }

  private struct State {
    var young: [Key: Kept] = [:]
    var old: [Key: Kept] = [:]
    var issuers: [Certificate: PathCertificate] = [:]
  }

  /// Seconds for which a verdict holds.
  package static let lifetime: Int64 = 600
  private static let issuerLimit = 512

  private let state = Locked(State())
  private let limit: Int

  /// - Parameter limit: how many chains are kept before unused ones are dropped.
  package init(limit: Int = 16_384) { self.limit = max(1, limit) }

  /// The path of a chain that was recently found valid.
  func path(for key: Key, at now: Int64) -> [PathCertificate]? {
    state.withLock { state in
      guard let kept = state.young[key] ?? state.old[key] else { return nil }
      guard now >= kept.made, now <= kept.until else {
        state.young[key] = nil
        state.old[key] = nil
        return nil
      }
      if state.young[key] == nil { Self.add(kept, for: key, to: &state, limit) }
      return kept.path
    }
  }

  /// Keeps a verdict that was made now.
  func keep(_ path: [PathCertificate], for key: Key, at now: Int64) {
    let end = path.map(\.validity.notAfter).min() ?? now
    let kept = Kept(path: path, made: now, until: min(end, now + Self.lifetime))
    state.withLock { Self.add(kept, for: key, to: &$0, limit) }
  }

  /// Describes a path for decisions and people. Issuers occur in many paths, so each is parsed only once.
  ///
  /// - Returns: `nil` if a key or a date cannot be read.
  func described(_ path: [Certificate]) -> [PathCertificate]? {
    var described: [PathCertificate] = []
    for (index, certificate) in path.enumerated() {
      let known = index == 0 ? nil : state.withLock { $0.issuers[certificate] }
      guard let one = known ?? PathCertificate(certificate) else { return nil }
      described.append(one)
      guard index > 0, known == nil else { continue }
      state.withLock { state in
        if state.issuers.count >= Self.issuerLimit { state.issuers = [:] }
        state.issuers[certificate] = one
      }
    }
    return described
  }

  private static func add(_ kept: Kept, for key: Key, to state: inout State, _ limit: Int) {
    if state.young.count >= limit {
      state.old = state.young
      state.young = [:]
    }
    state.young[key] = kept
  }
}

extension PathCertificate {
  /// - Returns: `nil` if the strict reader refuses its encoding, or a date cannot be read.
  init?(_ certificate: Certificate) {
    guard let pin = try? SPKIPin(certificateDER: certificate.der),
      let validity = certificate.validity
    else { return nil }
    self.init(
      pin: pin, subject: certificate.subject, issuer: certificate.issuer, validity: validity)
  }
}
