import Foundation
import SslPinning

/// Measures how long a client takes to be there. The first start fetches and stores the list; those after it
/// find the stored one.
///
///     start URL PUB.pem DIRECTORY [ANCHOR.der]     without an anchor: the system's
@main
enum Start {
  static func main() async {
    let arguments = CommandLine.arguments
    guard (4...5).contains(arguments.count),
      let key = try? String(contentsOfFile: arguments[2], encoding: .utf8)
    else {
      print("usage: start URL PUB.pem DIRECTORY [ANCHOR.der]")
      exit(2)
    }
    var trust = TrustMode.system
    if arguments.count == 5, let anchor = FileManager.default.contents(atPath: arguments[4]) {
      trust = .anchors([[UInt8](anchor)])
    }
    let config = SslPinningConfig(
      endpointUrl: arguments[1], signingKeyBase64: key, trust: trust,
      storage: .directory(URL(fileURLWithPath: arguments[3], isDirectory: true)))
    let begin = DispatchTime.now().uptimeNanoseconds
    let result = await SslPinningClient.initialize(config: config)
    let nanoseconds = DispatchTime.now().uptimeNanoseconds - begin
    switch result {
    case .success(let client):
      client.createPinnedSession().invalidateAndCancel()
      print("initialize_ms=\(Double(nanoseconds) / 1e6)")
    case .failure(let error):
      print("start: \(error)")
      exit(1)
    }
  }
}
