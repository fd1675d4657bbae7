import Testing

@testable import PolicyFormats

@Suite("literals in code")
struct CodeReaderTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let file: String
    let source: String
    /// Texts of the list that `x` stands for; `nil` if they cannot be known.
    let texts: [String]?

    init(_ name: String, _ file: String, _ source: String, _ texts: [String]?) {
      (testDescription, self.file, self.source, self.texts) = (name, file, source, texts)
    }
  }

  static let rows: [Row] = [
    Row("a text", "a.swift", #"let x = "a""#, ["a"]),
    Row("a list, with its type", "a.swift", #"let x: [String] = ["a", "b"]"#, ["a", "b"]),
    Row("texts that are joined", "a.swift", #"let x = "a" + "b""#, ["ab"]),
    Row("a raw text", "a.swift", ##"let x = #"a"b"#"##, [#"a"b"#]),
    Row("a long text", "a.swift", "let x = \"\"\"\n  a\n  \"\"\"", ["a"]),
    Row("an escape", "a.swift", #"let x = "a\"b""#, [#"a"b"#]),
    Row("what is computed in a text", "a.swift", #"let x = "\(f("b"))a""#, nil),
    Row("a part of a list that is computed", "a.swift", #"let x = ["a", f()]"#, nil),
    Row("a name for another", "a.swift", "let y = \"a\"\nlet x = [y]", ["a"]),
    Row("a name for two things", "a.swift", "let x = \"a\"\nlet x = \"b\"", nil),
    Row("comments within", "a.swift", #"let x = [/* "c" /* "d" */ */ "a", // "e""# + "\n]", ["a"]),
    Row("a cast", "a.swift", #"let x = ["a"] as [String]"#, ["a"]),
    Row("a method of a text", "a.swift", #"let x = "a".lowercased()"#, nil),
    Row("Kotlin's list", "a.kt", #"val x = listOf("a", "b")"#, ["a", "b"]),
    Row("Kotlin's list of a type", "a.kt", #"val x = listOf<String>("a")"#, ["a"]),
    Row("Kotlin's template", "a.kt", #"const val x = "$y.example""#, nil),
    Row("Java's array", "a.java", #"static final String[] x = { "a", "b" };"#, ["a", "b"]),
    Row("Java's new array", "a.java", #"String[] x = new String[] { "a" };"#, ["a"]),
    Row("Java's list", "a.java", #"List<String> x = List.of("a");"#, ["a"]),
    Row("Java's dollar", "a.java", #"String x = "$a";"#, ["$a"]),
    Row("Objective-C's array", "a.m", #"NSArray *x = @[ @"a", @"b" ];"#, ["a", "b"]),
    Row("Objective-C's character", "a.m", #"char c = '"'; NSString *x = @"a";"#, ["a"]),
  ]

  @Test("are read as the language has them, or not at all", arguments: rows)
  func constants(row: Row) throws {
    let file = try #require(SourceFile(path: row.file, bytes: Array(row.source.utf8)))
    let constants = CodeConstants(in: CodeLexer.tokens(of: file))
    #expect(constants.texts(.name("x")) == row.texts)
  }

  static let conditions: [(source: String, isDebug: Bool)] = [
    ("#if DEBUG\nx\n#endif", true), ("#if DEBUG\n#else\nx\n#endif", false),
    ("#if !DEBUG\nx\n#endif", false), ("#if !DEBUG\n#else\nx\n#endif", true),
    ("#ifdef DEBUG\nx\n#endif", true), ("#ifndef DEBUG\nx\n#endif", false),
    ("#if DEBUG\n#endif\nx", false), ("#if DEBUG || BETA\nx\n#endif", false),
    ("#if DEBUG\n#if os(iOS)\nx\n#endif\n#endif", true), ("#if os(iOS)\nx\n#endif", false),
    ("#if os(iOS)\n#elseif DEBUG\nx\n#endif", true),
  ]

  @Test("know what debug builds alone have", arguments: conditions)
  func debug(row: (source: String, isDebug: Bool)) throws {
    let file = try #require(SourceFile(path: "a.swift", bytes: Array(row.source.utf8)))
    let tokens = CodeLexer.tokens(of: file)
    #expect(tokens.first { $0.text == "x" }?.isDebug == row.isDebug)
  }
}
