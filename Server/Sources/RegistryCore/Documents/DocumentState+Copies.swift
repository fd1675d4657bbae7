import CanonicalJSON
import SslPinningRules

extension DocumentState {
  /// Stands for the CAs of a key that only a signed list speaks of: it says no CA, and a endpointKeys that knows none
  /// would believe any. It is no CA's, and leaves with the grace time of what is seen afterwards.
  static let unknownAuthority = SPKIPin(computed: [UInt8](repeating: 0, count: 32))

  /// What is said where the copy in `publish.dir` is newer than the store.
  package static let behindCopyMessage =
    "publish.dir has a newer document than the store: what that lists and denies counts, and what people decided"
    + " since the store's is lost; hint: is the store an old backup?"
  /// What is said where only the copy in `publish.dir` is left.
  package static let lastCopyMessage =
    "the store has nothing of this document: it goes on from the copy in publish.dir; a key under another CA"
    + " than the endpoint shows with a key of the copy waits for a person, and a key that was listed for less than"
    + " a day is withdrawn unless it is shown; hint: announce again what was announced since"

  /// For how many seconds a key must have been listed when a copy was signed to be no key of a moment: one that was
  /// there for less than an hour is withdrawn within eight hours (``KnownKey/isPassing(at:)``).
  static let pastDoubt: Int64 = 86_400

  /// This state on top of the newest document that was published, whose signatures are known to be good: what it
  /// lists, denies and lets go of counts, and what probes showed or people decided beside it is as it is here.
  ///
  /// - A document does not say who spoke for a key. One that it had listed for less than a day counts as
  ///   unannounced, unless it is the oldest of its endpoint: it stays listed, and is withdrawn if probes miss it.
  ///   Otherwise the key of somebody who stood between for a moment would be kept for its grace time.
  ///
  /// - Parameter endpoints: the endpoints in force: keys are entered for those whose patterns it lists.
  package func goingOn(
    from copy: SignedCopy, endpoints: [WatchedEndpoint]
  ) -> DocumentState {
    guard let json = (try? JSONValue(parsing: copy.bytes))?.objectValue else { return self }
    var next = self
    let statement = json["statement"]?.objectValue
    for text in statement?["denied"]?.arrayValue ?? [] {
      guard let pin = text.stringValue.flatMap({ try? SPKIPin(base64: $0) }),
        !next.deniedPins.contains(pin)
      else { continue }
      next.denied.append(
        Denial(
          pin: pin, at: copy.signed, by: HistoryEntry.monitor,
          why: "denied in the last published copy"))
      next.forgetCandidate(pin)
    }
    for text in statement?["removed"]?.arrayValue ?? [] {
      guard let pattern = text.stringValue.flatMap({ try? HostPattern($0) }),
        !next.removed.contains(pattern)
      else { continue }
      next.removed.append(pattern)
    }
    let listed = Self.listed(in: json, signed: copy.signed)
    for endpoint in endpoints {
      let endpointKeys = next.keysByEndpoint[endpoint.id] ?? EndpointKeys()
      // Denied ones, too: an endpoint of which nothing else is listed must not have a first sight.
      var known = Set(endpointKeys.keys.map(\.pin))
      let all = EndpointKeys.sorted(endpoint.patterns.flatMap { listed[$0] ?? [] })
      let keys = all.filter { known.insert($0.pin).inserted }.map { key in
        var key = key
        key.isUnannounced =
          key.pin != all.first?.pin && copy.signed - key.firstSeen < Self.pastDoubt
        if key.isUnannounced { key.shownFor = 0 }
        return key
      }
      guard !keys.isEmpty else { continue }
      let authorities =
        endpointKeys.authorities.isEmpty ? [Self.unknownAuthority: copy.signed] : endpointKeys.authorities
      next.keysByEndpoint[endpoint.id] = EndpointKeys(
        keys: endpointKeys.keys + keys, held: endpointKeys.candidates, authorities: authorities)
    }
    next.document = copy.bytes
    next.signed = max(signed, copy.signed)
    next.number = [number, copy.number].compactMap(\.self).max()
    return next
  }

  /// The keys that a document lists, by pattern.
  private static func listed(
    in document: JSONObject, signed: Int64
  ) -> [HostPattern: [KnownKey]] {
    var listed: [HostPattern: [KnownKey]] = [:]
    for entry in document["payload"]?.objectValue?["keys"]?.arrayValue ?? [] {
      guard let entry = entry.objectValue,
        let pattern = entry["domainName"]?.stringValue.flatMap({ try? HostPattern($0) }),
        let pin = entry["key"]?.stringValue.flatMap({ try? SPKIPin(base64: $0) })
      else { continue }
      let date = entry["date"]?.stringValue.flatMap { RFC3339.unixSeconds($0) } ?? signed
      listed[pattern, default: []].append(
        KnownKey(pin: pin, firstSeen: min(date, signed), lastSeen: signed))
    }
    return listed
  }
}

/// A signed document as its readers have it, whose signatures are known to be good.
package struct SignedCopy: Sendable {
  /// The whole document.
  package var bytes: [UInt8]
  /// When it was signed, in Unix seconds.
  package var signed: Int64
  /// The number of its statement; `nil` in format 1.
  package var number: RegistryStamp.Version?

  /// A copy.
  package init(bytes: [UInt8], signed: Int64, number: RegistryStamp.Version?) {
    (self.bytes, self.signed, self.number) = (bytes, signed, number)
  }
}
