import FaultLab
import HTTPServing
import RegistryServer
import SslPinningRules
import TLSTools

/// What `lab proxy` was asked to do.
struct ProxyOptions {
  /// Why a command line cannot be carried out.
  struct WrongUsage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }

  /// Loopback unless an address is named: a device on the desk needs that of its network.
  private(set) var listen = Endpoint.loopback(8080)
  private(set) var mode = LabProxy.Mode.intercept
  /// Empty: every host.
  private(set) var hosts: [HostPattern] = []
  private(set) var mustRefuse: [HostPattern] = []
  /// Seconds; `nil`: until Ctrl-C.
  private(set) var seconds: Double?
  private(set) var isJSON = false
  /// Where its CA is kept; `nil`: in a directory that goes with it.
  private(set) var directory: String?
  /// The certificate and the key of a CA of the tester's own.
  private(set) var authority: (certificate: String, key: String)?

  init(_ arguments: [String]) throws(WrongUsage) {
    var rest = arguments[...]
    var (certificate, key) = (String?.none, String?.none)
    while let flag = rest.popFirst() {
      if flag == "--json" {
        isJSON = true
        continue
      }
      guard Self.flags.contains(flag) else { throw WrongUsage("unknown argument \(flag)") }
      guard let value = rest.popFirst(), !value.isEmpty else {
        throw WrongUsage("\(flag) needs a value")
      }
      switch flag {
      case "--listen": listen = try Self.place(value)
      case "--mode":
        guard let known = LabProxy.Mode(rawValue: value) else {
          let names = LabProxy.Mode.allCases.map(\.rawValue).joined(separator: ", ")
          throw WrongUsage("unknown mode \(value); hint: one of \(names)")
        }
        mode = known
      case "--host": hosts.append(try Self.pattern(value))
      case "--must-refuse": mustRefuse.append(try Self.pattern(value))
      case "--for":
        guard let milliseconds = GoDuration.milliseconds(value), milliseconds > 0 else {
          throw WrongUsage("--for \(value) is no time; hint: 90s, 10m, 1h")
        }
        seconds = Double(milliseconds) / 1000
      case "--dir": directory = value
      case "--ca": certificate = value
      default: key = value
      }
    }
    switch (certificate, key) {
    case (let certificate?, let key?): authority = (certificate, key)
    case (nil, nil): break
    default: throw WrongUsage("--ca and --ca-key go together")
    }
    if authority != nil, directory != nil {
      throw WrongUsage("--dir keeps a CA that is made here, and --ca names another")
    }
  }

  private static let flags: Set<String> = [
    "--listen", "--mode", "--host", "--must-refuse", "--for", "--dir", "--ca", "--ca-key",
  ]

  private static func pattern(_ text: String) throws(WrongUsage) -> HostPattern {
    do throws(HostNameError) { return try HostPattern(text) } catch {
      throw WrongUsage("\(error)")
    }
  }

  /// An address of this machine alone or of a network at home.
  ///
  /// - The proxy refuses no destination and nobody signs in to it: on a public address, or on every address, it
  ///   would be a proxy for the world.
  private static func place(_ text: String) throws(WrongUsage) -> Endpoint {
    guard let address = ListenAddress(text) else {
      throw WrongUsage("--listen \(text) is no address; hint: 192.168.1.20:8080")
    }
    guard let host = try? HostName(address.host), case .address(let ip) = host, ip.isPrivate else {
      throw WrongUsage(
        "--listen \(text) may be open to the world; hint: name this machine's private address")
    }
    return Endpoint(address: address.host, port: address.port)
  }
}

extension IPAddress {
  /// Whether it is loopback, or of a network that the internet has no route to: RFC 1918, RFC 6598, RFC 3927,
  /// RFC 4193.
  var isPrivate: Bool {
    guard bytes.count == 4 else {
      return bytes == [UInt8](repeating: 0, count: 15) + [1] || bytes[0] & 0xfe == 0xfc
    }
    return switch (bytes[0], bytes[1]) {
    case (127, _), (10, _), (192, 168), (169, 254): true
    case (172, 16...31), (100, 64...127): true
    default: false
    }
  }
}
