import Foundation
import RegistryServer

/// What a day costs a client in bytes, raw and compressed: the whole document, its statement alone, and that with
/// the payload after a key changed. Answers to one request; a client that asks hourly gets 304 in between.
///
///     bytes DIRECTORY HOSTS        with prv.pem in the directory
@main
enum Bytes {
  static func main() {
    do {
      let arguments = CommandLine.arguments
      guard arguments.count == 3, let count = Int(arguments[2]), count > 0,
        let weight = try DocumentWeight(
          endpoints: count, signer: try DocumentSigner(directory: arguments[1]), at: 1_800_000_000)
      else { throw Usage() }
      let (whole, statement, payload) = (weight.whole, weight.statement, weight.payload)
      print("whole=\(whole.raw) whole_gzip=\(whole.compressed)")
      print("statement=\(statement.raw) statement_gzip=\(statement.compressed)")
      print("changed=\(statement.raw + payload.raw)")
      print("changed_gzip=\(statement.compressed + payload.compressed)")
    } catch {
      FileHandle.standardError.write(Data("bytes: \(error)\n".utf8))
      exit(1)
    }
  }

  private struct Usage: Error, CustomStringConvertible {
    let description = "usage: bytes DIRECTORY HOSTS; hint: prv.pem is in the directory"
  }
}
