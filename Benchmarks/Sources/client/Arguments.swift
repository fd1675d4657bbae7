import Foundation

/// What the program was asked to measure.
struct Arguments: Sendable {
  var url: URL
  var anchor: [UInt8]?
  var pin: String
  var concurrency = 1
  var seconds = 3.0
  var road = Road.data

  /// What carries the requests.
  enum Road: String {
    /// `client.data(for:)`.
    case data
    /// A pinned `URLSession`.
    case session
    /// A `URLSession` without pins.
    case plain
  }

  static let usage =
    "usage: client --url URL --pin BASE64 [--ca FILE] [-c N] [--seconds S] [--road data|session|plain]"

  struct Fault: Error {
    let text: String
  }

  init(_ words: [String]) throws {
    var url: URL?
    var pin: String?
    var rest = words[...]
    func value(of name: String) throws -> String {
      guard let value = rest.popFirst() else { throw Fault(text: "\(name) needs a value") }
      return value
    }
    while let word = rest.popFirst() {
      switch word {
      case "--url": url = URL(string: try value(of: word))
      case "--pin": pin = try value(of: word)
      case "--ca": anchor = try Self.certificate(in: try value(of: word))
      case "-c": concurrency = max(1, Int(try value(of: word)) ?? 1)
      case "--seconds": seconds = Double(try value(of: word)) ?? 3
      case "--road":
        guard let named = Road(rawValue: try value(of: word)) else {
          throw Fault(text: "no such road")
        }
        road = named
      default: throw Fault(text: "\(word) is unknown")
      }
    }
    guard let url, let pin else { throw Fault(text: "--url and --pin are needed") }
    self.url = url
    self.pin = pin
  }

  /// The first certificate of a PEM file, as DER.
  private static func certificate(in file: String) throws -> [UInt8] {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let lines = text.components(separatedBy: "\n")
    guard let begin = lines.firstIndex(of: "-----BEGIN CERTIFICATE-----"),
      let end = lines[begin...].firstIndex(of: "-----END CERTIFICATE-----"),
      let der = Data(base64Encoded: lines[(begin + 1)..<end].joined())
    else { throw Fault(text: "\(file) holds no certificate") }
    return Array(der)
  }
}
