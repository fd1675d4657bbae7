import Foundation
import FoundationNetworking
import OwnCurl
import SslPinning

/// Pins `localhost`, uses two other libcurls beside its sessions, and says what does not work. The
/// server answers at 127.0.0.1 as well, where another key is pinned.
///
///     linking PORT PIN ROOT.der ROOT.pem OTHER-PORT PLUGIN.so TLS
///
/// TLS is what the plugin's libcurl is built on: `GnuTLS`, or `OpenSSL` like the program's own.
@main
struct Main {
  struct Fault: Error {
    let text: String
  }

  static func main() async throws {
    let words = CommandLine.arguments
    guard words.count == 8, let served = URL(string: "https://localhost:\(words[1])/"),
      let led = URL(string: "https://localhost:\(words[1])/to/\(words[5])"),
      let refused = URL(string: "https://127.0.0.1:\(words[1])/")
    else { throw Fault(text: "usage: linking PORT PIN ROOT.der ROOT.pem OTHER-PORT PLUGIN.so TLS") }
    let pages = try Page.all()
    let anchor = [UInt8](try Data(contentsOf: URL(filePath: words[3])))
    let other = Data(repeating: 7, count: 32).base64EncodedString()
    let pins = try FixedPins(
      ["localhost": [words[2]], "127.0.0.1": ["sha256/\(other)"]], trust: .anchors([anchor]))
    let client = try FixedPinsClient(pins: pins)
    let session = client.createPinnedSession()
    for _ in 0..<3 {
      try await pinned(client, session, served, refused)
      try check(own_curl_easy("\(refused)", words[4]) == 200, "the app's own easy handle")
      try check(own_curl_multi("\(refused)", words[4]) == 200, "the app's own multi handle")
      try check(try await session.data(from: led).0.count == 5, "led to another origin")
    }
    let plugin = try Plugin(path: words[6], tls: words[7])
    try check(plugin.tlsLibrary.hasPrefix(words[7]), "the plugin has \(plugin.tlsLibrary)")
    try check(plugin.file != String(cString: own_curl_file()), "the plugin has \(plugin.file)")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { try await pinned(client, session, served, refused) }
        group.addTask { try await pinned(client, client.createPinnedSession(), served, refused) }
        group.addTask {
          try check(plugin.easy("\(refused)", words[4]) == 200, "the plugin's easy handle")
          try check(plugin.multi("\(refused)", words[4]) == 200, "the plugin's multi handle")
          try check(own_curl_easy("\(refused)", words[4]) == 200, "the app's own, at once")
        }
      }
      try await group.waitForAll()
    }
    try check(try Page.all().isSuperset(of: pages), "memory is protected as it was before")
    print("ok")
  }

  private static func pinned(
    _ client: FixedPinsClient, _ session: URLSession, _ served: URL, _ refused: URL
  ) async throws {
    try check(try await session.data(from: served).0.count == 5, "a session is served")
    try check(
      try await client.data(for: URLRequest(url: served)).0.count == 5, "a request is served")
    do {
      _ = try await session.data(from: refused)
      throw Fault(text: "a key that is not pinned was served")
    } catch let error where !(error is Fault) {
      try check(client.refusal(for: error)?.rule == "leaf-pin", "\(error)")
    }
  }

  private static func check(_ holds: Bool, _ what: String) throws {
    if !holds { throw Fault(text: what) }
  }
}

/// The library that the script compiled of OwnCurl's source.
struct Plugin: Sendable {
  typealias Get = @Sendable @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int
  typealias Name = @convention(c) () -> UnsafePointer<CChar>

  let tlsLibrary: String
  let file: String
  let easy: Get
  let multi: Get

  init(path: String, tls: String) throws {
    // For itself alone: its functions have the names of the program's own. Those of a second OpenSSL
    // libcurl have the same versions too, so the plugin, and that library for what it calls of its
    // own functions, would be given the program's unless their own libraries come first.
    let order = tls == "OpenSSL" ? RTLD_DEEPBIND : 0
    guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | order),
      let tls = dlsym(handle, "own_curl_tls"), let file = dlsym(handle, "own_curl_file"),
      let easy = dlsym(handle, "own_curl_easy"), let multi = dlsym(handle, "own_curl_multi")
    else { throw Main.Fault(text: String(cString: dlerror())) }
    tlsLibrary = String(cString: unsafeBitCast(tls, to: Name.self)())
    self.file = String(cString: unsafeBitCast(file, to: Name.self)())
    self.easy = unsafeBitCast(easy, to: Get.self)
    self.multi = unsafeBitCast(multi, to: Get.self)
  }
}

/// A page of the program's or Foundation's files, and what may be done with it.
struct Page: Hashable {
  let address: UInt
  let rights: Substring

  static func all() throws -> Set<Page> {
    let maps = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps")).readToEnd()
    var pages: Set<Page> = []
    for line in String(decoding: maps ?? Data(), as: UTF8.self).split(separator: "\n") {
      guard line.hasSuffix("/linking") || line.hasSuffix("/libFoundationNetworking.so") else {
        continue
      }
      let words = line.split(separator: " ")
      let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
      for address in stride(from: ends[0], to: ends[1], by: 4096) {
        pages.insert(Page(address: address, rights: words[1]))
      }
    }
    return pages
  }
}
