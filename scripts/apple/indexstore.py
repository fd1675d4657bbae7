"""Which symbols a compiled file uses, read from the index that the compiler wrote beside it.

The compiler resolves each name, so that nothing here is guessed from text: a type in a signature, a
member behind a key path, an overload and the requirement that a method answers are told apart.
The index is read by the toolchain's own library.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_size_t, c_uint, c_uint64, c_void_p

# Roles of an occurrence and of a relation (clang's SymbolRole).
REFERENCE, OVERRIDE_OF = 1 << 2, 1 << 11
RECORD = 2


class Text(ctypes.Structure):
    """A string that the library owns."""

    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.data, self.length).decode() if self.length else ""


OF_TEXT = CFUNCTYPE(c_bool, c_void_p, Text)
OF_POINTER = CFUNCTYPE(c_bool, c_void_p, c_void_p)


def library(path):
    """The library with the types of what is called; `path` is that of libIndexStore."""
    loaded = ctypes.CDLL(str(path))

    def declare(name, result, *arguments):
        function = getattr(loaded, f"indexstore_{name}")
        function.restype, function.argtypes = result, arguments

    declare("store_create", c_void_p, c_char_p, POINTER(c_void_p))
    declare("store_dispose", None, c_void_p)
    declare("store_units_apply_f", c_bool, c_void_p, c_uint, c_void_p, OF_TEXT)
    declare("unit_reader_create", c_void_p, c_void_p, c_char_p, POINTER(c_void_p))
    declare("unit_reader_dispose", None, c_void_p)
    declare("unit_reader_get_main_file", Text, c_void_p)
    declare("unit_reader_dependencies_apply_f", c_bool, c_void_p, c_void_p, OF_POINTER)
    declare("unit_dependency_get_kind", c_uint, c_void_p)
    declare("unit_dependency_get_name", Text, c_void_p)
    declare("record_reader_create", c_void_p, c_void_p, c_char_p, POINTER(c_void_p))
    declare("record_reader_dispose", None, c_void_p)
    declare("record_reader_occurrences_apply_f", c_bool, c_void_p, c_void_p, OF_POINTER)
    declare("occurrence_get_symbol", c_void_p, c_void_p)
    declare("occurrence_get_roles", c_uint64, c_void_p)
    declare("occurrence_get_line_col", None, c_void_p, POINTER(c_uint), POINTER(c_uint))
    declare("occurrence_relations_apply_f", c_bool, c_void_p, c_void_p, OF_POINTER)
    declare("symbol_relation_get_roles", c_uint64, c_void_p)
    declare("symbol_relation_get_symbol", c_void_p, c_void_p)
    declare("symbol_get_usr", Text, c_void_p)
    return loaded


class Unreadable(Exception):
    """An index that the library does not open."""


def opened(create, *arguments):
    error = c_void_p()
    found = create(*arguments, byref(error))
    if not found:
        raise Unreadable(f"{create.__name__} failed for {arguments[-1]}")
    return found


class Use:
    """One symbol at one place. The position counts from 1; the column counts bytes. `answers`: a
    declaration that implements or overrides the symbol."""

    def __init__(self, file, line, column, usr, answers):
        self.file, self.line, self.column = file, line, column
        self.usr, self.answers = usr, answers


def uses(path, store):
    """What the files of an index use: references, and the requirements and methods that their
    declarations answer or override. Raises Unreadable."""
    index = library(path)
    found = []
    opened_store = opened(index.indexstore_store_create, str(store).encode())

    def names_of(apply, reader, convert, kind):
        """What an applying function calls back with, as a list."""
        gathered = []
        apply(*reader, None, kind(lambda _, item: gathered.append(convert(item)) or True))
        return gathered

    def record(file, name):
        reader = opened(index.indexstore_record_reader_create, opened_store, name.encode())

        def occurrence(_, place):
            line, column = c_uint(), c_uint()
            index.indexstore_occurrence_get_line_col(place, byref(line), byref(column))

            def add(symbol, answers):
                found.append(Use(file, line.value, column.value,
                                 str(index.indexstore_symbol_get_usr(symbol)), answers))

            def relation(_, other):
                if index.indexstore_symbol_relation_get_roles(other) & OVERRIDE_OF:
                    add(index.indexstore_symbol_relation_get_symbol(other), True)
                return True

            if index.indexstore_occurrence_get_roles(place) & REFERENCE:
                add(index.indexstore_occurrence_get_symbol(place), False)
            index.indexstore_occurrence_relations_apply_f(place, None, OF_POINTER(relation))
            return True

        index.indexstore_record_reader_occurrences_apply_f(reader, None, OF_POINTER(occurrence))
        index.indexstore_record_reader_dispose(reader)

    def dependency(item):
        if index.indexstore_unit_dependency_get_kind(item) == RECORD:
            return str(index.indexstore_unit_dependency_get_name(item))
        return None

    for unit in names_of(index.indexstore_store_units_apply_f, [opened_store, 0], str, OF_TEXT):
        reader = opened(index.indexstore_unit_reader_create, opened_store, unit.encode())
        file = str(index.indexstore_unit_reader_get_main_file(reader))
        records = names_of(index.indexstore_unit_reader_dependencies_apply_f, [reader], dependency,
                           OF_POINTER)
        index.indexstore_unit_reader_dispose(reader)
        for name in records:
            if name and file:
                record(file, name)
    index.indexstore_store_dispose(opened_store)
    return found
