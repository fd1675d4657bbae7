import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// Judges every answer that readers get, as a client does and beyond.
final class AnswerBook: Sendable {
  private struct Place: Hashable {
    let file: String
    let replica: Int
  }

  private struct State {
    var keysByEndpoint: [String: AnswerLedger] = [:]
    /// What was judged already: the same again is only counted.
    var last: [Place: [UInt8]] = [:]
    /// A client of each replica.
    var clients: [Place: TrustedRegistry] = [:]
    var requests: [Int: Int] = [:]
    var failures: [String] = []
  }

  private let key: VerificationKey
  private let now: @Sendable () -> Int64
  private let state = Locked(State())

  /// - Parameters:
  ///   - key: signs every document and every statement.
  ///   - now: Unix time in seconds.
  init(key: VerificationKey, now: @escaping @Sendable () -> Int64) {
    (self.key, self.now) = (key, now)
  }

  func enter(_ answer: PlainAnswer, of file: String, from replica: Int) {
    let time = ContinuousClock.now
    state.withLock { state in
      let place = Place(file: file, replica: replica)
      // Until a replica has had a document it may have none: its endpoints were not probed yet.
      if answer.status == 503, state.clients[place] == nil { return }
      state.requests[replica, default: 0] += 1
      guard answer.status == 200 else {
        state.failures.append("replica \(replica), \(file): status \(answer.status)")
        return
      }
      guard state.last[place] != answer.body else { return }
      do {
        let client = try believe(answer.body, file, state.clients[place])
        state.last[place] = answer.body
        state.clients[place] = client
        guard let number = client.statement?.number else { throw Inconclusive("no statement") }
        let keys = client.registry.keys.compactMap { key in
          (try? key.pin.get()).map { ListedKey(host: "\(key.pattern)", pin: $0.base64) }
        }
        state.keysByEndpoint[file, default: AnswerLedger()].enter(
          .init(number: number, bytes: answer.body, keys: Set(keys)), from: replica, at: time)
      } catch { state.failures.append("replica \(replica), \(file): \(error)") }
    }
  }

  /// A request without an answer.
  func fail(_ reason: String, _ replica: Int) {
    state.withLock { state in
      state.requests[replica, default: 0] += 1
      state.failures.append("replica \(replica), \(reason)")
    }
  }

  var keysByEndpoint: [AnswerLedger] { state.withLock { Array($0.keysByEndpoint.values) } }
  var requests: Int { state.withLock { $0.requests.values.reduce(0, +) } }
  var failures: [String] { state.withLock { $0.failures } }

  func isPublished(_ key: ListedKey, _ file: String) -> Bool {
    state.withLock { $0.keysByEndpoint[file]?.published.contains(key) == true }
  }

  func isPublished(_ key: ListedKey, _ file: String, by replica: Int) -> Bool {
    state.withLock { $0.keysByEndpoint[file]?.keys(of: replica).contains(key) == true }
  }

  private func believe(
    _ bytes: [UInt8], _ file: String, _ client: TrustedRegistry?
  ) throws -> TrustedRegistry {
    let trust = try RegistryTrust(registry: file, signingKey: key, requiresStatement: true)
    guard let client else {
      return try TrustedRegistry(accepting: bytes, under: trust, at: now())
    }
    let update = client.update(with: bytes, under: trust, at: now())
    if let refusal = update.refusal { throw refusal }
    return update.registry
  }
}
