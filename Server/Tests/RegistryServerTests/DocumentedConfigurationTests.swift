import Foundation
import HTTPServing
import RegistryServer
import RegistryStores
import SslPinningRules
import TestSupport
import Testing

@Suite("The field's documented configuration") struct DocumentedConfigurationTests {
  static let variants: [(String, StorageConfiguration)] = [
    ("memory", .memory), ("fs", .fileSystem(directory: "/var/lib/ssl-pinning/dumps")),
    (
      "redis",
      .redis(
        dsn: "redis://user:password@localhost:6379/0?maintnotifications=disabled",
        pool: ConnectionPoolConfiguration())
    ),
    (
      "postgres",
      .postgres(
        dsn: "postgres://user:password@localhost:5432/ssl_pinning?sslmode=disable",
        pool: ConnectionPoolConfiguration(
          maxOpen: 5, maxIdle: 5, maxIdleTime: 300_000, maxLifetime: 1_800_000))
    ),
  ]

  @Test("is read unchanged, whichever store it keeps", arguments: variants)
  func variant(_ name: String, _ storage: StorageConfiguration) throws {
    let read = try ServerConfiguration(yaml: Vectors.bytes("configuration/\(name).yaml"))
    #expect(read.storage == storage)
    #expect(
      read.server
        == HTTPConfiguration(listen: try #require(ListenAddress("0.0.0.0:7500"))))
    #expect(
      read.tls == TLSConfiguration(directory: "/etc/app/tls", interval: 30_000, timeout: 10_000))
    #expect(read.logLevel == .info && read.logFormat == .json && !read.logPretty)
    let first = try #require(read.documents.first)
    #expect(read.documents.map(\.file) == ["example.com.json", "zoo.example.com.json"])
    #expect(
      first.endpoints.map { "\($0.fqdn)" } == ["example.com", "foo.example.com", "bar.example.com"])
    // The field publishes the second alone, and leaves the apex unpinned.
    #expect(
      first.endpoints.first?.patterns == [
        try HostPattern("example.com"), try HostPattern("*.example.com"),
      ])
    #expect(first.endpoints[1].patterns == [try HostPattern("foo.example.com")])
  }

  @Test("is refused as it is documented, because of the key that stands four times")
  func stacked() throws {
    let error = #expect(throws: ConfigurationError.self) {
      try ServerConfiguration(yaml: Vectors.bytes("configuration/stacked.yaml"))
    }
    let lines = error?.description.split(separator: "\n")
    #expect(
      lines?.first
        == "line 28: storage.type stands twice; hint: it was first set on line 25; keep one of them"
    )
    #expect(lines?.count == 4)
  }

  @Test("its environment is read unchanged")
  func environment() throws {
    let directory = try TemporaryDirectory()
    let read = try ConfigurationSources(
      directory: directory.path(),
      environment: Vectors.sampleEnvironment()
    ).read()
    #expect(
      read.tls
        == TLSConfiguration(directory: "/opt/ssl-pinning/tls", interval: 1000, timeout: 3000))
    #expect(
      read.storage
        == .postgres(
          dsn: "postgres://user:pass@localhost:5432/db?sslmode=disable",
          pool: ConnectionPoolConfiguration()))
    #expect(read.documents.map(\.file) == ["example.com.json"])
    #expect(
      read.documents.first?.endpoints.map { $0.patterns.map(\.description) }
        == [["www.example.com"], ["mail.example.com"]])
  }
}
