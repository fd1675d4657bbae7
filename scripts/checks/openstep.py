"""Reads property lists in the old text format, as Xcode writes its projects:
`{ key = value; }`, `( value, value )`, quoted or bare words, comments."""

import re

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.S)
_WORD = re.compile(r"[A-Za-z0-9_$/:.-]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Unreadable(Exception):
    """`line` and what is wrong there."""

    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


class Reader:
    """`value` is the list; `lines` says where each key stands (the last one of that name)."""

    def __init__(self, text):
        self.text, self.at, self.lines = text, 0, {}
        self.value = self._value()
        self._skip()
        if self.at < len(text):
            self._fail("something after the end")

    def _line(self):
        return self.text.count("\n", 0, self.at) + 1

    def _fail(self, message):
        raise Unreadable(self._line(), message)

    def _skip(self):
        self.at = _SKIP.match(self.text, self.at).end()

    def _take(self, mark):
        self._skip()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _expect(self, mark):
        if not self._take(mark):
            self._fail(f"expected {mark}")

    def _string(self):
        self._skip()
        if match := _QUOTED.match(self.text, self.at):
            self.at = match.end()
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), match[1])
        if match := _WORD.match(self.text, self.at):
            self.at = match.end()
            return match[0]
        self._fail("expected a value")

    def _value(self):
        if self._take("{"):
            found = {}
            while not self._take("}"):
                self._skip()
                line = self._line()
                key = self._string()
                if key in found:
                    raise Unreadable(line, f"{key} stands twice")
                self.lines[key] = line
                self._expect("=")
                found[key] = self._value()
                self._expect(";")
            return found
        if self._take("("):
            found = []
            while not self._take(")"):
                found.append(self._value())
                if not self._take(","):
                    self._expect(")")
                    break
            return found
        return self._string()
