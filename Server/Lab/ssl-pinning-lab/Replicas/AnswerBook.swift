import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// Checks every answer that readers get, as a client does and more.
final class AnswerBook: Sendable {
  private struct Place: Hashable {
    let file: String
    let replica: Int
  }

  private struct State {
    var keysByEndpoint: [String: AnswerLedger] = [:]
    /// The last checked answer: the same answer again is only counted.
    var last: [Place: [UInt8]] = [:]
    /// A client for each replica and document.
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
      // A replica has no document before its endpoints were probed.
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

/// What readers of all replicas saw of one document, and which of that is a fault.
///
/// - A replica never goes back to an older version, not even after a restart.
/// - A version number has the same bytes everywhere: clients would refuse the second of two different
///   documents with one number.
/// - A newer document has every key of the older ones, because no grace time ends during a drill.
///
/// Pure: values in, values out; times are passed in.
struct AnswerLedger {
  typealias Time = ContinuousClock.Instant

  /// A document with valid signatures.
  struct Reading {
    var number: RegistryStamp.Version
    var bytes: [UInt8]
    var keys: Set<ListedKey>
  }

  private struct Known {
    var bytes: [UInt8]
    var keys: Set<ListedKey>
    var seen: [Int: Time] = [:]
  }

  private var known: [RegistryStamp.Version: Known] = [:]
  private var newest: [Int: RegistryStamp.Version] = [:]

  /// Answers with an older number than the replica had given before.
  private(set) var backwards = 0
  /// Answers whose number another document already had.
  private(set) var twice = 0
  /// Documents that lack keys of an older one.
  private(set) var dropped = 0

  /// How many documents there were.
  var versions: Int { known.count }

  /// Every key that any replica has published.
  private(set) var published: Set<ListedKey> = []

  mutating func enter(_ reading: Reading, from replica: Int, at time: Time) {
    let number = reading.number
    if let last = newest[replica], number < last { backwards += 1 }
    newest[replica] = max(newest[replica] ?? number, number)
    if let before = known[number] {
      if before.bytes != reading.bytes { twice += 1 }
    } else {
      known[number] = Known(bytes: reading.bytes, keys: reading.keys)
      published.formUnion(reading.keys)
      let older = known.keys.filter { $0 < number }.max()
      let newer = known.keys.filter { $0 > number }.min()
      if let older, known[older]?.keys.isSubset(of: reading.keys) == false { dropped += 1 }
      if let newer, known[newer]?.keys.isSuperset(of: reading.keys) == false { dropped += 1 }
    }
    if known[number]?.seen[replica] == nil { known[number]?.seen[replica] = time }
  }

  /// The keys that a replica publishes.
  func keys(of replica: Int) -> Set<ListedKey> {
    newest[replica].flatMap { known[$0]?.keys } ?? []
  }

  /// For each document that was first seen after `start` and that all replicas showed: how long it took from the
  /// first replica to the last.
  func delays(among replicas: Int, since start: Time) -> [Duration] {
    known.values.compactMap { document in
      guard document.seen.count == replicas, let first = document.seen.values.min(),
        let last = document.seen.values.max(), first >= start
      else { return nil }
      return last - first
    }
  }
}

/// A host's key in a document.
struct ListedKey: Hashable, Sendable, CustomStringConvertible {
  var host: String
  /// In base64.
  var pin: String

  var description: String { "\(host) \(pin.prefix(8))" }
}
