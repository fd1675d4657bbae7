/// What a shell offers when somebody presses the tab key, written from the table of commands.
///
/// Commands, flags, and files where a value may be one; other values are the user's to know.
struct Completions {
  /// A shell.
  enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish
  }

  let commands: [Command]
  /// Flags that may stand before the command.
  let leading: [FlagDescription]

  /// The script, to be put where the shell looks for it.
  func script(for shell: Shell) -> String {
    let lines =
      switch shell {
      case .bash: bash
      case .zsh: zsh
      case .fish: fish
      }
    return lines.joined(separator: "\n") + "\n"
  }

  /// First words with what they are for, in the order of the help.
  private var firstWords: [(word: String, summary: String)] {
    var found: [(word: String, summary: String)] = []
    for command in commands {
      guard let word = command.words.first, !found.contains(where: { $0.word == word }) else {
        continue
      }
      let group = group(word)
      let words = group.map(\.word).joined(separator: ", ")
      found.append((word, group.isEmpty ? command.summary : words))
    }
    return found + [("help", "all about one command")]
  }

  /// First words that another one follows.
  private var groups: [String] { firstWords.map(\.word).filter { !group($0).isEmpty } }

  /// Second words of the commands that begin with this one.
  private func group(_ first: String) -> [(word: String, summary: String)] {
    commands.filter { $0.words.count > 1 && $0.words.first == first }
      .map { ($0.words.dropFirst().joined(separator: " "), $0.summary) }
  }

  private func heading(_ shell: Shell) -> String {
    "# Completions of ssl-pinning for \(shell.rawValue), made by `ssl-pinning completion \(shell.rawValue)`."
  }
}

// MARK: - bash

extension Completions {
  private var bash: [String] {
    let valued = leading.filter(\.takesValue).map(\.name).joined(separator: " ")
    let first = firstWords.map(\.word) + ["--help", "--version"] + leading.map(\.name)
    var lines = [heading(.bash)]
    lines.append(
      """
      _ssl_pinning_offer() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }
      _ssl_pinning_files() {
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      }
      _ssl_pinning() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
        local at=1 command files='' texts='' switches='' argument=''
        COMPREPLY=()
        # bash takes --flag=value for three words.
        if [[ $word == = ]]; then
          word=''
        elif [[ $before == = ]]; then
          before=${COMP_WORDS[COMP_CWORD - 2]}
        fi
        while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -* ]]; do
          if [[ ${COMP_WORDS[at + 1]} == = ]]; then
            ((at += 3))
          elif [[ ' \(valued) ' == *" ${COMP_WORDS[at]} "* ]]; then
            ((at += 2))
          else
            ((at += 1))
          fi
        done
        [[ ${COMP_WORDS[at]} != help ]] || ((at == COMP_CWORD)) || ((at += 1))
        if ((at > COMP_CWORD)); then
          _ssl_pinning_files
          return
        elif ((at == COMP_CWORD)); then
          _ssl_pinning_offer '\(first.joined(separator: " "))'
          return
        fi
        command=${COMP_WORDS[at]}
        # A flag follows the command of that name, if there is one.
        if [[ ' \(groups.joined(separator: " ")) ' == *" $command "* && ${COMP_WORDS[at + 1]} != -* ]]; then
          if ((at + 1 == COMP_CWORD)); then
            case $command in
      """)
    for word in groups {
      let seconds = group(word).map(\.word).joined(separator: " ")
      lines.append("        \(word)) _ssl_pinning_offer '\(seconds)' ;;")
    }
    lines.append(
      """
            esac
            return
          fi
          command+=" ${COMP_WORDS[at + 1]}"
        fi
        case $command in
      """)
    lines += commands.map(bashCase)
    lines.append(
      """
        esac
        if [[ " $files " == *" $before "* ]]; then
          _ssl_pinning_files
        elif [[ " $texts " == *" $before "* ]]; then
          return
        elif [[ $word == -* ]]; then
          _ssl_pinning_offer "$files $texts $switches --help"
        elif [[ $argument == file ]]; then
          _ssl_pinning_files
        fi
      }
      complete -F _ssl_pinning ssl-pinning
      """)
    return lines
  }

  private func bashCase(_ command: Command) -> String {
    func names(_ isIncluded: (FlagDescription) -> Bool) -> String {
      command.flags.filter(isIncluded).flatMap(\.names).joined(separator: " ")
    }
    var settings = [
      "files='\(names { $0.takesValue && $0.takesFile })'",
      "texts='\(names { $0.takesValue && !$0.takesFile })'",
      "switches='\(names { !$0.takesValue })'",
    ]
    if command.argument.takesFile { settings.append("argument=file") }
    return "    '\(command.name)') \(settings.joined(separator: " ")) ;;"
  }
}

// MARK: - zsh

extension Completions {
  private var zsh: [String] {
    var lines = ["#compdef ssl-pinning", heading(.zsh)]
    lines.append(
      """
      _ssl-pinning() {
        local command
        local -a offered
        if (( CURRENT == 2 )); then
          offered=(\(zshWords(firstWords)))
          _describe command offered
          return
        fi
        command=$words[2]
        case $command in
      """)
    for word in groups {
      lines.append(
        """
            \(word))
              if [[ $words[3] == -* ]]; then
                :
              elif (( CURRENT == 3 )); then
                offered=(\(zshWords(group(word))))
                _describe command offered
                return
              fi
              command+=" $words[3]"
              shift words
              (( CURRENT-- )) ;;
        """)
    }
    lines.append("  esac\n  shift words\n  (( CURRENT-- ))\n  case $command in")
    lines += commands.map(zshCase)
    lines.append(
      """
        esac
      }
      if [[ $funcstack[1] == _ssl-pinning ]]; then
        _ssl-pinning "$@"
      else
        compdef _ssl-pinning ssl-pinning
      fi
      """)
    return lines
  }

  private func zshWords(_ words: [(word: String, summary: String)]) -> String {
    words.map { Self.quoted("\($0.word):\($0.summary)") }.joined(separator: " ")
  }

  private func zshCase(_ command: Command) -> String {
    var specifications = command.flags.flatMap { flag in
      flag.names.map { name in
        let help = Self.escaped(flag.help, "[]\\")
        guard flag.takesValue, let placeholder = flag.placeholder else {
          return "\(name)[\(help)]"
        }
        return (flag.isRepeatable ? "*" : "") + name + (name.hasPrefix("--") ? "=" : "+")
          + "[\(help)]:\(Self.escaped(placeholder, ":\\")):\(flag.takesFile ? "_files" : "")"
      }
    }
    specifications.append("--help[this text]")
    if command.argument.takesFile {
      specifications.append("*:\(Self.escaped(command.argument.placeholder, ":\\")):_files")
    }
    return "    '\(command.name)') _arguments -s : "
      + specifications.map(Self.quoted).joined(separator: " ") + " ;;"
  }

  /// The text in single quotes, as bash and zsh read it.
  private static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
      + "'"
  }

  /// The text with a backslash before each of these.
  private static func escaped(_ text: String, _ special: String) -> String {
    text.reduce(into: "") { $0 += special.contains($1) ? "\\\($1)" : "\($1)" }
  }
}

// MARK: - fish

extension Completions {
  private var fish: [String] {
    let complete = "complete -c ssl-pinning"
    func words(_ words: [(word: String, summary: String)], after first: String) -> [String] {
      words.map { offered in
        "\(complete) -n '__ssl_pinning_wants \(first)' -a '\(offered.word)'"
          + " -d \(Self.fishQuoted(offered.summary))"
      }
    }
    var lines = [heading(.fish)]
    lines.append(
      """
      function __ssl_pinning_wants
          set -l words (commandline -opc)
          test "$words[2..-1]" = "$argv"
      end
      function __ssl_pinning_is
          set -l words (commandline -opc)
          set -l last (math 1 + (count $argv))
          test (count $words) -ge $last
          and test "$words[2..$last]" = "$argv"
      end
      \(complete) -f
      """)
    lines += words(firstWords, after: "")
    for word in groups { lines += words(group(word), after: word) }
    for command in commands {
      let place = "\(complete) -n '__ssl_pinning_is \(command.name)'"
      for flag in command.flags {
        let names = flag.names.map { name in
          name.hasPrefix("--") ? "-l \(name.dropFirst(2))" : "-s \(name.dropFirst())"
        }.joined(separator: " ")
        let value = flag.takesValue ? (flag.takesFile ? " -r -F" : " -x") : ""
        lines.append("\(place) \(names)\(value) -d \(Self.fishQuoted(flag.help))")
      }
      if command.argument.takesFile { lines.append("\(place) -F") }
    }
    return lines
  }

  private static func fishQuoted(_ text: String) -> String { "'\(escaped(text, #"'\"#))'" }
}

extension FlagDescription {
  /// Its long and its short name.
  fileprivate var names: [String] { [name] + [short].compactMap(\.self) }

  /// Whether the next word is its value.
  fileprivate var takesValue: Bool { placeholder != nil && impliedValue == nil }

  fileprivate var takesFile: Bool { placeholder.map(Completions.standsForFile) ?? false }
}

extension Argument {
  fileprivate var takesFile: Bool { Completions.standsForFile(placeholder) }
}

extension Completions {
  /// Whether what stands for a value in the help says that it may be a file or a directory.
  fileprivate static func standsForFile(_ placeholder: String) -> Bool {
    ["FILE", "DIR", "KEY", "POLICY", ".json"].contains { placeholder.contains($0) }
  }
}
