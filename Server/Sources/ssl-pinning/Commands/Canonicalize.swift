import CanonicalJSON

/// `canonicalize`: the bytes that a signature covers.
enum Canonicalize {
  static let command = Command(
    "canonicalize", "the RFC 8785 form of a JSON document, byte for byte",
    argument: Argument(
      placeholder: "FILE|-", help: "the document; standard input where it is left out",
      count: .optional),
    notes: [
      "Strict I-JSON in (RFC 7493): a member that stands twice, bytes that are not UTF-8, or data\n"
        + "behind the document are errors with their offset. No line break is added."
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let path = invocation.arguments.first ?? InputFile.standardInput
    let bytes = try InputFile.read(path, limit: JSONLimits.standard.maximumBytes)
    let canonical: [UInt8]
    do throws(JSONError) { canonical = try canonicalize(bytes) } catch {
      throw .no("\(InputFile.name(of: path)) is not strict JSON: \(error)")
    }
    try Terminal.write(canonical)
    return .yes
  }
}
