import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A program with one session of Foundation's: `start` without the SDK. The difference of the two files is what
/// the SDK adds.
///
///     bare URL
@main
enum Bare {
  static func main() async {
    guard let text = CommandLine.arguments.dropFirst().first, let url = URL(string: text) else {
      return print("usage: bare URL")
    }
    do {
      let session = URLSession(configuration: .ephemeral)
      print("bytes=\(try await session.data(for: URLRequest(url: url)).0.count)")
    } catch {
      print("bare: \(error)")
      exit(1)
    }
  }
}
