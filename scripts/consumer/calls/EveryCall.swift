import Foundation
import Pinning
import SslPinning
import SslPinningTesting

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// Every call of docs/api.md that no listing of the documentation makes, as an app writes it: compiled, never run.

// Names of another module, which this project's own must not make ambiguous.
func everyOthers(_ address: any IPAddress) -> [Any] {
  [Statement(), Registry(), KeySet(), HostName(), address]
}

func everyClient(_ client: SslPinningClient, _ request: URLRequest, chain: [Data]) async throws {
  let session = client.createPinnedSession(
    configuration: .ephemeral, delegate: nil, delegateQueue: .main)
  session.invalidateAndCancel()
  let plain: URLSession = client.createPlainSession()
  let (whole, _): (Data, URLResponse) = try await client.data(for: request, timeout: 30)
  let (chunks, _) = try await client.chunks(for: request, timeout: 30)
  for try await chunk: Data in chunks { print(chunk.count) }
  var iterator: ResponseChunks.Iterator = chunks.makeAsyncIterator()
  _ = try await iterator.next()
  _ = try await client.upload(for: request, from: whole, timeout: 30)
  _ = try await client.upload(for: request, from: AsyncStream<Data> { $0.finish() }, timeout: 30)
  let verdict: PinEvaluation = client.evaluate(presented: chain, host: "api.example.com")
  let problems: [RegistryProblem] = client.registryProblems
  print(plain, client.lists(host: verdict.host), problems.map(\.description))
  let status: RegistryStatus = client.registryStatus
  let (age, end): (TimeInterval, Date?) = (status.age, status.expires)
  print(
    age, end ?? .distantFuture, status.isStale, status.origin == .network, status.storage == .kept)
  let stamp: RegistryStamp = status.stamp
  let version: RegistryStamp.Version? = stamp.version
  print(stamp.confirmationDate, stamp.payloadDigest, version?.epoch ?? 0, version?.version ?? 0)
  print(stamp.fork?.believed.number ?? .init(epoch: 0, version: 1), stamp.fork?.named.digest ?? [])
  try await client.refresh()
  try await client.accept(document: whole)
  for await event in client.events { print(event) }
  for await verdict in client.evaluations { print(explained(verdict)) }
  await client.flushReports()
}

func everyFixedClient(_ request: URLRequest, chain: [Data], bundle: Bundle) async throws {
  let file = ["api.example.com": ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]]
  let pins = try FixedPins(file, trust: .anchors(chain, andSystem: true))
  let others = try FixedPins.anchors(
    BundledCertificates.read(files: [bundle.bundleURL]), hosts: ["*.example.com"])
  let keys = try FixedPins.certificates(
    BundledCertificates.read(in: bundle), pinning: .publicKey, hosts: ["example.com"])
  let plist = try FixedPins.infoPlist(at: bundle.bundleURL, unlistedHosts: .refuse)
  print(
    pins.trust, pins.unlistedHosts, plist.problems.map { "\($0.path) \($0.fault)" }, others == keys)
  var literal = HostPins(leaf: [], ca: [], includesSubdomains: true, match: HostPins.Match.any)
  literal = ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
  print(literal.leaf, literal.ca, literal.includesSubdomains, literal.match == .all)
  let reporting = ReportingConfig(urls: [], appBundleId: "com.example.app", appVersion: "1")
  print(reporting.appPlatform, reporting.appPlatformVersion, reporting.appVendorId ?? "")
  let storage = RegistryStorage.directory(bundle.bundleURL)
  switch FixedPinsClient.initialize(pins: pins, reporting: reporting, storage: storage) {
  case .success(let client):
    print(
      client.pins.problems.isEmpty, client.lists(host: "a.example"), client.createPlainSession())
    client.createPinnedSession().invalidateAndCancel()
    _ = try await client.data(for: request, timeout: 30)
    for try await chunk in try await client.chunks(for: request).0 { print(chunk) }
    _ = try await client.upload(for: request, from: Data())
    _ = client.evaluate(presented: chain, host: "a.example")
    for await event in client.events { print(event) }
    for await verdict in client.evaluations { print(verdict) }
    await client.flushReports()
    let recorder = VerdictRecorder(client)
    print(recorder.all, await recorder.first(timeout: 1) { $0.rule == "leaf-pin" } ?? "none")
  case .failure(.badHost(let error)): print(error.localizedDescription)
  case .failure(let error): print(error, error.recoverySuggestion ?? "")
  }
}

func everySetting() -> SslPinningConfig {
  var config = SslPinningConfig(endpointUrl: "https://a.example/b.json", rootKeys: [], threshold: 2)
  let enforcement: SslPinningConfig.Enforcement = .reportOnly
  let whenExpired: SslPinningConfig.WhenExpired = .keepPinning
  (config.enforcement, config.whenExpired) = (enforcement, whenExpired)
  (config.trust, config.unlistedHosts) = (TrustMode.pinnedKeysOnly, UnlistedHosts.systemTrust)
  (config.fetchTimeout, config.refreshInterval) = (5, 600)
  config.minimumRegistry = RegistryMinimum(epoch: 0, issued: 1_800_000_000)
  config.bundledRegistry = Data()
  config.registryName = "b.json"
  config.requireStatement = true
  config.maximumRegistryBytes = 1 << 20
  config.storage = .none
  config.reporting?.includesReportOnly = false
  print(config.endpointUrl, config.signingKeyBase64, config.rootKeys, config.rootThreshold ?? 1)
  return config
}

func explained(_ verdict: PinEvaluation) -> String {
  let shown: [SPKIPin] = verdict.presented
  let expected: [Pin] = verdict.expectedLeaf + verdict.expectedCA
  print(shown.map(\.base64), expected.map { ($0.spki.bytes, $0.expirationDate) })
  print(verdict.expectedCertificates.map(\.description), verdict.pattern?.description ?? "")
  print(verdict.registry?.confirmationDate ?? .now, verdict.isStale, verdict.hint ?? "")
  return switch verdict.outcome {
  case .matched, .unlisted, .noLivePin: verdict.rule
  case .chainRejected(let fault): fault.lacksAnchor ? "\(fault)" : fault.localizedDescription
  case .mismatch(let role), .uncheckable(let role): "\(role)"
  case .clientTooOld(let names): names.joined()
  case .registryExpired(let time): "\(Date(timeIntervalSince1970: TimeInterval(time)))"
  case .denied(let pin): pin.base64
  case .clearText(let scheme): scheme
  case .unreadableHost(let error): error.localizedDescription
  case .unjudged(let reason): reason
  }
}

func explained(_ error: SslPinningError) -> String {
  switch error {
  case .badConfiguration(.reportOnlyWithoutPath), .badSigningKey(.privateKey), .cancelled:
    "\(error)"
  case .registryRefused(.rolledBack(let version, _), _): version.description
  case .clockBehind(let clock, _): clock.formatted()
  case .httpStatus(let code, let seconds, _): "\(code) \(seconds ?? 0)"
  default: error.localizedDescription
  }
}

func everyTool(clock: TestClock, chain: [Data]) async throws {
  let file = ["api.example.com": ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]]
  let registry = try ScriptedRegistry(file, name: "app.json", at: clock.now)
  try registry.publish(file, at: clock.now)
  try registry.publish(
    ["a.example": []], denied: [], removed: [], enforced: true, at: clock.now, days: 30)
  registry.answer(.status(503, retryAfter: 60))
  registry.answer(ScriptedRegistry.Answer.document(registry.document))
  clock.advance(by: 11)
  clock.set(clock.now.addingTimeInterval(60))
  print(registry.requests, clock.waits)
  var interval = 60.0
  let client = try await registry.client(clock: clock) {
    interval *= 2
    $0.refreshInterval = interval
  }
  let recorder = VerdictRecorder(client)
  print(recorder.all.count)
  let pin = try SPKIPin(certificate: chain.first ?? Data())
  let other = try SPKIPin(parsing: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
  let refusal = PinEvaluation.refused(
    host: "api.example.com", .denied(pin), presented: [pin, other],
    expected: [Pin(other, expirationDate: clock.now)], registry: client.registryStatus.stamp)
  print(refusal.decision == PinEvaluation.Decision.refuse, explained(refusal))
}
