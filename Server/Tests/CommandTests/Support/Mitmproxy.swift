import Foundation
import TestSupport

/// A stock mitmproxy on a free loopback port, with a CA of its own.
struct Mitmproxy {
  struct Missing: Error, CustomStringConvertible {
    let description: String
  }

  private let process: ChildProcess
  private let directory: TemporaryDirectory
  let port: UInt16

  /// Starts it.
  ///
  /// - Parameter upstreamCA: the file with the CA that it trusts servers by.
  /// - Throws: ``Missing`` where it is not installed: without it nothing is proved.
  init(upstreamCA: String) async throws {
    let program = Vectors.package
      .appending(path: ".build/tools/mitmproxy/bin/mitmdump").path(percentEncoded: false)
    guard FileManager.default.isExecutableFile(atPath: program) else {
      throw Missing(description: "no \(program); hint: make deps-test installs it")
    }
    directory = try TemporaryDirectory()
    process = try ChildProcess(
      program,
      [
        "--listen-host", "127.0.0.1", "--listen-port", "0", "--set", "confdir=\(directory.path())",
        "--set", "ssl_verify_upstream_trusted_ca=\(upstreamCA)", "--set", "flow_detail=1",
      ], environment: ["PYTHONUNBUFFERED": "1"])
    let marker = "listening at 127.0.0.1:"
    try await process.waitForOutput(containing: marker)
    // The line may still be on its way behind the marker.
    try await process.waitForOutput(containing: ".\n")
    let digits = process.stdout.components(separatedBy: marker).last?.prefix(while: \.isNumber)
    guard let port = digits.flatMap({ UInt16($0) }) else {
      throw Missing(description: "mitmdump said no port: \(process.stdout)")
    }
    self.port = port
  }

  var url: String { "http://127.0.0.1:\(port)" }

  /// The certificate of its CA, in PEM.
  var caCertificate: URL { directory.file("mitmproxy-ca-cert.pem") }

  /// Everything it said, the requests it read among it.
  var log: String { process.stdout + process.stderr }

  func waitForLog(containing text: String) async throws {
    try await process.waitForOutput(containing: text)
  }

  func stop() async throws { try await process.terminate() }
}
