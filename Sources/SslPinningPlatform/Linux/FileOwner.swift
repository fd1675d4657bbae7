#if os(Linux)
  import Foundation

  extension AtomicFile {
    /// What root writes over is still its owner's: a tool that runs as root must not keep a service from its file.
    ///
    /// Apple has apps give a reason for `stat`, and no app runs as root: so it stands here.
    func keepOwner(of descriptor: borrowing Descriptor) {
      var before = stat()
      guard lstat(path, &before) == 0, before.st_uid != 0 else { return giveToPlace(descriptor) }
      give(descriptor, to: before)
    }

    /// Gives a file that root made to the owner of its directory, if it is of its place.
    func giveToPlace(_ descriptor: borrowing Descriptor) {
      var place = stat()
      guard isOfItsPlace, stat(directory, &place) == 0 else { return }
      give(descriptor, to: place)
    }

    /// The same for a directory, by that above it.
    func giveToPlace(_ folder: String) {
      var place = stat()
      guard isOfItsPlace, geteuid() == 0, stat(folder + "/..", &place) == 0, place.st_uid != 0
      else { return }
      _ = lchown(folder, place.st_uid, place.st_gid)
    }

    private func give(_ descriptor: borrowing Descriptor, to owner: stat) {
      var now = stat()
      guard geteuid() == 0, owner.st_uid != 0,
        // What lay there may be a second name of a file of root's.
        fstat(descriptor.number, &now) == 0, now.st_nlink == 1
      else { return }
      // If it cannot be given away, whoever owns it is told when he reads it.
      _ = fchown(descriptor.number, owner.st_uid, owner.st_gid)
    }
  }
#endif
