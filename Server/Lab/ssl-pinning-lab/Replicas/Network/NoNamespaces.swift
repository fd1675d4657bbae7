/// Why no network namespace can be made here.
struct NoNamespaces: Error {
  let reason: String
}
