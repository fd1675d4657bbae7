// A stub of Alamofire 5.10, as far as the documentation's listings use it. Only ever type-checked.

import Foundation
import Security

public protocol ServerTrustEvaluating: Sendable {
  func evaluate(_ trust: SecTrust, forHost host: String) throws
}

open class ServerTrustManager: @unchecked Sendable {
  public init(
    allHostsMustBeEvaluated: Bool = true, evaluators: [String: any ServerTrustEvaluating]
  ) {}
  open func serverTrustEvaluator(forHost host: String) throws -> (any ServerTrustEvaluating)? {
    fatalError()
  }
}

open class Session: @unchecked Sendable {
  public convenience init(
    configuration: URLSessionConfiguration = .ephemeral,
    serverTrustManager: ServerTrustManager? = nil
  ) { fatalError() }
}
