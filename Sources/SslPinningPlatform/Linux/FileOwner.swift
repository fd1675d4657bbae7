#if os(Linux)
  import Foundation
  import Glibc

  /// What root makes for others, and in the directories of others.
  ///
  /// - Apple has apps give a reason for `stat`, and no app runs as root: so it stands here.
  /// - Whoever owns a directory may put a link or a file of root's in the place of each name in it, at any time. So what is
  ///   given away is what is held open, and only if it is empty: nobody gets what root has written.
  /// - Root follows no link in a directory of another user's. Behind it may be a file of root's own.
  extension AtomicFile {
    /// What root writes over is still its owner's: a tool that runs as root must not keep a service from its file.
    func keepOwner(of descriptor: borrowing Descriptor, in folder: borrowing Descriptor) {
      var before = stat()
      guard fstatat(folder.number, name, &before, AT_SYMLINK_NOFOLLOW) == 0, before.st_uid != 0
      else { return giveToPlace(descriptor, in: folder) }
      give(descriptor, to: before)
    }

    /// Gives a file that root made to the owner of its directory, if it is of its place.
    func giveToPlace(_ descriptor: borrowing Descriptor, in folder: borrowing Descriptor) {
      var place = stat()
      guard isOfItsPlace, fstat(folder.number, &place) == 0 else { return }
      give(descriptor, to: place)
    }

    /// A file to lock, open; made where missing, and if root makes it, for the owner of its directory. Whoever owns the
    /// directories above may put another one in the place of this at any time, so it is opened once.
    ///
    /// - Returns: its number, which is the caller's to close; negative, with `errno`, if it cannot be opened.
    package static func openLock(path: String) -> Int32 {
      let file = AtomicFile(path: path, isOfItsPlace: true)
      let folder = Descriptor(
        retrying { open(file.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
      guard folder.isOpen else { return -1 }
      return file.openLock(file.name, in: folder).release()
    }

    /// Whether a file that root has open is root's in a directory of another user's.
    package static func isRootsAmongOthers(_ number: Int32, path: String) -> Bool {
      var (held, place) = (stat(), stat())
      return geteuid() == 0 && fstat(number, &held) == 0 && held.st_uid == 0
        && stat(AtomicFile(path: path).directory, &place) == 0 && place.st_uid != 0
    }

    /// Makes a directory as root, and gives it to the owner of the one above; false and `errno` if it was not made.
    func makeForPlace(_ folder: String) -> Bool {
      let names = folder.split(separator: "/")
      let above = (folder.hasPrefix("/") ? "/" : "./") + names.dropLast().joined(separator: "/")
      let name = names.last.map(String.init) ?? "."
      let parent = Descriptor(retrying { open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
      guard parent.isOpen, mkdirat(parent.number, name, 0o700) == 0 else { return false }
      giveDirectory(name, in: parent)
      return true
    }

    /// Gives the directory of this name that root has just made to the owner of the one above.
    func giveDirectory(_ name: String, in parent: borrowing Descriptor) {
      let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
      let made = Descriptor(retrying { openat(parent.number, name, flags) })
      var place = stat()
      guard made.isOpen, fstat(parent.number, &place) == 0, isEmptyDirectory(made) else { return }
      giveOwn(made, to: place)
    }

    /// Whether it is root who uses a directory of another user's, in which that user keeps what is of its place.
    func isRootInPlaceOfOthers(_ folder: borrowing Descriptor) -> Bool {
      var place = stat()
      return isOfItsPlace && geteuid() == 0 && fstat(folder.number, &place) == 0
        && place.st_uid != 0
    }

    private func give(_ descriptor: borrowing Descriptor, to owner: stat) {
      var now = stat()
      guard fstat(descriptor.number, &now) == 0, now.st_mode & S_IFMT == S_IFREG,
        // What lay there may have been a file of root's, renamed or with a second name. An empty one tells nothing.
        now.st_nlink == 1, now.st_size == 0
      else { return }
      giveOwn(descriptor, to: owner)
    }

    /// Gives away what is root's.
    private func giveOwn(_ descriptor: borrowing Descriptor, to owner: stat) {
      var now = stat()
      guard geteuid() == 0, owner.st_uid != 0, fstat(descriptor.number, &now) == 0, now.st_uid == 0
      else { return }
      // If it cannot be given away, whoever owns it is told when he reads it.
      _ = fchown(descriptor.number, owner.st_uid, owner.st_gid)
    }

    private func isEmptyDirectory(_ folder: borrowing Descriptor) -> Bool {
      let list = openat(folder.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard list >= 0 else { return false }
      guard let entries = fdopendir(list) else {
        close(list)
        return false
      }
      defer { closedir(entries) }
      var count = 0
      while readdir(entries) != nil { count += 1 }
      // Itself, and the one above.
      return count <= 2
    }
  }
#endif
