// swift-tools-version: 6.2
import PackageDescription

// Layering: an arrow goes only down this list; `make check` compiles with
// `--explicit-target-dependency-import-check error`, so an import that is not
// declared here does not build.
//
//   ssl-pinning → RegistryServer, SslPinning → TLSTools → PinningPlatform → Pinning → CanonicalJSON
//
// An app links SslPinning, PinningPlatform, Pinning and CanonicalJSON, and no
// system package on Apple platforms.
//
// Products are libraries alone: of a dependency SwiftPM loads what its products reach, so an app meets
// neither the server nor its system libraries. The programs are built by name here all the same
// (`swift build --product ssl-pinning`). The C modules that an app reaches are called CSslPinning…,
// because every module in an app's graph needs a name of its own. `make check` holds both.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

let linux: TargetDependencyCondition? = .when(platforms: [.linux])

let package = Package(
  name: "ssl-pinning",
  platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8)],
  products: [
    .library(name: "SslPinning", targets: ["SslPinning"]),
    .library(name: "SslPinningTesting", targets: ["SslPinningTesting"]),
    .library(name: "CanonicalJSON", targets: ["CanonicalJSON"]),
  ],
  targets: [
    // System libraries, as Debian ships them.
    .systemLibrary(
      name: "CSslPinningOpenSSL", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CSslPinningCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(
      name: "CMicroHTTPD", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CPostgreSQL", pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(
      name: "CHiredis", pkgConfig: "hiredis",
      providers: [.apt(["libhiredis-dev"]), .brew(["hiredis"])]),
    .systemLibrary(
      name: "CZlib", pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .systemLibrary(
      name: "CYAML", pkgConfig: "yaml-0.1",
      providers: [.apt(["libyaml-dev"]), .brew(["libyaml"])]),

    // What an app links.
    .target(name: "CanonicalJSON", swiftSettings: strict),
    .target(name: "Pinning", dependencies: ["CanonicalJSON"], swiftSettings: strict),
    .target(
      name: "CSslPinningShims",
      dependencies: [
        .target(name: "CSslPinningOpenSSL", condition: linux),
        .target(name: "CSslPinningCurl", condition: linux),
      ]),
    .target(
      name: "PinningPlatform",
      dependencies: [
        "CanonicalJSON", "Pinning",
        .target(name: "CSslPinningOpenSSL", condition: linux),
        .target(name: "CSslPinningCurl", condition: linux),
        .target(name: "CSslPinningShims", condition: linux),
      ],
      swiftSettings: strict),
    .target(
      name: "SslPinning", dependencies: ["Pinning", "PinningPlatform"], swiftSettings: strict),

    // What an app's tests link.
    .target(
      name: "SslPinningTesting",
      dependencies: ["CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning"],
      swiftSettings: strict),

    // What an app never links.
    .target(
      name: "TLSTools",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "CSslPinningOpenSSL", "CSslPinningShims",
      ],
      swiftSettings: strict),
    .target(
      name: "RegistryServer",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools", "CMicroHTTPD", "CSQLite",
        "CPostgreSQL", "CHiredis", "CYAML", "CZlib",
      ],
      // In the program itself: a bundle would have to be installed beside it.
      resources: [.embedInCode("Console/Files")],
      swiftSettings: strict),
    .executableTarget(
      name: "ssl-pinning",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning", "TLSTools", "RegistryServer",
      ],
      swiftSettings: strict),

    // `make drill`: the promise, kept on real sockets and real databases. No product.
    .executableTarget(
      name: "drill",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning", "TLSTools", "RegistryServer",
        "TestSupport",
      ],
      swiftSettings: strict),

    // `make bench-scan`: a round of looks, beside a peer. No product.
    .executableTarget(
      name: "scan", dependencies: ["Pinning", "RegistryServer"], path: "Benchmarks/Sources/scan",
      swiftSettings: strict),
    // `make bench-bytes`: what a day costs a client. No product.
    .executableTarget(
      name: "bytes", dependencies: ["RegistryServer"], path: "Benchmarks/Sources/bytes",
      swiftSettings: strict),

    // Tests. TestSupport starts the real components: nginx, proxies, small servers.
    .target(
      name: "TestSupport",
      dependencies: ["CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools"],
      path: "Tests/TestSupport", swiftSettings: strict),
    .testTarget(
      name: "CanonicalJSONTests", dependencies: ["CanonicalJSON", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "PinningTests",
      dependencies: ["CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "PinningPlatformTests",
      dependencies: [
        "CSslPinningShims", "Pinning", "PinningPlatform", "TLSTools", "TestSupport",
        "CSslPinningOpenSSL",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SslPinningTests",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning", "SslPinningTesting",
        "TLSTools", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "TLSToolsTests",
      dependencies: ["CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "RegistryServerTests",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools", "RegistryServer", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "CanonicalJSON", "Pinning", "PinningPlatform", "TLSTools", "TestSupport", "ssl-pinning",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "DrillTests",
      dependencies: ["RegistryServer", "SslPinning", "TLSTools", "TestSupport", "drill"],
      swiftSettings: strict),
  ]
)
