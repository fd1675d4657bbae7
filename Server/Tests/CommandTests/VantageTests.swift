import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("vantage and vantage join", .timeLimit(.minutes(5))) struct VantageTests {
  private static let client = SPKIPin.example

  @Test(
    "a vantage point that would be open, or of no use, does not start",
    arguments: [
      (["--host", "a.example"], "without --client nobody is let in"),
      (["--client", client], "there is no host to be asked for"),
      (["--client", "x", "--host", "a.example"], "--client x: "),
      (["--client", client, "--host", "*.example.com"], "no wildcard"),
      (["--client", client, "--host", "a.example", "--network", "0.0.0.0/0"], "is too wide"),
      (["--client", client, "--host", "a.example", "--network", "::/0"], "is too wide"),
      (
        ["--client", client, "--host", "a.example", "--network", "10.1.2.3/8"],
        "is inside of 10.0.0.0/8"
      ),
      (
        ["--client", client, "--host", "a.example", "--listen", "8443"], "is no address with a port"
      ),
    ])
  func refused(_ arguments: [String], _ reason: String) async throws {
    try await withTemporaryDirectory { directory in
      let end = try await Tool.run(["vantage", "--dir", directory.path("point")] + arguments)
      #expect(end.exitCode == 2)
      #expect(end.stderr.contains(reason) && end.speaksProperly, "\(end.stderr)")
      #expect(
        arguments.contains("--listen")
          || !FileManager.default.fileExists(atPath: directory.path("point")))
    }
  }

  @Test(
    "both halves: the registry is let in, sees its endpoint, and gets the entry; a stranger does not"
  )
  func join() async throws {
    let directory = try TemporaryDirectory()
    let authority = try CertificateAuthority.makeRoot(name: "Site CA")
    let site = try LocalTLSServer(identity: authority.issue(names: ["localhost"])) { _ in
      .text("never asked")
    }
    try directory.write(authority.root.pem, to: "ca.pem")
    for name in ["registry", "stranger"] {
      try FileManager.default.createDirectory(
        at: directory.file(name), withIntermediateDirectories: true)
      try directory.write(
        """
        keys: [{fqdn: localhost, port: \(site.port)}]
        storage: {type: memory}
        tls: {dir: "\(directory.path(name))", anchors: "\(directory.path("ca.pem"))"}
        """, to: "\(name)/config.yaml")
    }
    func join(as name: String, _ more: String...) async throws -> ChildProcess.Outcome {
      try await Tool.run(["vantage", "join", "--config-path", directory.path(name)] + more)
    }
    let first = try await join(as: "registry")
    #expect(first.exitCode == 0, "\(first.stderr)")
    #expect(first.stdout.hasPrefix("ssl-pinning vantage --client "))
    #expect(first.stdout.hasSuffix(" \\\n  --host localhost:\(site.port)\n"))
    #expect(first.stderr.contains("(admin add, or the console) needs a --host, too"))
    #expect(try await join(as: "registry").stdout == first.stdout)
    let key = directory.path("registry/vantage-client.key")
    let mode = try FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? Int
    #expect(mode == 0o600)

    let words = first.stdout.replacing("\\\n", with: " ").split(whereSeparator: \.isWhitespace)
    try directory.write("# what is watched\n\(words.last ?? "")\n", to: "hosts")
    let point = try Tool.start([
      "vantage", "--client", String(words[3]), "--hosts", directory.path("hosts"),
      "--network", "127.0.0.0/8", "--dir", directory.path("point"), "--listen", "127.0.0.1:0",
    ])
    try await point.waitForOutput(containing: "--name NAME --pin ")
    let line = try #require(point.stdout.firstMatch(of: /HOST:([0-9]+) --name NAME --pin (\S+)/))
    let (port, pin) = (String(line.1), String(line.2))

    let joined = try await join(
      as: "registry", "https://localhost:\(port)", "--name", "fra", "--pin", pin)
    #expect(joined.exitCode == 0, "\(joined.stdout)\(joined.stderr)")
    #expect(
      joined.stdout.hasPrefix("    - name: \"fra\"\n      proxy: \"https://localhost:\(port)\""))
    #expect(joined.stdout.contains(pin) && joined.stderr.contains("1 of 1 endpoints"))

    let stranger = try await join(
      as: "stranger", "https://localhost:\(port)", "--name", "fra", "--pin", pin)
    #expect(stranger.exitCode == 1 && stranger.stdout.isEmpty, "\(stranger.stdout)")
    #expect(stranger.stderr.contains("nothing was seen through fra"), "\(stranger.stderr)")

    // Another key at the same place is not the vantage point.
    let impostor = try await join(
      as: "registry", "https://localhost:\(port)", "--name", "fra", "--pin", Self.client)
    #expect(impostor.exitCode == 1 && impostor.stdout.isEmpty)
    #expect(impostor.stderr.contains("it shows another key"), "\(impostor.stderr)")

    // A host that is taken off the list is not asked for any more, and a file that is none changes nothing.
    try directory.write("*.example.com\n", to: "hosts")
    point.send(SIGHUP)
    try await point.waitForOutput(containing: "vantage_hosts_refused")
    try directory.write("other.example\n", to: "hosts")
    point.send(SIGHUP)
    try await point.waitForOutput(containing: "\"vantage_hosts\"")
    let refused = try await join(
      as: "registry", "https://localhost:\(port)", "--name", "fra", "--pin", pin)
    #expect(refused.exitCode == 1)
    #expect(refused.stderr.contains("the proxy answered 403; hint: "), "\(refused.stderr)")
    let end = try await point.terminate(seconds: 30)
    #expect(end.exitCode == 0)
    #expect(end.stderr.contains("vantage_client_refused"), "\(end.stderr)")
    #expect(end.stderr.contains("\"status\":\"403\""), "\(end.stderr)")
  }
}

extension SPKIPin {
  /// Nobody's.
  fileprivate static let example = Data(repeating: 7, count: 32).base64EncodedString()
}
