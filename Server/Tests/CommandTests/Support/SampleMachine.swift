import Foundation
import TLSTools
import TestSupport

/// A machine on which a sample configuration finds all that it names: its directories, the signing
/// key, the servers that it watches, and their CA among the system's.
struct SampleMachine {
  static let registry = "http://127.0.0.1:7500"

  let machine: PrivateMachine
  let sites: ChildProcess

  /// - Parameter endpoints: the names of the watched servers. Each has a key of its own.
  static func start(endpoints: Set<String>) async throws -> SampleMachine {
    let directory = try TemporaryDirectory()
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    try directory.write(authority.root.pem, to: "certs/ca-certificates.crt")
    let hosts = endpoints.sorted()
    try directory.write("127.0.0.1 localhost \(hosts.joined(separator: " "))\n", to: "hosts")
    for host in hosts {
      _ = try authority.issue(names: [host]).write(to: directory.url, name: host)
    }
    try directory.write(configuration(hosts), to: "nginx.conf")
    try Keys.signing.get().write(to: directory.file("prv.pem"))
    try directory.write(Keys.signing.get().publicKeyPEM, to: "pub.pem")
    let machine = try await PrivateMachine.start(
      in: directory, folders: ["/etc/app", "/var/lib/ssl-pinning", "/opt/ssl-pinning"],
      script: """
        mkdir /etc/app/tls /opt/ssl-pinning/tls
        cp prv.pem pub.pem /etc/app/tls
        cp prv.pem pub.pem /opt/ssl-pinning/tls
        openssl rehash certs
        mount --bind certs /etc/ssl/certs
        mount --bind hosts /etc/hosts
        """)
    let sites = try machine.start("nginx", ["-p", "disk/", "-c", "../nginx.conf", "-e", "stderr"])
    try await sites.waitForOutput(containing: "start worker processes")
    return SampleMachine(machine: machine, sites: sites)
  }

  /// Starts the server of a configuration, and waits until it listens.
  func up(_ sample: SampleConfiguration) async throws -> ChildProcess {
    let server = try machine.start(
      try Tool.path(), ["up"] + sample.arguments,
      environment: try Tool.noProxies.merging(sample.environment) { _, new in new })
    try await server.waitForOutput(containing: "listening on http://0.0.0.0:7500")
    return server
  }

  /// The status of an answer of the server.
  func status(_ path: String) async throws -> String {
    try await machine.run(
      "curl",
      ["-s", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", Self.registry + path]
    ).stdout
  }

  /// The pin that a server shows, as `openssl` sees it.
  func pin(of host: String) async throws -> String {
    let command = """
      set -euo pipefail
      openssl s_client -connect "$0:443" -servername "$0" -verify_return_error </dev/null 2>/dev/null |
        openssl x509 -pubkey -noout | openssl pkey -pubin -outform DER |
        openssl dgst -sha256 -binary | base64
      """
    let end = try await machine.run("bash", ["-c", command, host])
    return end.stdout.trimmingCharacters(in: .newlines)
  }

  private static func configuration(_ hosts: [String]) -> String {
    let blocks = hosts.map {
      """
      server {
        listen 127.0.0.1:443 ssl;
        server_name \($0);
        ssl_certificate \($0).pem;
        ssl_certificate_key \($0).key;
      }

      """
    }
    return """
      daemon off;
      user root;
      worker_processes 1;
      pid nginx.pid;
      error_log stderr notice;
      events { worker_connections 64; }
      http {
        access_log off;
        client_body_temp_path body;
        proxy_temp_path proxy;
        fastcgi_temp_path fastcgi;
        uwsgi_temp_path uwsgi;
        scgi_temp_path scgi;
      \(blocks.joined())
      }

      """
  }
}
