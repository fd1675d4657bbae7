import Foundation
import RegistryServer

/// What a day costs a client in bytes: the whole document, its statement alone, and that with the payload
/// after a key changed. Answers to one request; a client that asks hourly gets 304 in between.
///
///     bytes DIRECTORY        with prv.pem in it
@main
enum Bytes {
  static func main() {
    do {
      guard CommandLine.arguments.count == 2 else { throw Usage() }
      let signer = try DocumentSigner(directory: CommandLine.arguments[1])
      print(row("hosts", "a day", "raw", "gzip"))
      for count in [10, 1_000, 10_000] {
        guard
          let weight = try DocumentWeight(endpoints: count, signer: signer, at: 1_800_000_000)
        else { throw Usage() }
        let (statement, payload) = (weight.statement, weight.payload)
        for (name, raw, compressed) in [
          ("whole document", weight.whole.raw, weight.whole.compressed),
          ("statement part", statement.raw, statement.compressed),
          (
            "a key changed", statement.raw + payload.raw,
            statement.compressed + payload.compressed
          ),
        ] { print(row("\(count)", name, "\(raw)", "\(compressed)")) }
      }
    } catch {
      FileHandle.standardError.write(Data("bytes: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func row(_ hosts: String, _ name: String, _ raw: String, _ gzip: String) -> String
  {
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return right(hosts, 6) + "  " + name + right(raw, 28 - name.count) + right(gzip, 12)
  }

  private struct Usage: Error, CustomStringConvertible {
    let description = "usage: bytes DIRECTORY; hint: prv.pem is in it"
  }
}
