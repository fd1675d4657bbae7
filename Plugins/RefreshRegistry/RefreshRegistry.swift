import Foundation
import PackagePlugin

/// `swift package refresh-registry URL FILE --key KEY`: fetches the registry document that an app ships.
///
/// - An installed `ssl-pinning` does the work (`verify --save`): whatever apps would refuse takes no place, neither what
///   is not signed nor, with statements (format 2), what is older than the document that is there.
/// - Only a file of the package is written.
@main
struct RefreshRegistry: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    var extractor = ArgumentExtractor(arguments)
    let named = extractor.extractOption(named: "tool").last
    let rest = extractor.remainingArguments
    guard rest.count >= 2, let url = rest.first, url.contains("://"), !rest[1].hasPrefix("-") else {
      throw Failure(
        "usage: swift package refresh-registry URL FILE --key KEY [--tool PATH] [flags of ssl-pinning verify]"
      )
    }
    let package = context.package.directoryURL.standardizedFileURL
    let file = URL(filePath: rest[1], relativeTo: package).standardizedFileURL
    guard file.pathComponents.starts(with: package.pathComponents) else {
      throw Failure("\(rest[1]) is not in the package; hint: name a file of it")
    }
    let path = file.path(percentEncoded: false)
    let held = FileManager.default.fileExists(atPath: path) ? ["--previous", path] : []
    let process = Process()
    process.executableURL = try Self.tool(named, in: package)
    process.currentDirectoryURL = package
    process.arguments = ["verify", url, "--save", path] + held + rest.dropFirst(2)
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure("\(rest[1]) is as it was: ssl-pinning ended with \(process.terminationStatus)")
    }
  }

  /// The installed program: the one that is named, or the first in `PATH`.
  private static func tool(_ named: String?, in package: URL) throws -> URL {
    if let named { return URL(filePath: named, relativeTo: package) }
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let places = folders.map { URL(filePath: String($0)).appending(path: "ssl-pinning") }
    guard
      let found = places.first(where: {
        FileManager.default.isExecutableFile(atPath: $0.path(percentEncoded: false))
      })
    else { throw Failure("no ssl-pinning in PATH; hint: install it, or --tool PATH") }
    return found
  }
}

private struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
