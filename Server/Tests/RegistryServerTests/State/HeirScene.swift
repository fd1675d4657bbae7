import SslPinningRules
import Testing

@testable import RegistryCore

/// A gateway whose ports speak for hosts, and servers that watch it over one store.
protocol HeirScene {
  var bench: MachineBench { get }
}

extension HeirScene {
  static var begin: Int64 { MachineBench.begin }

  /// One port of a gateway, which speaks for hosts.
  func endpoint(_ port: UInt16, _ hosts: String...) -> WatchedEndpoint {
    WatchedEndpoint(
      fqdn: HostName.literal("gate.test"), port: port,
      patterns: hosts.compactMap { try? HostPattern($0) })
  }

  func show(
    _ key: UInt8, under authority: UInt8, at endpoint: WatchedEndpoint, _ server: MachineServer,
    _ now: Int64
  ) {
    let probe = LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))])
    server.probe(probe, endpoint, at: now)
    server.rest(at: now)
  }

  func listed(_ host: String, by server: MachineServer) -> [SPKIPin] {
    DocumentEntry.listed(in: server.published?.bytes ?? [])
      .filter { "\($0.pattern)" == host }.map(\.pin)
  }

  func perform(_ server: MachineServer, at now: Int64, _ change: @escaping DocumentChange) {
    server.ask(1, change)
    server.rest(at: now)
  }

  /// A server of these, over what is stored already.
  func start(_ endpoints: [WatchedEndpoint], at now: Int64) -> MachineServer {
    let server = MachineServer(bench, endpoints: endpoints)
    server.rest(at: now)
    return server
  }

  /// Another configuration, by a restart or without.
  func configure(
    _ server: MachineServer, _ endpoints: [WatchedEndpoint], isRestart: Bool, at now: Int64
  ) -> MachineServer {
    guard isRestart else {
      server.configure(endpoints, at: now)
      server.rest(at: now)
      return server
    }
    let next = start(endpoints, at: now)
    next.upkeep()
    next.rest(at: now)
    return next
  }
}
