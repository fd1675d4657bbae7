// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that no one who depends on the SDK builds it. It sees what an app sees.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

let package = Package(
  name: "Benchmarks",
  platforms: [.macOS(.v12)],
  dependencies: [
    // Named, because the folder above may be called anything.
    .package(name: "ssl-pinning", path: "..")
  ],
  targets: [
    .executableTarget(
      name: "core",
      dependencies: [
        .product(name: "CanonicalJSON", package: "ssl-pinning"),
        .product(name: "SslPinning", package: "ssl-pinning"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "client", dependencies: [.product(name: "SslPinning", package: "ssl-pinning")],
      swiftSettings: strict),
  ]
)
