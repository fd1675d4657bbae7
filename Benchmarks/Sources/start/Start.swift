import Foundation
import SslPinning

/// Measures how long a client takes to be there. The first start fetches and stores the list; those after it
/// find the stored one.
///
///     start URL PUB.pem DIRECTORY
@main
enum Start {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 4,
      let key = try? String(contentsOfFile: arguments[2], encoding: .utf8)
    else {
      print("usage: start URL PUB.pem DIRECTORY")
      exit(2)
    }
    let config = SslPinningConfig(
      endpointUrl: arguments[1], signingKeyBase64: key,
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
