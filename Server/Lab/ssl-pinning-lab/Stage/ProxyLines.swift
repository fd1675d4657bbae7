import FaultLab
import Foundation
import TLSTools

/// The proxies that this process's environment names, as many devices are given some.
///
/// - libcurl reads them from the environment, so they are set once, before anything else runs; rows
///   lead the wires behind them. Names below `localhost` never go there: rows use `.example`, which
///   no resolver is asked for.
struct ProxyLines: Sendable {
  /// Where `https` goes: CONNECT.
  let secure: SwitchableRelay
  /// Where `http` goes.
  let clearText: SwitchableRelay

  /// The lines of this process, once ``install()`` was called.
  static let installed = Result { try ProxyLines() }

  /// Sets the environment. To be called before there is a second thread that might read it.
  static func install() throws {
    let lines = try installed.get()
    for name in ["all_proxy", "ALL_PROXY", "HTTPS_PROXY", "NO_PROXY"] { unsetenv(name) }
    setenv("https_proxy", "http://127.0.0.1:\(lines.secure.port)", 1)
    setenv("http_proxy", "http://127.0.0.1:\(lines.clearText.port)", 1)
    setenv("no_proxy", "localhost,127.0.0.1,::1", 1)
  }

  private init() throws {
    // Nowhere, until a row leads them.
    secure = try SwitchableRelay(to: .loopback(9))
    clearText = try SwitchableRelay(to: .loopback(9))
  }
}
