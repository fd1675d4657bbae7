import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One plain request, without a cache.
enum HTTPProbe {
  static func fetch(
    _ url: String, headers: [String: String] = [:], method: String = "GET", body: [UInt8]? = nil
  ) async throws -> (status: Int, headers: [String: String], body: [UInt8]) {
    guard let url = URL(string: url) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body.map { Data($0) }
    // As it is: Foundation asks for gzip by itself, and hides that it got it.
    request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let session = URLSession(configuration: .ephemeral)
    defer { session.finishTasksAndInvalidate() }
    let (data, response) = try await session.data(for: request)
    guard let answer = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
    var fields: [String: String] = [:]
    for (name, value) in answer.allHeaderFields {
      fields["\(name)".lowercased()] = "\(value)"
    }
    return (answer.statusCode, fields, [UInt8](data))
  }
}
