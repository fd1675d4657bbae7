import Foundation
import Pinning
import PinningPlatform

/// Holds what the client believes, fetches newer registries, and answers the transports.
///
/// - A fetched document replaces the believed one only by ``TrustedRegistry``'s rules; whatever else
///   comes back changes nothing.
/// - At most one fetch runs; whoever asks meanwhile waits for that one.
/// - Verdicts come from memory: no transport ever waits for a lock that is held over I/O.
final class RegistryKeeper: PinJudge {
  private struct State {
    var trusted: TrustedRegistry
    var inForce: PolicyInForce
    var etag: String?
    var refreshing: Task<Result<Bool, SslPinningError>, Never>?
    var limiter = RefreshLimiter()
  }

  private let config: SslPinningConfig
  private let source: RegistrySource
  private let key: VerificationKey
  private let clocks: Clocks
  private let state: Locked<State>

  /// Fetches the first registry, or takes the one that is at hand.
  init(
    config: SslPinningConfig, source: RegistrySource, key: VerificationKey, clocks: Clocks
  ) async throws(SslPinningError) {
    let bytes: [UInt8]
    let etag: String?
    switch source {
    case .document(let document): (bytes, etag) = (document, nil)
    case .remote(let url, let fetcher):
      let request = Self.request(config, url: url, etag: nil, bypassesCaches: false)
      let fetched: FetchedDocument
      do throws(FetchError) { fetched = try await fetcher.fetch(request) } catch {
        throw SslPinningError(error)
      }
      guard case .fresh(let document, let tag) = fetched else { throw .httpStatus(304) }
      (bytes, etag) = (document, tag)
    }
    let trusted: TrustedRegistry
    do throws(RegistryError) {
      trusted = try TrustedRegistry(
        accepting: bytes, verifiedBy: key, digest: Digest.sha256, at: clocks.wall(),
        limits: RegistryLimits(maximumBytes: config.maximumRegistryBytes))
    } catch { throw SslPinningError(error) }
    let policy = try Self.policy(of: trusted, config)
    self.config = config
    self.source = source
    self.key = key
    self.clocks = clocks
    state = Locked(
      State(
        trusted: trusted, inForce: PolicyInForce(policy, at: clocks.wall()), etag: etag))
  }

  /// The registry that is believed now.
  var trusted: TrustedRegistry { state.withLock { $0.trusted } }

  /// Fetches the registry, or joins the fetch under way.
  ///
  /// - Returns: whether the pins changed.
  func refresh(bypassingCaches: Bool) async -> Result<Bool, SslPinningError> {
    guard case .remote(let url, let fetcher) = source else { return .success(false) }
    let task = state.withLock { flight(&$0, url, fetcher, bypassingCaches: bypassingCaches) }
    return await task.value
  }

  /// The fetch under way, or one that starts now.
  private func flight(
    _ state: inout State, _ url: RegistryURL, _ fetcher: DocumentFetcher, bypassingCaches: Bool
  ) -> Task<Result<Bool, SslPinningError>, Never> {
    if let running = state.refreshing { return running }
    let started = Task {
      await self.fetchAndAccept(url, fetcher, bypassingCaches: bypassingCaches)
    }
    state.refreshing = started
    return started
  }

  private func fetchAndAccept(
    _ url: RegistryURL, _ fetcher: DocumentFetcher, bypassingCaches: Bool
  ) async -> Result<Bool, SslPinningError> {
    defer { state.withLock { $0.refreshing = nil } }
    let etag = state.withLock { $0.etag }
    let request = Self.request(config, url: url, etag: etag, bypassesCaches: bypassingCaches)
    let fetched: FetchedDocument
    do throws(FetchError) { fetched = try await fetcher.fetch(request) } catch {
      return .failure(SslPinningError(error))
    }
    let old = trusted
    do throws(SslPinningError) {
      switch fetched {
      case .unchanged:
        let confirmed = old.confirmed(at: clocks.wall())
        let policy = try Self.policy(of: confirmed, config)
        // The same document, yet vanished hosts may just have lost their last pins. Where none has,
        // verdicts stand and connections need not be judged again.
        let isOther = confirmed.registry != old.registry
        state.withLock {
          $0.trusted = confirmed
          if isOther {
            $0.inForce.replace(with: policy, at: clocks.wall())
          } else {
            $0.inForce.restamp(policy)
          }
        }
        return .success(isOther)
      case .fresh(let bytes, let etag):
        let newer: TrustedRegistry
        do throws(RegistryError) {
          newer = try old.accepting(
            bytes, verifiedBy: key, digest: Digest.sha256, at: clocks.wall())
        } catch { throw SslPinningError(error) }
        let policy = try Self.policy(of: newer, config)
        state.withLock {
          $0.trusted = newer
          $0.inForce.replace(with: policy, at: clocks.wall())
          $0.etag = etag
        }
        return .success(newer.registry != old.registry)
      }
    } catch { return .failure(error) }
  }

  private static func request(
    _ config: SslPinningConfig, url: RegistryURL, etag: String?, bypassesCaches: Bool
  ) -> DocumentRequest {
    DocumentRequest(
      url: url, etag: etag, maximumBytes: config.maximumRegistryBytes,
      timeout: config.fetchTimeout, bypassesCaches: bypassesCaches)
  }

  private static func policy(
    of trusted: TrustedRegistry, _ config: SslPinningConfig
  ) throws(SslPinningError) -> PinningPolicy {
    do throws(PolicyError) {
      return try trusted.policy(trust: config.trust, unlistedHosts: config.unlistedHosts)
    } catch { throw .badConfiguration(error) }
  }

  // MARK: PinJudge

  var generation: UInt64 {
    let now = clocks.wall()
    return state.withLock { $0.inForce.generation(at: now) }
  }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    // Not the time of the last confirmation where that is later: it came from this very clock, and
    // one that ran ahead for a while would lock everybody out until the process ends. Only a time
    // that the registry's signer vouches for can hold a clock that was set back; format 1 has none.
    state.withLock { $0.inForce.policy }.evaluate(evidence, host: host, at: clocks.wall())
  }

  func record(_ evaluation: PinEvaluation) {}

  func wantsRefresh(after refusal: PinEvaluation) -> Bool {
    guard refusal.mayBeStale, case .remote(let url, let fetcher) = source else { return false }
    return state.withLock { state in
      // A refresh under way may bring the key; joining it costs no request.
      if state.refreshing != nil { return true }
      guard state.limiter.allows(refusal, at: clocks.steady()) else { return false }
      // Begun here, not once somebody waits for it: of the parallel requests that meet a new key,
      // those that the limiter turns away must find a fetch to join.
      _ = flight(&state, url, fetcher, bypassingCaches: true)
      return true
    }
  }

  /// Waits for the fetch that ``wantsRefresh(after:)`` began or found. One that was found may have
  /// been answered before the server's new key was published: where it brought nothing, the refusal
  /// is owed a fetch of its own, which counts against the limit like any other.
  func refresh(after refusal: PinEvaluation) async {
    let running = state.withLock { $0.refreshing }
    if case .success(true)? = await running?.value { return }
    guard case .remote(let url, let fetcher) = source else { return }
    let own = state.withLock { state in
      state.limiter.allows(refusal, at: clocks.steady())
        ? flight(&state, url, fetcher, bypassingCaches: true) : nil
    }
    _ = await own?.value
  }
}
