import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Everything that a row runs on loopback. Rows share nothing.
final class Environment: Sendable {
  static let host = "shop.localhost"

  let timeline = Timeline()
  /// Issues the certificates of servers and attackers; clients trust its root.
  let authority: CertificateAuthority
  let registry: DrillRegistry
  private let directory: URL

  /// The key of the root above ``authority``.
  let rootKey: PrivateKey

  /// - Parameter place: where its directory is made.
  init(in place: URL = FileManager.default.temporaryDirectory) throws {
    rootKey = try .generate(.p256)
    authority = try CertificateAuthority.makeRoot(
      name: "Drill root", key: rootKey,
      validity: Self.validity(timeline.world, from: -3650, to: 3650)
    ).issueIntermediate(
      name: "Drill intermediate", validity: Self.validity(timeline.world, from: -1825, to: 1825))
    registry = try DrillRegistry(timeline)
    directory =
      place
      .appending(path: "drill-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  /// A directory for a server's files, removed with the stage.
  func makeDirectory() throws -> URL {
    let made = directory.appending(path: UUID().uuidString, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return made
  }

  /// A span of days around a time.
  static func validity(_ now: Int64, from: Int64, to: Int64) -> Validity {
    Validity(notBefore: now + from * Timeline.day, notAfter: now + to * Timeline.day)
  }

  /// A certificate from the clients' CA: by default 30 days old, and valid for another 335.
  func issue(
    _ names: String..., key: PrivateKey? = nil, by authority: CertificateAuthority? = nil,
    from: Int64 = -30, to: Int64 = 335
  ) throws -> ServerIdentity {
    try (authority ?? self.authority).issue(
      names: names, key: try key ?? .generate(.p256),
      validity: Self.validity(timeline.world, from: from, to: to))
  }

  /// A site whose key the registry lists in its next document.
  func site(_ host: String = Environment.host) throws -> Site { try Site(host, issue(host)) }

  var trust: TrustMode { .anchors([authority.root.der]) }

  /// Where an app on this stage keeps its registry.
  var storage: RegistryStorage { .directory(directory) }

  /// Rewrites the files that apps have stored, like an attacker with access to the device.
  func rewriteStorage(_ change: (String) throws -> String) throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: directory, includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "json" }
    var changes = 0
    for file in files {
      let old = try String(contentsOf: file, encoding: .utf8)
      let new = try change(old)
      if new != old { changes += 1 }
      try Data(new.utf8).write(to: file)
    }
    try show(changes > 0, "nothing that is stored was changed")
  }

  func config() -> SslPinningConfig {
    SslPinningConfig(
      endpointUrl: registry.url, rootKeys: [registry.root.publicKeyPEM], threshold: 1,
      trust: trust, storage: storage)
  }

  /// Starts an app, which finds the storage of an earlier one.
  ///
  /// - Parameter document: handed over at the start.
  func start(
    accepting document: [UInt8]? = nil, _ adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws(SslPinningError) -> App {
    var config = config()
    adjust(&config)
    return App(
      try await SslPinningClient(
        config: config, accepting: document.map { Data($0) }, clocks: timeline.clocks()))
  }

  /// Lets an hour pass, at whose end the app refreshes: that often it does so by itself.
  func hour(_ app: App) async throws(SslPinningError) {
    timeline.pass(seconds: Timeline.hour)
    try await app.client.refresh()
  }

  /// The same, while the app sends requests every minute.
  func hour(_ log: ChangeLog, _ app: App, at site: Site) async throws {
    for _ in 0..<60 {
      await log.get(try site.url(), app.dialers, expecting: site.body)
      timeline.pass(seconds: Timeline.hour / 60)
      log.nextSecond()
    }
    try await app.client.refresh()
  }
}

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Dialers without pins.
extension Dialer {
  /// Checks chain and host name against these anchors and nothing else, like an app with the same CAs and
  /// without pins.
  ///
  /// - Parameter time: Unix time in seconds at which the chain must be valid.
  static func unpinned(
    _ trust: TrustMode, at time: Int64, name: String = "a client without pins"
  ) -> Dialer {
    Dialer(name: name) { url in
      do {
        let fetched = try await DocumentFetcher(trust: trust).fetch(
          DocumentRequest(
            url: RegistryURL(url.absoluteString), maximumBytes: 1 << 20, timeout: 20,
            at: TrustTime(clock: time)))
        guard case .fresh(let body, _) = fetched else { return .failed("no body") }
        return .served(String(decoding: body, as: UTF8.self))
      } catch { return .failed("\(error)") }
    }
  }

  /// An ordinary `URLSession`, for clear text.
  ///
  /// - Parameter first: the first URL, if not that of the pinned dials.
  static func ordinarySession(from first: URL? = nil) -> Dialer {
    Dialer(name: "an ordinary session") { url in
      let session = URLSession(configuration: .ephemeral)
      defer { session.invalidateAndCancel() }
      do {
        let body = try await session.data(from: first ?? url).0
        return .served(String(decoding: body, as: UTF8.self))
      } catch { return .failed("\(error)") }
    }
  }
}

extension Environment {
  /// The dialer without pins, by the device's clock.
  var control: Dialer { .unpinned(trust, at: timeline.device) }

  /// Checks that a client which uses only the device's clock would not be served.
  ///
  /// - Parameter time: the device's clock, if it is not the stage's.
  func mustNotBeValidYet(_ site: Site, at time: Int64? = nil) async throws {
    let control = Dialer.unpinned(trust, at: time ?? timeline.device)
    let answer = await control.dial(try site.url())
    try show(answer.isFailure, "the certificate is valid by the device's clock: \(answer.text)")
  }

  /// A dialer that accepts any certificate: it goes through a proxy that does.
  var blindControl: Dialer {
    Dialer(name: "a client that checks nothing") { [self] url in
      do {
        guard let host = url.host, let port = url.port.flatMap(UInt16.init(exactly:)) else {
          return .failed("\(url) has no port")
        }
        let proxy = try InterceptingProxy.transparent(
          upstream: .loopback(port), authority: authority)
        defer { proxy.stop() }
        return await control.dial(try Site.url(host, proxy.port, url.path))
      } catch { return .failed("\(error)") }
    }
  }
}

/// The proxies in this process's environment, like those of many devices.
///
/// - libcurl reads them from the environment, so they are set once, before anything else runs; rows
///   point the wires behind them. Names below `localhost` bypass proxies, so rows use `.example`, which
///   is never resolved.
struct ProxyLines: Sendable {
  /// The wire for `https` (CONNECT).
  let secure: SwitchableRelay
  /// The wire for `http`.
  let clearText: SwitchableRelay

  /// The wires of this process, after ``install()``.
  static let installed = Result { try ProxyLines() }

  /// Sets the environment. Call it before there is a second thread that might read it.
  static func install() throws {
    let lines = try installed.get()
    for name in ["all_proxy", "ALL_PROXY", "HTTPS_PROXY", "NO_PROXY"] { unsetenv(name) }
    setenv("https_proxy", "http://127.0.0.1:\(lines.secure.port)", 1)
    setenv("http_proxy", "http://127.0.0.1:\(lines.clearText.port)", 1)
    setenv("no_proxy", "localhost,127.0.0.1,::1", 1)
  }

  private init() throws {
    // They lead nowhere until a row points them.
    secure = try SwitchableRelay(to: .loopback(9))
    clearText = try SwitchableRelay(to: .loopback(9))
  }
}
