import Foundation
import TestSupport

/// The places in libFoundationNetworking.so that its calls of libcurl go through, as binutils reads
/// them: what the hook is pointed at, seen by somebody else.
struct FoundationSlots {
  private let slots: [String: UnsafeMutablePointer<UInt>]

  init() async throws {
    guard
      let file = try MappedFile.all().first(where: {
        $0.path.hasSuffix("/libFoundationNetworking.so")
      })
    else { throw OtherLibcurl.Failure(reason: "libFoundationNetworking.so is not loaded") }
    let listing = try await ChildProcess.run("readelf", ["-W", "-r", file.path])
    var slots: [String: UnsafeMutablePointer<UInt>] = [:]
    for line in listing.stdout.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 4, words[2].hasSuffix("_JUMP_SLOT") || words[2].hasSuffix("_JUMP_SLO"),
        let offset = UInt(words[0], radix: 16)
      else { continue }
      let name = String(words[4].prefix { $0 != "@" })
      slots[name] = UnsafeMutablePointer(bitPattern: file.addresses.lowerBound + offset)
    }
    self.slots = slots
  }

  /// What a call of this name reaches.
  func target(of name: String) -> UInt? { slots[name]?.pointee }

  /// Puts libcurl's own function back, as a first call does that was under way on another thread.
  func turnBack(_ name: String) throws { try put(dlsym(nil, name), at: name) }

  /// Has calls of this name reach another function.
  func put(_ function: UnsafeMutableRawPointer?, at name: String) throws {
    guard let slot = slots[name], let function else {
      throw OtherLibcurl.Failure(reason: "no \(name)")
    }
    slot.pointee = UInt(bitPattern: function)
  }

  /// The functions that the hook takes the place of.
  static let hooked = [
    "curl_multi_init", "curl_multi_setopt", "curl_multi_add_handle", "curl_multi_remove_handle",
    "curl_multi_info_read", "curl_multi_socket_action", "curl_multi_assign", "curl_multi_cleanup",
    "curl_easy_getinfo", "curl_easy_setopt", "curl_easy_strerror", "curl_easy_cleanup",
  ]
}

/// A part of a file in this process's memory.
struct MappedFile {
  let addresses: Range<UInt>
  let path: String

  static func all() throws -> [MappedFile] {
    // Its size is said to be zero, so it is read to its end.
    let maps = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps")).readToEnd()
    return String(decoding: maps ?? Data(), as: UTF8.self).split(separator: "\n").compactMap {
      line in
      let words = line.split(separator: " ", maxSplits: 5)
      let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
      guard words.count == 6, ends.count == 2 else { return nil }
      return MappedFile(
        addresses: ends[0]..<ends[1], path: words[5].trimmingCharacters(in: .whitespaces))
    }
  }

  /// The file whose code or data stands there.
  static func path(at address: UInt) throws -> String? {
    try all().first { $0.addresses.contains(address) }?.path
  }

  static func path(at pointer: UnsafeRawPointer?) throws -> String? {
    try path(at: UInt(bitPattern: pointer))
  }
}
