// swift-tools-version: 6.2
import PackageDescription

// Another package of an app, whose modules have the names that everybody gives them: it must resolve and build
// beside this project.

let package = Package(
  name: "neighbour",
  products: [.library(name: "Neighbour", targets: ["Neighbour", "Pinning"])],
  targets: [
    .systemLibrary(name: "CSQLite"),
    .systemLibrary(name: "CCurl"),
    .systemLibrary(name: "COpenSSL"),
    .systemLibrary(name: "CZlib"),
    .target(name: "Pinning"),
    .target(name: "Neighbour", dependencies: ["CSQLite", "CCurl", "COpenSSL", "CZlib"]),
  ]
)
