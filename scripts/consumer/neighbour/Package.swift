// swift-tools-version: 6.2
import PackageDescription

// Another package of an app, whose C modules have the names that everybody gives them: it must resolve
// and build beside this project.

let package = Package(
  name: "neighbour",
  products: [.library(name: "Neighbour", targets: ["Neighbour"])],
  targets: [
    .systemLibrary(name: "CSQLite"),
    .systemLibrary(name: "CCurl"),
    .systemLibrary(name: "COpenSSL"),
    .systemLibrary(name: "CZlib"),
    .target(name: "Neighbour", dependencies: ["CSQLite", "CCurl", "COpenSSL", "CZlib"]),
  ]
)
