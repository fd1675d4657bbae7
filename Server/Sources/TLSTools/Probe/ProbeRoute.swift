/// From where a server is looked at.
package enum ProbeRoute: Sendable, Hashable {
  /// From this machine, at every address of the server.
  case direct
  /// From this machine, at the first address of the server that can be reached.
  case directInTurn
  /// Through an HTTP proxy that tunnels (CONNECT, RFC 9110 section 9.3.6). It is told the server's
  /// name and looks that up itself: its answer is the one that counts where it stands.
  ///
  /// - Parameter trust: how the proxy proves over TLS who it is; `nil`: it is spoken to in clear text.
  case tunnel(host: String, port: UInt16, trust: ProxyTrust? = nil)
}
