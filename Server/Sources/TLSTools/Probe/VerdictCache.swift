import SslPinningPlatform
import SslPinningRules

/// Chains that were found to be valid, so that a server that shows the same one every minute is not
/// validated every minute.
///
/// - A kept verdict is for the same bytes in the same order, under the same validator: the key is a
///   SHA-256 over every byte that was sent, with the number of the validator. It says nothing about a
///   name.
/// - It holds for ten minutes at most, never into a second in which a certificate of its path is no
///   longer valid, and not at a time before it was made: the clock was set back.
/// - A refusal is never kept: whatever makes a chain valid counts at once.
/// - Bounded: when it is full, those go that were not asked for since the last time that it was.
package final class VerdictCache: Sendable {
  struct Key: Hashable, Sendable {
    private let digest: [UInt8]
    private let validator: UInt64

    init(_ presented: [Certificate], validator: ChainValidator) {
      // Each certificate with its length in front of it: no other list has the same bytes.
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

  /// - Parameter limit: how many chains are kept before those go that were not asked for.
  package init(limit: Int = 16_384) { self.limit = max(1, limit) }

  /// The path of a chain that was found valid not long ago.
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

  /// A path as people and decisions read it. Issuers stand in many paths, and are described once.
  ///
  /// - Returns: `nil` where a key or a date cannot be read.
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
  /// - Returns: `nil` where the strict reader refuses its encoding, or a date cannot be read.
  init?(_ certificate: Certificate) {
    guard let pin = try? SPKIPin(certificateDER: certificate.der),
      let validity = certificate.validity
    else { return nil }
    self.init(
      pin: pin, subject: certificate.subject, issuer: certificate.issuer, validity: validity)
  }
}
