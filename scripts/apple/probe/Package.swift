// swift-tools-version: 6.2
import PackageDescription

// What first-day.sh runs on a Mac and in simulators. It runs on Linux, too, where its answers are known.
#if os(Linux)
  let sources = ["Sources/Probe.swift", "Sources/Servers.swift", "Linux"]
#else
  let sources = ["Sources"]
#endif

let package = Package(
  name: "probe",
  platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8)],
  dependencies: [.package(name: "ssl-pinning", path: "../../..")],
  targets: [
    .executableTarget(
      name: "probe", dependencies: [.product(name: "SslPinning", package: "ssl-pinning")],
      path: ".", sources: sources,
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
  ])
