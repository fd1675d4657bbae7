import SslPinningRules

/// What readers of all replicas saw of one document, and what of it must not be.
///
/// - One replica never goes back, not even over its own end and new beginning.
/// - One number has the same bytes everywhere: two documents under one number would be a document
///   published twice, and clients would refuse whichever they see second.
/// - A newer document has every key of the older ones: no grace time ends during a drill.
///
/// Pure: values in, values out, times as they are passed in.
struct AnswerLedger {
  typealias Time = ContinuousClock.Instant

  /// A document whose signatures were found good.
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

  /// Answers with an older number than this replica had given.
  private(set) var backwards = 0
  /// Answers with the number of another document.
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

  /// For each document that was first seen after `start`, how long it took from the first replica to
  /// the last, in those cases where all of them showed it.
  func delays(among replicas: Int, since start: Time) -> [Duration] {
    known.values.compactMap { document in
      guard document.seen.count == replicas, let first = document.seen.values.min(),
        let last = document.seen.values.max(), first >= start
      else { return nil }
      return last - first
    }
  }
}
