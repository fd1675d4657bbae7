// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that no one who depends on the SDK builds it. It sees what an app sees.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

func program(_ name: String, _ products: [String] = ["SslPinning"]) -> Target {
  .executableTarget(
    name: name, dependencies: products.map { .product(name: $0, package: "ssl-pinning") },
    swiftSettings: strict)
}

let package = Package(
  name: "Benchmarks",
  platforms: [.macOS(.v12)],
  dependencies: [
    // Named, because the folder above may be called anything.
    .package(name: "ssl-pinning", path: "..")
  ],
  targets: [
    program("core", ["CanonicalJSON", "SslPinning"]),
    program("client"),
    program("start"),
    program("bare", []),
  ]
)
