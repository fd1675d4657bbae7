import Foundation
import TestSupport

/// A configuration that the reference server documents, and what its clients see of it.
struct SampleConfiguration: CustomStringConvertible {
  /// What clients find under a name, and the endpoint whose key that is.
  struct Name: Hashable {
    let domainName: String
    let fqdn: String
  }

  let name: String
  let arguments: [String]
  var readsEnvironment = false
  let store: SampleStore
  /// By file: what the reference server publishes.
  let published: [String: [Name]]
  /// By file: what it leaves out.
  let apexes: [String: [Name]]

  var description: String { "\(name), \(store)" }

  /// The servers that are watched.
  var endpoints: Set<String> { Set(published.values.joined().map(\.fqdn)) }

  var environment: [String: String] {
    get throws { try readsEnvironment ? Vectors.sampleEnvironment() : [:] }
  }

  /// A variant of the sample file.
  static func file(_ name: String, _ store: SampleStore) -> SampleConfiguration {
    let path = Vectors.root.appending(path: "configuration/\(name).yaml")
    return SampleConfiguration(
      name: "\(name).yaml", arguments: ["--config-file", path.path(percentEncoded: false)],
      store: store,
      published: [
        "example.com.json": [
          Name(domainName: "*.example.com", fqdn: "example.com"),
          Name(domainName: "foo.example.com", fqdn: "foo.example.com"),
          Name(domainName: "*.bar.example.com", fqdn: "bar.example.com"),
        ],
        "zoo.example.com.json": [Name(domainName: "*.zoo.example.com", fqdn: "zoo.example.com")],
      ],
      apexes: [
        "example.com.json": [
          Name(domainName: "example.com", fqdn: "example.com"),
          Name(domainName: "bar.example.com", fqdn: "bar.example.com"),
        ],
        "zoo.example.com.json": [Name(domainName: "zoo.example.com", fqdn: "zoo.example.com")],
      ])
  }

  /// The sample environment; it names every published domain itself.
  static func environment(_ store: SampleStore) -> SampleConfiguration {
    SampleConfiguration(
      name: "environment.txt", arguments: [], readsEnvironment: true,
      store: store,
      published: [
        "example.com.json": [
          Name(domainName: "www.example.com", fqdn: "example.com"),
          Name(domainName: "mail.example.com", fqdn: "mail.example.com"),
        ]
      ], apexes: [:])
  }
}
