import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("nginx under test")
struct NginxTests {
  let authority: CertificateAuthority
  let identity: ServerIdentity
  let directory: TemporaryDirectory

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Root")
    identity = try authority.issueIntermediate(name: "Intermediate").issue(names: ["site.test"])
    directory = try TemporaryDirectory()
    try directory.write(authority.root.pem, to: "root.pem")
  }

  private func curl(
    _ port: UInt16, _ path: String, _ extra: [String] = []
  ) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run(
      "curl",
      [
        "-sS", "--max-time", "30", "--noproxy", "*", "--cacert", directory.path("root.pem"),
        "--resolve", "site.test:\(port):127.0.0.1",
      ] + extra + ["https://site.test:\(port)\(path)"])
  }

  @Test("serves what it is told over HTTP/2 and HTTP/1.1, and logs it")
  func serves() async throws {
    let nginx = try await Nginx.start([
      .init(identity, name: "site.test"), .init(identity, http2: false, protocols: "TLSv1.2"),
    ])
    #expect(try await curl(nginx.port, "/a?b").stdout == "GET /a?b")
    #expect(try await curl(nginx.ports[1], "/c").stdout == "GET /c")
    let log = try await nginx.accesses(waitingFor: 2)
    #expect(log.map(\.version) == ["HTTP/2.0", "HTTP/1.1"])
    #expect(log.map(\.tlsVersion) == ["TLSv1.3", "TLSv1.2"])
    #expect(log.map(\.target) == ["/a?b", "/c"])
    #expect(log.map(\.serverName) == ["site.test", "site.test"])
    #expect(log.map(\.status) == [200, 200])
    let other = try CertificateAuthority.makeRoot(name: "Other")
    let foreign = try directory.write(other.root.pem, to: "other.pem").path
    #expect(try await curl(nginx.port, "/", ["--cacert", foreign]).exitCode == 60)
  }

  @Test("asks for a password, limits bodies, redirects, serves files and clear text")
  func directives() async throws {
    let nginx = try await Nginx.start(
      [
        .init(
          identity,
          directives: """
            client_max_body_size 1k;
            location / { root html; }
            location /locked { auth_basic "x"; auth_basic_user_file htpasswd; root html; }
            location /away { return 302 http://127.0.0.1:1/; }
            location /put { proxy_pass http://127.0.0.1:1; }
            """), .init(),
      ],
      files: [
        "html/locked": "the secret page", "html/page": "a page",
        "htpasswd": Nginx.passwords(["ann": "password"]),
      ])
    #expect(try await curl(nginx.port, "/page").stdout == "a page")
    #expect(try await curl(nginx.port, "/locked", ["-f"]).exitCode == 22)
    #expect(try await curl(nginx.port, "/locked", ["-u", "ann:wrong", "-f"]).exitCode == 22)
    #expect(
      try await curl(nginx.port, "/locked", ["-u", "ann:password"]).stdout == "the secret page")
    let away = try await curl(nginx.port, "/away", ["-o", "/dev/null", "-w", "%{redirect_url}"])
    #expect(away.stdout == "http://127.0.0.1:1/")
    let large = String(repeating: "x", count: 2000)
    let tooLarge = try await curl(
      nginx.port, "/put", ["-d", large, "-o", "/dev/null", "-w", "%{http_code}"])
    #expect(tooLarge.stdout == "413")
    let clear = try await ChildProcess.run("curl", ["-sS", "http://127.0.0.1:\(nginx.ports[1])/x"])
    #expect(clear.stdout == "GET /x")
  }

  @Test("takes another key while it runs")
  func rotation() async throws {
    let nginx = try await Nginx.start(.init(identity))
    let probe = try TLSProbe(anchors: ChainValidator(anchors: [authority.root]))
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(nginx.port)])
    let next = try authority.issue(names: ["site.test"])
    #expect(try await probe.probe(target).leaf.certificate == identity.leaf)
    try await nginx.replaceIdentity(with: next)
    #expect(try await probe.probe(target).leaf.certificate == next.leaf)
  }

  @Test("a configuration it refuses is an error with its reason, and a stopped one is gone")
  func failure() async throws {
    let error = await #expect(throws: Nginx.Failure.self) {
      try await Nginx.start(.init(identity, directives: "nonsense;"))
    }
    #expect(error?.description.contains("unknown directive \"nonsense\"") == true)
    let nginx = try await Nginx.start(.init(identity))
    let listening = try #require(try listener(on: nginx.port))
    try await nginx.stop()
    #expect(try listener(on: nginx.port) != listening)
  }

  @Test("many side by side do not collide")
  func parallel() async throws {
    let identity = identity
    let ports = try await withThrowingTaskGroup(of: (UInt16, Nginx).self) { group in
      for number in 0..<8 {
        group.addTask {
          let nginx = try await Nginx.start(
            .init(identity, directives: "return 200 \"\(number)\";"))
          return (nginx.port, nginx)
        }
      }
      return try await group.reduce(into: [UInt16: Nginx]()) { $0[$1.0] = $1.1 }
    }
    #expect(ports.count == 8)
    var answers: Set<String> = []
    for port in ports.keys { answers.insert(try await curl(port, "/").stdout) }
    #expect(answers == Set((0..<8).map(String.init)))
  }
}
