// swift-tools-version: 6.2
import PackageDescription

// A package of its own, because it is linked in ways of its own: see run.py.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

let package = Package(
  name: "Linking",
  dependencies: [
    // Named, because the folder above may be called anything.
    .package(name: "ssl-pinning", path: "../..")
  ],
  targets: [
    // The app's own use of libcurl. Where the standard library is linked in, it calls libcurl through
    // the same addresses as Foundation does.
    .target(name: "OwnCurl", linkerSettings: [.linkedLibrary("curl")]),
    .executableTarget(
      name: "linking",
      dependencies: ["OwnCurl", .product(name: "SslPinning", package: "ssl-pinning")],
      swiftSettings: strict),
  ]
)
