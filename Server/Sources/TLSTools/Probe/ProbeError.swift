import SslPinningPlatform

/// Why a server could not be probed. A bad certificate is not an error: see `ProbedServer`.
public enum ProbeError: Error, Hashable, Sendable {
  /// How far the probe got before its time was up.
  public enum Stage: String, Sendable, Hashable {
    /// It waited for other probes to finish.
    case queue
    case dns
    case connect
    /// It waited for a proxy to open a tunnel.
    case tunnel
    case handshake
  }

  /// Why a proxy opened no tunnel.
  public enum ProxyFault: Sendable, Hashable {
    /// It answered with another status than 2xx.
    case refused(status: Int)
    /// It did not answer in HTTP/1; `beginning` is the start of its answer, made plain.
    case notHTTP(beginning: String)
    /// Its answer is longer than the limit.
    case tooLong
    /// Bytes followed its answer before the server could have spoken.
    case spokeEarly
    /// It failed to prove its identity, or ended TLS; it was not asked for a tunnel.
    case untrusted(reason: String)
    /// It closed the connection instead of answering.
    case closed(reason: String)
  }

  /// Neither a host name in ASCII nor a numeric address, or no port.
  case invalidTarget(String)
  /// The name has no address; `reason` is the resolver's.
  case dns(host: String, reason: String)
  /// Nobody listens there.
  case refused(Endpoint)
  /// There is no way there; `reason` is the system's.
  case unreachable(Endpoint, reason: String)
  /// The deadline passed.
  case timeout(Stage)
  /// The answer is not TLS; `beginning` is its start, made plain.
  case notTLS(beginning: String)
  /// The proxy on the way opened no tunnel.
  case proxy(ProxyFault)
  /// The server or OpenSSL ended the handshake before a certificate could be judged.
  case handshake(reason: String)
  /// The task was cancelled, or the probe was released.
  case cancelled
  /// A fault of this machine (descriptors, memory, trust store).
  case local(reason: String)
}

extension ProbeError {
  /// The first line of an answer, made fit for messages: whoever stands at an endpoint chooses it, and a receiver of
  /// notifications, or a firewall before it, may refuse what looks like markup or code.
  static func beginning(_ bytes: some Sequence<UInt8>) -> String {
    let line = bytes.prefix { $0 != 10 && $0 != 13 }
    let plain = line.map { byte in
      switch Unicode.Scalar(byte) {
      case "a"..."z", "A"..."Z", "0"..."9", " ", ".", "/", "-": byte
      default: UInt8(ascii: "?")
      }
    }
    return String(decoding: plain, as: UTF8.self)
  }
}

extension ProbeError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .invalidTarget(let text):
      "'\(text)' is no host and port; hint: write example.com, example.com:8443 or [::1]:443"
    case .dns(let host, let reason): "cannot look up \(host): \(reason)"
    case .refused(let endpoint): "\(endpoint) refused the connection; hint: is the port right?"
    case .unreachable(let endpoint, let reason): "cannot reach \(endpoint): \(reason)"
    case .timeout(.queue): "the time was up before the probe's turn came"
    case .timeout(.dns): "the time was up while looking up the name"
    case .timeout(.connect): "the time was up while connecting; hint: a firewall may drop packets"
    case .timeout(.tunnel): "the proxy did not answer in time"
    case .timeout(.handshake): "the server accepted the connection but did not finish TLS in time"
    case .notTLS(let beginning): "the server does not speak TLS: it answered '\(beginning)'"
    case .proxy(let fault): fault.description
    case .handshake(let reason): "the TLS handshake failed: \(reason)"
    case .cancelled: "cancelled"
    case .local(let reason): "cannot probe from here: \(reason)"
    }
  }
}

extension ProbeError.ProxyFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .refused(status: 407):
      "the proxy answered 407; hint: it must let this server in by address"
    case .refused(status: 403):
      "the proxy answered 403; hint: it has to know this host and port (ssl-pinning vantage --host)"
    case .refused(let status): "the proxy answered \(status)"
    case .notHTTP(let beginning): "the proxy does not speak HTTP/1: it answered '\(beginning)'"
    case .tooLong: "the proxy's answer has no end"
    case .spokeEarly: "the proxy sent bytes that no server can have sent"
    case .untrusted(let reason): "the proxy did not prove itself: \(reason)"
    case .closed(let reason): "the proxy closed the connection: \(reason)"
    }
  }
}

extension ProbeError: ExplainedError {}
