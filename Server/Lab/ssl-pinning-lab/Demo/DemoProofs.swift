import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The claims of the demo, each with its proof. Every attack is first shown to work on an unpinned request,
/// because a refusal proves nothing without an attack.
struct DemoProofs {
  let stage: DemoStage

  /// Waits for the registry's first document and makes the client from it.
  func registryVerified() async throws -> (SslPinningClient, proof: String) {
    for host in [DemoStage.shop, DemoStage.bank] { await stage.service.probe(host) }
    let client = try await client(registry: stage.registryURL)
    guard client.registryProblems.isEmpty else {
      throw DemoFailure("the registry has problems: \(client.registryProblems)")
    }
    let digest = client.registryStamp.payloadDigest.prefix(12)
    return (client, "registry fetched and its signature verified (payload \(digest)…)")
  }

  func pinnedRequestServed(_ client: SslPinningClient, _ session: URLSession) async throws -> String
  {
    let body = try await get(stage.shopURL, session)
    let bank = try await get("https://\(DemoStage.bank):\(stage.bankServer.port)/", session)
    guard body == "Welcome to the shop.\n", bank == "Welcome to the bank.\n" else {
      throw DemoFailure("another server answered: \(body)\(bank)")
    }
    return "pinned requests served by \(DemoStage.shop) and \(DemoStage.bank)"
  }

  /// The attacker's certificate is from the CA that the client trusts.
  func manInTheMiddleRefused(
    _ client: SslPinningClient, _ session: URLSession
  ) async throws -> [String] {
    stage.leadWire(toAttacker: true)
    defer { stage.leadWire(toAttacker: false) }
    // The control: the same CA, the same URL, no pins.
    let unpinned = try DocumentFetcher(trust: trust)
    _ = try await unpinned.fetch(
      DocumentRequest(url: RegistryURL(stage.shopURL), maximumBytes: 1000, timeout: 10))
    guard let read = stage.attacker.requests.last else {
      throw DemoFailure("the control failed: the attacker read nothing of an unpinned request")
    }
    let control = "control: without pinning he reads \"\(read.method) \(read.target)\""
    let before = stage.attacker.plaintextBytes
    let refusal = try await refusal(of: stage.shopURL, client, session)
    guard refusal.rule == "leaf-pin", stage.attacker.plaintextBytes == before else {
      throw DemoFailure("the attacker read the request: \(refusal)")
    }
    let shown = refusal.presented.first?.base64.prefix(8) ?? "?"
    return [
      control,
      "man in the middle whose CA the client trusts refused: his key \(shown)… is not pinned,"
        + " and he read 0 bytes",
    ]
  }

  func unlistedHostRefused(
    _ client: SslPinningClient, _ session: URLSession
  ) async throws -> String {
    let before = stage.shopServer.counts.applicationBytesReceived
    let refusal = try await refusal(of: stage.unlistedURL, client, session)
    guard refusal.outcome == .unlisted,
      stage.shopServer.counts.applicationBytesReceived == before
    else { throw DemoFailure("\(refusal)") }
    return "unlisted host \(DemoStage.unlisted) refused, although its certificate is valid"
  }

  /// The rotation is not announced to the client: its session meets an unknown key.
  func rotationFollowed(_ client: SslPinningClient, _ session: URLSession) async throws -> String {
    let old = client.registryStamp.payloadDigest
    try stage.rotateShopKey()
    let rotated = Date()
    // The monitor probes every second by itself; a key is published after three agreeing probes.
    await stage.service.probe(DemoStage.shop)
    guard try await get(stage.shopURL, session) == "Welcome to the shop.\n" else {
      throw DemoFailure("another server answered")
    }
    let seconds = String(format: "%.1f", Date().timeIntervalSince(rotated))
    guard client.registryStamp.payloadDigest != old else {
      throw DemoFailure("served without the new key on the list")
    }
    return "key of \(DemoStage.shop) rotated unannounced; the same session is served \(seconds) s"
      + " later, by pins fetched on the first mismatch"
  }

  func tamperedRegistryRefused() async throws -> String {
    let fetched = try await DocumentFetcher(trust: .system).fetch(
      DocumentRequest(url: RegistryURL(stage.registryURL), maximumBytes: 1 << 20, timeout: 10))
    guard case .fresh(let document, _) = fetched else { throw DemoFailure("no document") }
    let good = String(decoding: document, as: UTF8.self)
    let attackerKey = try stage.attacker.identity(for: DemoStage.shop)
    let real = try SPKIPin(certificateDER: stage.shopServer.identity.leaf.der).base64
    guard let attackerKey else { throw DemoFailure("the attacker has no key") }
    let tampered = good.replacingOccurrences(
      of: real, with: try SPKIPin(certificateDER: attackerKey.leaf.der).base64)
    guard tampered != good else { throw DemoFailure("the registry does not hold the shop's key") }
    let forger = try LocalHTTPServer { _ in .text(tampered, type: "application/json") }
    defer { forger.stop() }
    do {
      _ = try await client(registry: "http://127.0.0.1:\(forger.port)/\(DemoStage.file)")
      throw DemoFailure("a registry with the attacker's key in it was believed")
    } catch SslPinningError.registryRefused(.otherPayload, _) {
      return "registry with the attacker's key written into it refused: not what was signed"
    }
  }

  private var trust: TrustMode { .anchors([stage.authority.root.der]) }

  private func client(registry url: String) async throws -> SslPinningClient {
    try await SslPinningClient(
      config: SslPinningConfig(
        endpointUrl: url, signingKeyBase64: stage.service.publicKeyPEM, trust: trust,
        storage: .none))
  }

  private func get(_ text: String, _ session: URLSession) async throws -> String {
    guard let url = URL(string: text) else { throw DemoFailure("\(text) is no URL") }
    return String(decoding: try await session.data(from: url).0, as: UTF8.self)
  }

  private func refusal(
    of text: String, _ client: SslPinningClient, _ session: URLSession
  ) async throws -> PinEvaluation {
    let body: String
    do { body = try await get(text, session) } catch {
      guard let refusal = client.refusal(for: error) else { throw error }
      return refusal
    }
    throw DemoFailure("\(text) was served: \(body)")
  }
}
