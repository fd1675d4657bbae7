import FaultLab
import Foundation
import HTTPServing
import RegistryCore
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Everything that the demo runs on loopback: a private CA, two HTTPS servers, an attacker with
/// certificates from the clients' CA, a wire that can lead to the attacker, and the registry server.
///
/// The client connects to the wire, so the same URL leads to the real server before an attack and to the
/// attacker during it.
final class DemoStage: Sendable {
  static let shop = "shop.localhost"
  static let bank = "bank.localhost"
  static let unlisted = "news.localhost"
  static let file = "demo.json"

  let directory: DemoDirectory
  let authority: CertificateAuthority
  let shopServer: LocalTLSServer
  let bankServer: LocalTLSServer
  let attacker: InterceptingProxy
  let wire: SwitchableRelay
  let service: RegistryService

  private let real: Endpoint

  /// Starts everything, with its files in `directory`.
  init(in directory: DemoDirectory) throws {
    self.directory = directory
    authority = try CertificateAuthority.makeRoot(name: "Demo root")
      .issueIntermediate(name: "Demo intermediate")
    // The certificate of the shop's server also covers news.localhost, so that only the pin list keeps the
    // client from the unlisted name.
    shopServer = try LocalTLSServer(
      identity: authority.issue(names: [Self.shop, Self.unlisted])
    ) { _ in .text("Welcome to the shop.\n") }
    bankServer = try LocalTLSServer(identity: authority.issue(names: [Self.bank])) { _ in
      .text("Welcome to the bank.\n")
    }
    real = .loopback(shopServer.port)
    attacker = try InterceptingProxy.transparent(upstream: real, authority: authority)
    wire = try SwitchableRelay(to: real)
    service = try Self.service(
      directory: directory.url, authority: authority, shop: shopServer.port, bank: bankServer.port)
  }

  /// The client's URL of the shop.
  var shopURL: String { "https://\(Self.shop):\(wire.port)/account" }
  /// The same server under an unlisted name.
  var unlistedURL: String { "https://\(Self.unlisted):\(wire.port)/" }
  /// The URL of the registry.
  var registryURL: String { "http://\(service.address?.description ?? "")/api/v1/\(Self.file)" }

  /// Points the wire to the attacker, or back to the shop.
  func leadWire(toAttacker: Bool) {
    wire.redirect(to: toAttacker ? .loopback(attacker.port) : real)
  }

  /// Gives the shop's server a new key, like an unannounced renewal.
  func rotateShopKey() throws {
    try shopServer.replaceIdentity(
      authority.issue(names: [Self.shop, Self.unlisted]), closingConnections: true)
  }

  /// Stops every server.
  func tearDown() async {
    await service.stop()
    wire.stop()
    attacker.stop()
    shopServer.stop()
    bankServer.stop()
  }

  private static func service(
    directory: URL, authority: CertificateAuthority, shop: UInt16, bank: UInt16
  ) throws -> RegistryService {
    let key = try SigningKey.generate(bits: 3072)
    try key.write(to: directory.appending(path: "prv.pem"))
    try key.writePublicKey(to: directory.appending(path: "pub.pem"))
    let anchors = directory.appending(path: "ca.pem")
    try authority.root.pem.write(to: anchors, atomically: true, encoding: .utf8)
    let loopback = IPAddress(bytes: [127, 0, 0, 1])
    let endpoints = try [(Self.shop, shop), (Self.bank, bank)].map { name, port in
      WatchedEndpoint(
        fqdn: try HostName(name), port: port, address: loopback,
        patterns: [.exact(try HostName(name))])
    }
    let path = directory.path(percentEncoded: false)
    // A second between rounds and 200 ms between probes, so that nobody has to wait a minute.
    return try RegistryService(
      configuration: ServerConfiguration(
        documents: [DocumentConfiguration(file: Self.file, endpoints: endpoints)],
        listen: ListenAddress("127.0.0.1:0") ?? .standard,
        storage: .sqlite(
          path: directory.appending(path: "registry.db").path(percentEncoded: false)),
        tls: TLSConfiguration(
          directory: path, interval: 1000, confirmationInterval: 200,
          anchors: anchors.path(percentEncoded: false))),
      log: .silent)
  }
}
