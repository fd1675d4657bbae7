// swift-tools-version: 6.2
import PackageDescription

// The map. An import goes only downwards; the compiler refuses one that is not declared here
// (`--explicit-target-dependency-import-check error`), `make check` what lies outside Swift's reach.
//
//   Sources/  what an app depends on             Server/Sources/  what an operator installs
//
//   SslPinning ◀─ SslPinningTesting              ssl-pinning
//       │                                            │
//   SslPinningPlatform ─ CSslPinning…            RegistryServer
//       │                                            │    │     │      │
//   SslPinningRules                                  │ HTTPServing │ RegistryStores
//       │                                            │        RegistryCore
//   CanonicalJSON                                TLSTools         PolicyFormats (the program alone)
//
//   Server/Lab/  never installed: ssl-pinning-lab ─ FaultLab
//
// Products are libraries, and one plugin that depends on nothing: of a dependency SwiftPM loads what its
// products reach, so an app meets neither the server nor its system libraries. The programs are built by
// name all the same (`swift build --product ssl-pinning`). The C modules that an app reaches are called
// CSslPinning…, because every module in an app's graph needs a name of its own. `make check` holds both.

// The Makefile asks for it. Whoever depends on this package does not: Xcode and SwiftPM's newer build system silence
// all warnings of dependencies, wherever these lie, and the compiler refuses both at once.
let isStrict = Context.environment["PINNING_BUILD_STRICT"] != nil

let strict: [SwiftSetting] =
  [.swiftLanguageMode(.v6)] + (isStrict ? [.treatAllWarnings(as: .error)] : [])

let linux: TargetDependencyCondition? = .when(platforms: [.linux])

// MARK: - What an app depends on

var targets: [Target] = [
  .systemLibrary(
    name: "CSslPinningOpenSSL", pkgConfig: "openssl",
    providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
  .systemLibrary(
    name: "CSslPinningCurl", pkgConfig: "libcurl",
    providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
  .target(
    name: "CSslPinningShims",
    dependencies: [
      .target(name: "CSslPinningOpenSSL", condition: linux),
      .target(name: "CSslPinningCurl", condition: linux),
    ]),
  .target(name: "CanonicalJSON", swiftSettings: strict),
  .target(name: "SslPinningRules", dependencies: ["CanonicalJSON"], swiftSettings: strict),
  .target(
    name: "SslPinningPlatform",
    dependencies: [
      "CanonicalJSON", "SslPinningRules",
      .target(name: "CSslPinningOpenSSL", condition: linux),
      .target(name: "CSslPinningCurl", condition: linux),
      .target(name: "CSslPinningShims", condition: linux),
    ],
    swiftSettings: strict),
  .target(
    name: "SslPinning", dependencies: ["SslPinningRules", "SslPinningPlatform"],
    swiftSettings: strict),
  .target(
    name: "SslPinningTesting",
    dependencies: ["CanonicalJSON", "SslPinningRules", "SslPinningPlatform", "SslPinning"],
    swiftSettings: strict),
  // `swift package refresh-registry`: runs an installed `ssl-pinning`, and builds none.
  .plugin(
    name: "RefreshRegistry",
    capability: .command(
      intent: .custom(
        verb: "refresh-registry",
        description: "Fetch the registry document that the app ships, and check it."),
      permissions: [
        .writeToPackageDirectory(reason: "It replaces the registry document that the app ships."),
        .allowNetworkConnections(
          scope: .all(ports: []), reason: "It fetches the registry from its server."),
      ])),
]

// MARK: - What an operator installs, the lab, and the tests

#if os(Linux)
  /// A target of the server's half, in a folder of its own.
  func server(
    _ name: String, in folder: String = "Sources", _ dependencies: [Target.Dependency],
    packageAccess: Bool = true, resources: [Resource]? = nil
  ) -> Target {
    .target(
      name: name, dependencies: dependencies, path: "Server/\(folder)/\(name)",
      resources: resources, packageAccess: packageAccess, swiftSettings: strict)
  }

  func program(
    _ name: String, in folder: String, _ dependencies: [Target.Dependency],
    resources: [Resource]? = nil
  ) -> Target {
    .executableTarget(
      name: name, dependencies: dependencies, path: "\(folder)/\(name)", resources: resources,
      swiftSettings: strict)
  }

  func tests(_ name: String, in folder: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(
      name: name, dependencies: dependencies + ["TestSupport"], path: "\(folder)/\(name)",
      swiftSettings: strict)
  }

  func library(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(
      name: name, path: "Server/Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
  }

  let sdk: [Target.Dependency] = ["CanonicalJSON", "SslPinningRules", "SslPinningPlatform"]

  targets += [
    // System libraries, as Debian ships them.
    library("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
    library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    library("CPostgreSQL", pkgConfig: "libpq", apt: "libpq-dev"),
    library("CHiredis", pkgConfig: "hiredis", apt: "libhiredis-dev"),
    library("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    library("CPSL", pkgConfig: "libpsl", apt: "libpsl-dev"),
    library("CYAML", pkgConfig: "yaml-0.1", apt: "libyaml-dev"),

    server("TLSTools", sdk + ["CSslPinningOpenSSL", "CSslPinningShims"]),
    server("PolicyFormats", sdk),
    server("HTTPServing", sdk + ["TLSTools", "CMicroHTTPD"]),
    server("RegistryCore", ["CanonicalJSON", "SslPinningRules"]),
    server(
      "RegistryStores", sdk + ["TLSTools", "RegistryCore", "CSQLite", "CPostgreSQL", "CHiredis"]),
    server(
      "RegistryServer",
      sdk + [
        "TLSTools", "HTTPServing", "RegistryCore", "RegistryStores", "CYAML", "CZlib",
      ],
      // In the program itself: a bundle would have to be installed beside it.
      resources: [.embedInCode("WebConsole/Files")]),
    program(
      "ssl-pinning", in: "Server/Sources",
      sdk + [
        "SslPinning", "TLSTools", "PolicyFormats", "RegistryCore", "RegistryStores",
        "RegistryServer",
        "CPSL",
      ]),

    // What is never installed: servers, middlemen and the attacker on loopback.
    server("FaultLab", in: "Lab", sdk + ["TLSTools", "CSslPinningOpenSSL"]),
    program(
      "ssl-pinning-lab", in: "Server/Lab",
      sdk + [
        "SslPinning", "TLSTools", "HTTPServing", "RegistryCore", "RegistryStores", "RegistryServer",
        "FaultLab", "TestSupport",
      ],
      resources: [.embedInCode("Playground/Files")]),

    // For `make bench`: a round of probes; what a day costs a client in bytes.
    program(
      "scan", in: "Benchmarks/Sources", ["SslPinningRules", "RegistryCore", "RegistryServer"]),
    program("bytes", in: "Benchmarks/Sources", ["RegistryCore", "RegistryServer"]),

    // TestSupport starts the real components: nginx, databases, proxies, a browser.
    server("TestSupport", in: "Tests", sdk + ["TLSTools", "FaultLab"]),
    tests("CanonicalJSONTests", in: "Tests", ["CanonicalJSON"]),
    tests("SslPinningRulesTests", in: "Tests", sdk + ["TLSTools", "FaultLab"]),
    tests(
      "SslPinningPlatformTests", in: "Tests",
      [
        "CSslPinningShims", "SslPinningRules", "SslPinningPlatform", "TLSTools", "FaultLab",
        "CSslPinningOpenSSL",
      ]),
    tests(
      "SslPinningTests", in: "Tests",
      sdk + ["SslPinning", "SslPinningTesting", "TLSTools", "FaultLab"]),
    tests("PolicyFormatsTests", in: "Server/Tests", sdk + ["PolicyFormats"]),
    tests("TLSToolsTests", in: "Server/Tests", sdk + ["TLSTools", "FaultLab"]),
    tests(
      "RegistryServerTests", in: "Server/Tests",
      sdk + [
        "TLSTools", "HTTPServing", "RegistryCore", "RegistryStores", "RegistryServer", "FaultLab",
      ]),
    tests(
      "CommandTests", in: "Server/Tests",
      sdk + [
        "TLSTools", "PolicyFormats", "RegistryCore", "RegistryStores", "FaultLab", "ssl-pinning",
      ]),
    tests(
      "LabTests", in: "Server/Tests",
      sdk + [
        "RegistryCore", "RegistryServer", "SslPinning", "TLSTools", "FaultLab", "ssl-pinning-lab",
      ]),
  ]
#endif

let package = Package(
  name: "ssl-pinning",
  platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8)],
  products: [
    .library(name: "SslPinning", targets: ["SslPinning"]),
    .library(name: "SslPinningTesting", targets: ["SslPinningTesting"]),
    .library(name: "CanonicalJSON", targets: ["CanonicalJSON"]),
    .plugin(name: "RefreshRegistry", targets: ["RefreshRegistry"]),
  ],
  targets: targets
)
