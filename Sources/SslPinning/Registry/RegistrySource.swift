import SslPinningPlatform
import SslPinningRules

/// Where a client's registry comes from.
package enum RegistrySource: Sendable {
  /// Where the document is served.
  package enum Place: Hashable, Sendable {
    /// At the URL that the app ships.
    case own
    /// Where the statement in force says.
    case mirror(RegistryMirror)
  }

  /// What of the document is asked for.
  package enum Part: Hashable, Sendable {
    case document
    /// The statement, and the key sets above the newest one that is believed.
    case statement(epoch: Int64)
    /// The payload of this digest, in lower-case hex.
    case payload(digest: String)
  }

  /// One conditional request.
  package struct Ask: Sendable {
    package var place = Place.own
    package var part = Part.document
    /// The entity tag of the document at hand.
    package var etag: String?
    /// Whether caches on the way must ask the origin.
    package var bypassesCaches: Bool
    /// The times that the dates of the server's chain are held to.
    package var time: TrustTime
  }

  package typealias Fetch = @Sendable (Ask) async -> Result<FetchedDocument, FetchError>

  /// Whatever answers; asked again for every refresh.
  case live(Fetch)
  /// A document at hand, which nothing ever replaces or confirms: a refresh brings no change.
  case document([UInt8])

  /// A server of whole documents only.
  package static func whole(_ fetch: @escaping Fetch) -> RegistrySource {
    .live { ask in ask.part == .document ? await fetch(ask) : .failure(.status(404)) }
  }

  /// A URL.
  static func remote(
    _ url: RegistryURL, _ fetcher: DocumentFetcher, _ config: SslPinningConfig
  ) -> RegistrySource {
    .live { ask in
      do throws(FetchError) {
        let request = DocumentRequest(
          url: try ask.url(own: url), etag: ask.etag, maximumBytes: config.maximumRegistryBytes,
          timeout: config.fetchTimeout, bypassesCaches: ask.bypassesCaches, at: ask.time)
        return .success(try await fetcher.fetch(request).withProvedTag)
      } catch { return .failure(error) }
    }
  }
}

extension FetchedDocument {
  /// The same, with its tag only if that is the document's own digest, which is what the registry server calls it.
  ///
  /// Whoever once answers for a registry could give out an old document under the tag of the newest: the honest server would
  /// call it unchanged long after he has left. Or under a tag that a firewall refuses in a request.
  var withProvedTag: FetchedDocument {
    guard case .fresh(let bytes, let tag?) = self else { return self }
    let own = "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
    return .fresh(bytes, etag: tag == own ? tag : nil)
  }
}

extension RegistrySource.Ask {
  /// What is asked for, by the app's own URL.
  func url(own: RegistryURL) throws(FetchError) -> RegistryURL {
    let document: String
    switch place {
    case .own where part == .document: return own
    case .own: document = own.description
    case .mirror(let mirror): document = mirror.description
    }
    // A path cannot go on behind a query: such a URL has no parts.
    if part != .document, document.contains(where: { "?#".contains($0) }) { throw .status(404) }
    let text =
      switch part {
      case .document: document
      case .statement(let epoch): "\(document)/statement?epoch=\(epoch)"
      case .payload(let digest): "\(document)/payload/\(digest)"
      }
    do throws(RegistryURL.Fault) { return try RegistryURL(text) } catch {
      throw .unreachable("\"\(document)\" is \(error)")
    }
  }
}

/// Who is asked next while a registry is refreshed, and when that is over: the app's own URL first, then
/// the mirrors of the statement in force, one after the other.
///
/// - The next place is asked once the last one has failed, or has said nothing for a second. Nobody is
///   waited for twice, and none that was asked is given up: the highest number wins.
/// - It is over when the app's own URL has answered (after a refusal: with something newer), or when all have
///   answered or failed. What a mirror has that is newer counts at once and ends nothing: one that hands out
///   old versions, one a round, would keep its client from all others.
/// - After a refusal that a newer list could turn, "nothing newer" from one is no reason not to ask the next:
///   a mirror, or a cache before the app's own URL, may hold back what is new.
///
/// A value: time and network are its user's (`docs/registry-format.md` section 8).
struct RegistryRound {
  /// What an answer comes to.
  enum Answer {
    case newer
    case nothingNewer
    case failed
  }

  /// Seconds after which the next place is asked as well.
  static let patience = 1.0

  private let places: Int
  private let isAnew: Bool
  /// How many were asked; the last one of them is the one that is waited for.
  private var asked = 1
  private var answered = 0
  private(set) var isOver = false

  /// A round that has asked the first place.
  ///
  /// - Parameters:
  ///   - places: how many there are, at least one; the first is the app's own URL.
  ///   - isAnew: whether a refusal is the reason.
  init(places: Int, isAnew: Bool) {
    self.places = places
    self.isAnew = isAnew
  }

  /// Whether there is somebody to ask after the last one.
  var hasNext: Bool { asked < places }

  /// A place has answered.
  ///
  /// - Returns: the place to ask now, if any.
  mutating func answer(_ answer: Answer, of place: Int) -> Int? {
    answered += 1
    let isEnough =
      switch answer {
      case .newer: place == 0
      case .nothingNewer: place == 0 && !isAnew
      case .failed: false
      }
    isOver = isOver || isEnough || answered == places
    // Whoever was waited for is not any more. An older one's answer changes nothing about that.
    return place == asked - 1 ? next() : nil
  }

  /// The place has been waited for long enough.
  ///
  /// - Returns: the place to ask now, if any.
  mutating func secondPassed(for place: Int) -> Int? { place == asked - 1 ? next() : nil }

  private mutating func next() -> Int? {
    guard !isOver, hasNext else { return nil }
    asked += 1
    return asked - 1
  }
}

/// The hosts that a client itself asks outside of all pins, as it must: a registry is never fetched under the pins that
/// it refreshes, and a pin that fails is to be reported.
///
/// A man in the middle whose CA the device trusts can be met there. Where a host is listed as well, and the system
/// resumes TLS sessions across the sessions of a process, a pinned session may go on from that meeting.
enum UnpinnedHosts {
  /// Those of the URLs' hosts that are listed, each once. Clear text, which goes to this machine alone, makes no TLS
  /// session.
  static func listed(among urls: [String], by lists: (HostName) -> Bool) -> [HostName] {
    var found: [HostName] = []
    for text in urls {
      guard let url = try? RegistryURL(text), !url.isClearText, let host = try? HostName(url.host),
        lists(host), !found.contains(host)
      else { continue }
      found.append(host)
    }
    return found
  }
}
